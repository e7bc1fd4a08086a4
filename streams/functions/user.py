"""Users' Python functions: what the files of a folder define, and the functions themselves."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from typing_extensions import override

import streams
from streams.functions.conversion import checked
from streams.functions.files import extension_files, functions_in
from streams.functions.reading import SECONDS_MAX, FileFindings
from streams.functions.signature import Loaded, Signature
from streams.functions.states import Aggregator, Values
from streams.model.types import parse_type

log = logging.getLogger(__name__)

_ANSWER_BYTES_MAX: Final = 4 << 20
_NUMBERS: Final = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")
_TRIES: Final = 2
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")


class Problem(msgspec.Struct, frozen=True):
    """A file that cannot be used, and why."""

    file: str
    message: str


class Findings(msgspec.Struct, frozen=True):
    """What the files of a folder define."""

    functions: tuple[Signature, ...] = ()
    problems: tuple[Problem, ...] = ()


def describe(folder: str | Path) -> list[Signature]:
    """The functions that the files of a folder define; files that cannot be used are logged."""
    findings = find(folder)
    for problem in findings.problems:
        log.warning("a file of functions cannot be used", extra={"file": problem.file, "why": problem.message})
    return list(findings.functions)


def find(folder: str | Path, *, timeout_seconds: float = SECONDS_MAX) -> Findings:
    """The functions that the files of a folder define, and the files that cannot be used.

    Child processes run the files, for some time and with some memory only: what they do cannot harm the service.
    """
    path = Path(folder).absolute()
    if not str(folder) or not path.is_dir():
        return Findings()
    try:
        files = extension_files(path)
    except (OSError, ValueError) as error:
        return Findings(problems=(Problem(str(path), str(error)),))
    return _unique(_read_files(files, timeout_seconds))


def _read_files(files: Sequence[Path], timeout_seconds: float) -> list[FileFindings]:
    """Of each file; one that ends the child, or takes too long, is left out of the next try."""
    found: list[FileFindings] = []
    end = time.monotonic() + _TRIES * timeout_seconds
    while len(found) < len(files):
        rest = files[len(found) :]
        if time.monotonic() >= end:
            return [*found, *(FileFindings(file.name, problem="other files took too long") for file in rest)]
        answer, why = _ask_child(rest, timeout_seconds)
        found += _lines(answer)[: len(rest)]
        if len(found) < len(files):
            found.append(FileFindings(files[len(found)].name, problem=why))
    return found


def _lines(answer: bytes) -> list[FileFindings]:
    found = []
    for line in answer.splitlines(keepends=True):
        with suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(line, type=FileFindings))
    return found


def _ask_child(files: Sequence[Path], timeout_seconds: float) -> tuple[bytes, str]:
    """The lines that the child wrote, and what ended it if it has not read all files."""
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment["PYTHONPATH"] = str(Path(streams.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-m", "streams.functions.reading", *map(str, files)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    try:
        answer, _ = child.communicate(timeout=timeout_seconds)
        return answer[:_ANSWER_BYTES_MAX], "it ended the process that reads files"
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"")[:_ANSWER_BYTES_MAX], f"it took longer than {timeout_seconds:g} seconds to be read"
    finally:
        # With all that the files have started.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _unique(files: Sequence[FileFindings]) -> Findings:
    """Each overload once: the first one in the order of the files' names."""
    functions: dict[tuple[str, tuple[str, ...]], Signature] = {}
    problems = [Problem(file.file, file.problem) for file in files if file.problem is not None]
    for one in (one for file in files for one in file.functions):
        first = functions.setdefault((one.name, one.types), one)
        if first is not one:
            problems.append(Problem(one.file, f"{one.name}({', '.join(one.types)}) is defined in {first.file} already"))
    return Findings(tuple(functions.values()), tuple(problems))


def load(folder: str | Path, name: str) -> list[Loaded]:
    """The overloads of a function, with the functions themselves: its file is run in this process."""
    found = []
    for path in extension_files(Path(folder)):
        try:
            found += [one for one in functions_in(path) if one.signature.name == name]
        except (Exception, SystemExit) as error:  # noqa: BLE001  # another file must not matter
            log.warning("a file of functions cannot be used", extra={"file": path.name, "why": str(error)})
    return found


def load_overload(folder: str | Path, name: str, types: Sequence[str]) -> Loaded:
    """The overload for arguments of exactly these types; ValueError if there is none (any more)."""
    for one in load(folder, name):
        if one.signature.types == tuple(types):
            return one
    raise ValueError(f"{folder or 'ksql.extension.dir'} has no function {name}({', '.join(types)}) (any more)")


def load_aggregate(folder: str | Path, name: str, types: Sequence[str]) -> Aggregator[Any]:
    """An aggregate of a user for arguments of some types, whose numbers may have to be widened; ValueError if none."""
    aggregates = [one for one in load(folder, name) if one.signature.kind == "aggregate"]
    chosen = nearest([one.signature for one in aggregates], types)
    if chosen is None:
        raise ValueError(f"{folder or 'ksql.extension.dir'} has no aggregate {name}({', '.join(types)}) (any more)")
    return UserAggregate(next(one for one in aggregates if one.signature is chosen))


def nearest(overloads: Sequence[Signature], types: Sequence[str]) -> Signature | None:
    """The overload for arguments of some types whose numbers have to be widened least; None if none takes them."""
    costs = [
        (cost, number) for number, one in enumerate(overloads) if (cost := _widening(types, one.types)) is not None
    ]
    return overloads[min(costs)[1]] if costs else None


def _widening(given: Sequence[str], wanted: Sequence[str]) -> int | None:
    """How far numbers have to be widened; None if that does not help."""
    if len(given) != len(wanted):
        return None
    steps = []
    for has, needs in zip(given, wanted, strict=True):
        known = (has.partition("(")[0], needs.partition("(")[0])
        if has != needs and not set(known) <= set(_NUMBERS):
            return None
        steps.append(0 if has == needs else _NUMBERS.index(known[1]) - _NUMBERS.index(known[0]))
    return None if any(step < 0 for step in steps) else sum(steps)


class UserAggregate(Aggregator[Any]):
    """An aggregate of a user. It goes on without a row for which it raises; a result that it cannot make is NULL."""

    def __init__(self, loaded: Loaded) -> None:
        self._object = loaded.target()
        self._check = checked(parse_type(loaded.signature.result))
        self._arguments = [checked(parse_type(one)) for one in loaded.signature.types]
        self.has_undo = loaded.signature.has_undo

    @override
    def start(self) -> Any:
        return self._object.start()

    @override
    def add(self, state: Any, values: Values, at: int) -> Any:
        with suppress(Exception, SystemExit):
            return self._object.add(state, *self._converted(values))
        return state

    @override
    def undo(self, state: Any, values: Values) -> Any:
        with suppress(Exception, SystemExit):
            return self._object.undo(state, *self._converted(values))
        return state

    @override
    def merge(self, one: Any, other: Any) -> Any:
        with suppress(Exception, SystemExit):
            return self._object.merge(one, other)
        return one

    @override
    def result(self, state: Any) -> Any:
        with suppress(Exception, SystemExit):
            return self._check(self._object.result(state))
        return None

    def _converted(self, values: Values) -> list[object]:
        return [convert(value) for convert, value in zip(self._arguments, values, strict=True)]
