"""Scripts that pass for a Java, so that no test has to start one."""

from pathlib import Path


def made_up_java(folder: Path, script: str = "echo 'openjdk version \"17.0.1\"' >&2") -> dict[str, str]:
    """An environment whose Java is a script; unless told otherwise it says that it is Java 17, no more."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": "/usr/bin:/bin"}
