"""Finds the Java that Spark will run on, before anything is started: a JVM that is too old says so in riddles."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from streams.errors import JavaMissing

VERSION_MIN: Final = 17
"""The oldest Java that Spark 4 runs on."""
_ANSWER_TIMEOUT_S: Final = 30.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
# Spark asks for this module at start; runtimes that were made small for one program may lack it.
_VECTOR_MODULE: Final = "jdk.incubator.vector"
_INSTALL: Final = """Install one:
  Debian, Ubuntu   apt-get install openjdk-17-jre-headless
  Fedora, RHEL     dnf install java-17-openjdk-headless   (or java-21-openjdk-headless)
  Alpine           apk add openjdk17-jre-headless
  macOS            brew install openjdk@17
or set JAVA_HOME to the folder of one that is there."""


class Java(msgspec.Struct, frozen=True, kw_only=True):
    """A Java that Spark can run on."""

    path: Path
    version: int


def find_java(environment: Mapping[str, str]) -> Java:
    """The Java that Spark would take (JAVA_HOME, then PATH); raises `JavaMissing` that says how to install one."""
    path = java_path(environment)
    said = _ask(path, f"--add-modules={_VECTOR_MODULE}", "-version")
    if found := _VERSION.search(said):
        version = int(found[1])
        if version >= VERSION_MIN:
            return Java(path=path, version=version)
        raise _too_old(path, version)
    raise _explained(path, said)


def java_path(environment: Mapping[str, str]) -> Path:
    """Where that Java is, whatever it is."""
    if home := environment.get("JAVA_HOME", "").strip():
        path = Path(home) / "bin" / "java"
        if not path.is_file():
            raise JavaMissing(f"JAVA_HOME is {home}, but there is no bin/java in it. Unset it or set it right.")
        return path
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is None:
        raise JavaMissing(f"Spark needs Java {VERSION_MIN} or newer, and there is no Java on this machine.\n{_INSTALL}")
    return Path(found)


def _explained(path: Path, said: str) -> JavaMissing:
    """Why it did not start as Spark would start it: it is old, it lacks a module, or it has reasons of its own."""
    plain = _ask(path, "-version")
    found = _VERSION.search(plain)
    if found is None:
        return JavaMissing(f"{path} does not tell its version; it said: {plain.strip()[:300] or 'nothing'}\n{_INSTALL}")
    if int(found[1]) < VERSION_MIN:
        return _too_old(path, int(found[1]))
    lacks = f"it lacks the module {_VECTOR_MODULE}" if _VECTOR_MODULE in said else said.strip()[:300]
    return JavaMissing(f"{path} is Java {found[1]}, but Spark cannot run on it: {lacks}.\n{_INSTALL}")


def _too_old(path: Path, version: int) -> JavaMissing:
    return JavaMissing(f"{path} is Java {version}; Spark needs Java {VERSION_MIN} or newer.\n{_INSTALL}")


def _ask(path: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            [path, *arguments], capture_output=True, timeout=_ANSWER_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise JavaMissing(f"{path} does not answer within {_ANSWER_TIMEOUT_S:.0f} s.\n{_INSTALL}") from None
    except OSError as error:
        raise JavaMissing(f"{path} cannot be run: {error}\n{_INSTALL}") from error
    return (answer.stderr + answer.stdout).decode(errors="replace")
