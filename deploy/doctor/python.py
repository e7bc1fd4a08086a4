"""Python's version, and the packages that each part of the platform needs."""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from deploy.doctor.finding import Context, Finding, ok, problem, warning

_DISTRIBUTION: Final = "caudal"
_PARTS: Final = {
    "tools": (),
    "broker": ("broker",),
    "registry": ("registry",),
    "rest-proxy": ("proxy",),
    "connect": ("connect", "connectors"),
    "spark": ("spark",),
    "streams": ("streams",),
}
"""The extras of our distribution that each part needs; the tools need none."""
_MODULES: Final = {
    "broker": "core_broker.__main__",
    "registry": "schema_registry.__main__",
    "rest-proxy": "rest_proxy.__main__",
    "connect": "connect.app",
    "spark": "pyspark.sql",
    "streams": "streams.app",
}
"""What a part loads when it starts. Imported in another process, because a broken extension may crash it."""
_IMPORTS: Final = """
import importlib, json, sys
failures = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failures[name] = f"{type(error).__name__}: {error}"
print(json.dumps(failures))
"""
_IMPORT_SECONDS: Final = 20.0
_REPAIR: Final = "install what is missing:  make setup  (without a checkout: install the wheel with [all])"


def python_version(_: Context) -> Iterator[Finding]:
    """Is this Python new enough?"""
    version = ".".join(map(str, sys.version_info[:3]))
    found = f"{version} in {sys.prefix}"
    wanted = importlib.metadata.metadata(_DISTRIBUTION)["Requires-Python"]
    if version in SpecifierSet(wanted):
        yield ok("Python", found)
    else:
        yield problem("Python", f"{found}; Caudal needs {wanted}", "recreate the environment:  make clean setup")


def packages(_: Context) -> Iterator[Finding]:
    """Are the packages of each part installed, in suitable versions?"""
    wanted = importlib.metadata.requires(_DISTRIBUTION) or []
    try:
        broken = _import_failures()
    except subprocess.TimeoutExpired:
        broken = {}
        yield warning("Packages", f"loading them takes more than {_IMPORT_SECONDS:.0f} s: this machine is very busy")
    for part, extras in _PARTS.items():
        needed = requirements_of(wanted, extras)
        wrong = [line for requirement in needed.values() if (line := requirement_problem(requirement))]
        failed = broken.get(_MODULES.get(part, ""))
        if wrong:
            yield problem(f"Packages: {part}", "; ".join(wrong), _REPAIR)
        elif failed:
            yield problem(f"Packages: {part}", f"it cannot be loaded: {failed}", _REPAIR)
        else:
            yield ok(f"Packages: {part}", f"{len(needed)} installed, in suitable versions")


def requirements_of(lines: list[str], extras: tuple[str, ...]) -> dict[str, Requirement]:
    """The requirements of some extras by package; an extra may include others of ours."""
    chosen: dict[str, Requirement] = {}
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            continue
        if requirement.name == _DISTRIBUTION:
            chosen |= requirements_of(lines, tuple(requirement.extras))
        else:
            chosen[f"{requirement.name}{requirement.specifier}"] = requirement
    return chosen


def requirement_problem(requirement: Requirement) -> str:
    """Why a requirement is not met; empty if it is."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} is {version}, but {requirement.specifier} is needed"


def _import_failures() -> Mapping[str, str]:
    """Modules that cannot be loaded, and why; TimeoutExpired if loading takes too long."""
    command = [sys.executable, "-c", _IMPORTS, *_MODULES.values()]
    done = subprocess.run(command, capture_output=True, timeout=_IMPORT_SECONDS, stdin=subprocess.DEVNULL, check=False)
    try:
        failures: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        # An extension that does not fit this machine ends the whole process.
        return dict.fromkeys(_MODULES.values(), f"Python ended with {done.returncode} while loading it")
    return failures
