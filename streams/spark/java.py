"""Finds the Java that Spark will run on before anything starts: errors of a JVM that is too old are hard to read."""

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
# Spark needs this module to start; runtimes that were stripped down with jlink may lack it.
_VECTOR_MODULE: Final = "jdk.incubator.vector"
_INSTALL: Final = """Install one:
  Debian, Ubuntu   apt-get install openjdk-17-jre-headless
  Fedora, RHEL     dnf install java-17-openjdk-headless   (or java-21-openjdk-headless)
  Alpine           apk add openjdk17-jre-headless
  macOS            brew install openjdk@17
or set JAVA_HOME to the folder of an installed one."""


class Java(msgspec.Struct, frozen=True, kw_only=True):
    """A Java that Spark can run on."""

    path: Path
    version: int


def find_java(environment: Mapping[str, str]) -> Java:
    """The Java that Spark would use (JAVA_HOME, then PATH); raises `JavaMissing`, which says how to install one."""
    path = java_path(environment)
    output = _run(path, f"--add-modules={_VECTOR_MODULE}", "-version")
    found = _VERSION.search(output)
    # If it does not start the way Spark would start it: it is too old, lacks the module, or has another problem.
    plain = output if found else _run(path, "-version")
    version = _VERSION.search(plain)
    if version is None:
        shown = plain.strip()[:300] or "nothing"
        raise JavaMissing(f"{path} does not report its version; it printed: {shown}\n{_INSTALL}")
    if int(version[1]) < VERSION_MIN:
        raise JavaMissing(f"{path} is Java {version[1]}; Spark needs Java {VERSION_MIN} or newer.\n{_INSTALL}")
    if found is None:
        reason = f"it lacks the module {_VECTOR_MODULE}" if _VECTOR_MODULE in output else output.strip()[:300]
        raise JavaMissing(f"{path} is Java {version[1]}, but Spark cannot run on it: {reason}.\n{_INSTALL}")
    return Java(path=path, version=int(version[1]))


def java_path(environment: Mapping[str, str]) -> Path:
    """The path of that Java, whatever its version."""
    if home := environment.get("JAVA_HOME", "").strip():
        path = Path(home) / "bin" / "java"
        if not path.is_file():
            raise JavaMissing(f"JAVA_HOME is {home}, but there is no bin/java in it. Correct or unset it.")
        return path
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is None:
        raise JavaMissing(f"Spark needs Java {VERSION_MIN} or newer, and there is no Java on this machine.\n{_INSTALL}")
    return Path(found)


def _run(path: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            [path, *arguments], capture_output=True, timeout=_ANSWER_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise JavaMissing(f"{path} does not answer within {_ANSWER_TIMEOUT_S:.0f} s.\n{_INSTALL}") from None
    except OSError as error:
        raise JavaMissing(f"{path} cannot be run: {error}\n{_INSTALL}") from error
    return (answer.stderr + answer.stdout).decode(errors="replace")
