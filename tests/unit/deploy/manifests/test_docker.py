"""The image: linted, made of what is there, with the ports of the stack, and for nobody who is root."""

import fnmatch
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from deploy.stack import SPARK_CONNECT_PORT, STACK
from tests.support.deployment import DEPLOY
from tests.support.service import REPOSITORY

DOCKERFILE: Final = DEPLOY / "docker" / "Dockerfile"
TEXT: Final = DOCKERFILE.read_text(encoding="utf-8")
PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def _stages() -> dict[str, str]:
    """What stands in each stage, and in those that it is made from."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", TEXT, flags=re.MULTILINE)[1:]
    stages: dict[str, str] = {}
    for base, name, body in zip(parts[0::3], parts[1::3], parts[2::3], strict=True):
        stages[name] = stages.get(base, "") + body
    return stages


def _exposed(stage: str) -> set[int]:
    return {int(port) for line in re.findall(r"^EXPOSE (.*)$", _stages()[stage], re.MULTILINE) for port in line.split()}


def _kept(path: str) -> bool:
    """Whether the build sees a file, as Docker reads .dockerignore: the last line that fits decides."""
    seen = True
    for line in DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and _fits(path, pattern):
            seen = line.startswith("!")
    return seen


def _fits(path: str, pattern: str) -> bool:
    parts = path.split("/")
    heads = ["/".join(parts[: number + 1]) for number in range(len(parts))]
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatch(part, pattern[3:]) for part in parts)
    return any(fnmatch.fnmatch(head, pattern) and head.count("/") == pattern.count("/") for head in heads)


@pytest.mark.processes
def test_hadolint_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, str(DOCKERFILE)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_ports_are_those_of_the_stack() -> None:
    all_ports = {port for service in STACK for port in (service.port, service.metrics_port) if port}
    assert _exposed("caudal-spark") == all_ports | {SPARK_CONNECT_PORT}
    assert _exposed("caudal") == all_ports - {service.port for service in STACK if service.name == "connect"}


def test_what_is_copied_is_there_and_not_ignored() -> None:
    copied = [line.split()[:-1] for line in re.findall(r"^COPY (?!--from)(.*)$", TEXT, re.MULTILINE)]
    names = {name for line in copied for name in line if name != "."}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "requirements.lock"}
    for name in names:
        assert (REPOSITORY / name).is_file()
        assert _kept(name)


def test_the_build_sees_our_packages_and_nothing_else() -> None:
    for package in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert _kept(f"{package}/__init__.py"), package
    for other in (
        ".git/config",
        ".venv/bin/python",
        "tests/conftest.py",
        "caudal-data/orders-0/0.log",
        "deploy/__pycache__/a.pyc",
    ):
        assert not _kept(other), other


def test_what_is_installed_is_an_extra_of_the_project() -> None:
    installed = re.findall(r'"\.\[([\w,]+)\]"', TEXT)
    assert installed == ["broker,registry,proxy", "all"]
    assert {extra for names in installed for extra in names.split(",")} <= set(
        PROJECT["project"]["optional-dependencies"]
    )


def test_dependencies_are_those_that_were_tested() -> None:
    installs = re.findall(r"pip install (.*)$", TEXT, re.MULTILINE)
    assert installs
    assert all("--constraint requirements.lock" in install or "--no-deps" in install for install in installs)


def test_nobody_is_root() -> None:
    for target in ("caudal", "caudal-spark"):
        users = re.findall(r"^USER (.*)$", _stages()[target], re.MULTILINE)
        assert users[-1:] == ["10001:10001"]
    assert "--uid 10001" in TEXT
    assert "--gid 10001" in TEXT


def test_the_command_of_the_image_is_ours_and_its_health_is_asked() -> None:
    for target in ("caudal", "caudal-spark"):
        body = _stages()[target]
        entry = re.search(r"^ENTRYPOINT (.*)$", body, re.MULTILINE)
        health = re.search(r"^HEALTHCHECK .* CMD (.*)$", body, re.MULTILINE)
        assert entry is not None
        assert health is not None
        assert json.loads(entry[1])[-1] in PROJECT["project"]["scripts"]
        assert json.loads(health[1]) == ["python", "-m", "deploy.health_check"]
