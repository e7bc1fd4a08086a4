"""Java's archive of Spark's classes (class data sharing), with which Spark starts sooner.

The file belongs to an installation and one Java: `caudal spark prepare` writes it, every engine uses it. Java itself
checks whether it still fits, and goes on without it if not.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streams.errors import EngineUnavailable
from streams.spark.java import find_java, java_path

_REHEARSAL: Final = "streams.spark.engine.rehearsal"
_REHEARSAL_TIMEOUT_S: Final = 600.0
_TAIL_LINES: Final = 8


def archive_file(environment: Mapping[str, str]) -> Path:
    """The archive of this installation's Spark for the Java that it would run on."""
    spec = importlib.util.find_spec("pyspark")
    spark = spec.origin if spec is not None else None
    identity = f"{java_path(environment).resolve()}\n{spark}"
    return Path(sys.prefix) / "var" / "caudal" / f"spark-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def archive_options(file: Path) -> list[str]:
    """Java's options to use it; none while there is no archive."""
    if not file.is_file():
        return []
    # Without these, Java prints at every start why it cannot use an outdated archive.
    return [f'"-XX:SharedArchiveFile={file}"', "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def recording_options(file: Path) -> list[str]:
    """Java's options to write it on exit, and to compile quickly rather than well, because it does not run long."""
    return [f'"-XX:ArchiveClassesAtExit={file}"', "-XX:TieredStopAtLevel=1", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def make_archive(environment: Mapping[str, str]) -> Path:
    """Start Spark once, let it do a little of everything, and archive its classes; raises `EngineUnavailable`."""
    find_java(environment)
    file = archive_file(environment)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, ignore_cleanup_errors=True) as folder:
            made = Path(folder) / "classes.jsa"
            _rehearse(Path(folder), made, environment)
            with made.open("rb") as written:
                os.fsync(written.fileno())  # Java checks whether it fits, not whether it is complete
            made.replace(file)
    except OSError as error:
        raise EngineUnavailable(f"Spark's classes cannot be stored in {file.parent}: {error}") from error
    return file


def _rehearse(folder: Path, made: Path, environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", _REHEARSAL, str(folder / "engine"), str(made)]
    output = folder / "output.log"
    with output.open("wb") as file:
        try:
            code = subprocess.run(
                command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                timeout=_REHEARSAL_TIMEOUT_S, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"Spark's rehearsal did not end within {_REHEARSAL_TIMEOUT_S:.0f} s") from None
    if code != 0 or not made.is_file():
        said = "\n".join(output.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
        java = find_java(environment).version
        raise EngineUnavailable(f"Java {java} did not archive Spark's classes; its output ends with:\n{said}")
