"""The child process that reads users' files: whatever they do while they are run ends with it.

It is called with the paths of files, and writes what it has found to its standard output.
"""

import os
import resource
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from streams.functions.files import functions_in
from streams.functions.signature import Signature

SECONDS_MAX: Final = 30
_MEMORY_BYTES_MAX: Final = 4 << 30
_MESSAGE_LENGTH_MAX: Final = 500


class FileFindings(msgspec.Struct, frozen=True):
    """What a file defines, or why it cannot be used."""

    file: str
    functions: tuple[Signature, ...] = ()
    problem: str | None = None


def main(paths: Sequence[str]) -> None:
    """Read some files; a line of JSON for each of them."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What the files print must not come between.
    answer = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(answer, "wb") as output:
        for path in map(Path, paths):
            output.write(msgspec.json.encode(_read(path)) + b"\n")
            output.flush()
    # Not waiting for threads that the files may have started.
    os._exit(0)


def _read(path: Path) -> FileFindings:
    try:
        return FileFindings(path.name, tuple(one.signature for one in functions_in(path)))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a user's file may raise anything
        return FileFindings(path.name, problem=_message(error))


def _message(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()[:_MESSAGE_LENGTH_MAX]


if __name__ == "__main__":
    main(sys.argv[1:])
