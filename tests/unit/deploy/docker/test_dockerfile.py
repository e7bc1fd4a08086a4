"""The image: linted, made of what is there, with the ports of the stack, and without root."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from deploy.stack import SPARK_CONNECT_PORT, STACK, WITH_SPARK
from tests.support.deployment import DOCKERFILE, stages
from tests.support.service import REPOSITORY

TEXT: Final = DOCKERFILE.read_text(encoding="utf-8")
STAGES: Final = stages(TEXT)
PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def _exposed(stage: str) -> set[int]:
    return {int(port) for line in re.findall(r"^EXPOSE (.*)$", STAGES[stage], re.MULTILINE) for port in line.split()}


@pytest.mark.processes
def test_hadolint_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, str(DOCKERFILE)], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")


def test_ports_are_those_of_the_stack() -> None:
    all_ports = {port for service in STACK for port in (service.port, service.metrics_port) if port}
    assert _exposed("caudal-spark") == all_ports | {SPARK_CONNECT_PORT}
    assert _exposed("caudal") == all_ports - {service.port for service in STACK if service.name in WITH_SPARK}


def test_the_build_sees_what_it_copies_and_our_packages() -> None:
    seen = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", TEXT, re.MULTILINE) for word in line.split()}
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert seen[1] == "*"
    assert {f"!{name}" for name in (copied - {"."}) | set(packages)} == {line for line in seen if line[:1] == "!"}
    assert all((REPOSITORY / name).exists() for name in copied)


def test_what_is_installed_are_extras_of_the_project_in_tested_versions() -> None:
    extras = {extra for names in re.findall(r'"\.\[([\w,]+)\]"', TEXT) for extra in names.split(",")}
    assert {"broker", "registry", "proxy", "all"} == extras <= set(PROJECT["project"]["optional-dependencies"])
    installs = re.findall(r"pip install (.*)$", TEXT, re.MULTILINE)
    assert all("--constraint requirements.lock" in install or "--no-deps" in install for install in installs)


@pytest.mark.parametrize("target", ["caudal", "caudal-spark"])
def test_the_image_runs_our_command_without_root_and_asks_for_its_health(target: str) -> None:
    body = STAGES[target]
    assert re.findall(r"^USER (.*)$", body, re.MULTILINE)[-1:] == ["10001:10001"]
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", body, re.MULTILINE)
    (health,) = re.findall(r"^HEALTHCHECK .* CMD (.*)$", body, re.MULTILINE)
    assert json.loads(entry)[-1] in PROJECT["project"]["scripts"]
    assert json.loads(health) == ["python", "-m", "deploy.health_check"]
