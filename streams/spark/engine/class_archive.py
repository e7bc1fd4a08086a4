"""Lets Spark start sooner: Java keeps the classes that it needs in a file, checked and laid out as they are in memory.

The file belongs to an installation and to one Java: whoever installs makes it, every engine uses it. Java itself looks
whether it still fits, and does without it when it does not.
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
    """Where the classes of this installation's Spark are kept for the Java that it would run on."""
    spec = importlib.util.find_spec("pyspark")
    spark = spec.origin if spec is not None else None
    of = f"{java_path(environment).resolve()}\n{spark}"
    return Path(sys.prefix) / "var" / "caudal" / f"spark-{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa"


def archive_options(file: Path) -> list[str]:
    """What makes Java use it; nothing while there is none."""
    if not file.is_file():
        return []
    # It would tell each time why it does without a file that does not fit any more.
    return [f'"-XX:SharedArchiveFile={file}"', "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def recording_options(file: Path) -> list[str]:
    """What makes Java write it at its end; until then it compiles quickly rather than well, as it will not run long."""
    return [f'"-XX:ArchiveClassesAtExit={file}"', "-XX:TieredStopAtLevel=1", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def make_archive(environment: Mapping[str, str]) -> Path:
    """Start Spark once, let it do a little of everything, and keep its classes; raises `EngineUnavailable`."""
    find_java(environment)
    file = archive_file(environment)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, ignore_cleanup_errors=True) as folder:
            made = Path(folder) / "classes.jsa"
            _rehearse(Path(folder), made, environment)
            with made.open("rb") as written:
                os.fsync(written.fileno())  # Java looks whether it fits, not whether it is whole
            made.replace(file)
    except OSError as error:
        raise EngineUnavailable(f"Spark's classes cannot be kept in {file.parent}: {error}") from error
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
        raise EngineUnavailable(f"Java {find_java(environment).version} kept no classes; the rehearsal said:\n{said}")
