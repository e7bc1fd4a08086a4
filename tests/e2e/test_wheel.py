"""The built wheel in an environment of its own: complete, and able to run the platform without a checkout."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.service import REPOSITORY, service_environment

pytestmark = pytest.mark.timeout(1800)

_PACKAGES: Final = ("core_broker", "schema_registry", "rest_proxy", "connect", "streams", "connectors", "deploy")
_NO_NETWORK: Final = ("No matching distribution found", "Failed to establish a new connection", "name resolution")
_TIMEOUT_S: Final = 300.0


def _pip(*arguments: str, timeout_s: float = _TIMEOUT_S) -> None:
    """Run pip; a package that cannot be fetched skips the test."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
    if done.returncode and any(words in done.stdout + done.stderr for words in _NO_NETWORK):
        pytest.skip(f"packages cannot be fetched here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(REPOSITORY))
    (built,) = folder.glob("caudal-*.whl")
    return built


@pytest.fixture(
    scope="module",
    params=[
        # The packages of the lock as `make setup` has installed them, borrowed; ours comes from the wheel alone.
        "borrowed",
        # Everything from the index, as a user would: minutes, and a few hundred megabytes.
        pytest.param("index", marks=pytest.mark.slow),
    ],
)
def environment(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and the packages of requirements.lock."""
    folder = tmp_path_factory.mktemp(f"environment-{request.param}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=_TIMEOUT_S)
    target = ("--python", str(folder / "bin" / "python"), "install", "--quiet")
    if request.param == "index":
        _pip(*target, "--constraint", str(REPOSITORY / "requirements.lock"), f"{wheel}[all]", timeout_s=1500)
    else:
        _pip(*target, "--no-deps", str(wheel))
        # Paths in a .pth file are added as they are: the editable install of the checkout stays unseen.
        (packages,) = folder.glob("lib/python3*/site-packages")
        (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if not name.startswith("caudal-")}
    there = {
        str(path.relative_to(REPOSITORY))
        for package in _PACKAGES
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert shipped == there


def test_the_platform_runs_from_the_wheel_without_the_checkout(environment: Path, tmp_path: Path) -> None:
    variables = {key: value for key, value in service_environment().items() if key != "PYTHONPATH"}

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(environment / program), *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    code = f"import {', '.join(_PACKAGES)}; print({', '.join(f'{name}.__file__' for name in _PACKAGES)}, sep='\\n')"
    assert all(Path(file).is_relative_to(environment.parent) for file in run("python", "-P", "-c", code).splitlines())
    run("caudal", "up", "--detach", "--ports", "any", "--data", "data")
    try:
        status = json.loads(run("caudal", "status", "--data", "data", "-o", "json"))
        assert status["ready"]
        # Schemas, connectors and SQL of the examples, the registry's migrations, the connectors' entry points.
        assert "7 of 10 steps done and checked" in run("caudal", "quickstart", "--data", "data", "--no-spark")
    finally:
        run("caudal", "down", "--data", "data")
