"""Session windows of one key: how rows make them grow and merge, and when they are closed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from streams.functions.states import Aggregator

StoredSession: TypeAlias = Sequence[Any]
"""Start, end, and the states of the aggregates."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A row: its time, the time of the stream with it, and the arguments of each aggregate."""

    time: int
    stream_time: int
    values: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Emitted:
    """A session that is given out; `results` is None for one that is deleted under these bounds."""

    start: int
    end: int
    results: list[object] | None


@dataclass(slots=True)
class _Session:
    start: int
    end: int
    states: list[Any]
    is_touched: bool = False


@dataclass(slots=True)
class SessionWindows:
    """The open sessions of a key while a batch is processed."""

    gap_ms: int
    grace_ms: int
    aggregators: Sequence[Aggregator[Any]]
    is_final: bool
    stored: Iterable[StoredSession] = ()
    sequence: int = 0
    """How many rows there have been: the order in which aggregates see them."""
    late: int = 0
    """How many rows of this batch were too late."""
    _open: list[_Session] = field(default_factory=list)
    _closed: list[_Session] = field(default_factory=list)
    _known: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._open = [_Session(start, end, list(states)) for start, end, states in self.stored]
        self._known = {(one.start, one.end) for one in self._open}

    def add(self, row: SessionRow) -> None:
        """Add a row to the session that it belongs to, or count it as late."""
        self.close(row.stream_time)
        near: list[_Session] = []
        far: list[_Session] = []
        for one in self._open:
            is_near = one.start - self.gap_ms <= row.time <= one.end + self.gap_ms
            (near if is_near else far).append(one)
        start = min([row.time, *(one.start for one in near)])
        end = max([row.time, *(one.end for one in near)])
        if self._is_closed(end, row.stream_time):
            self.late += 1
            return
        states = near[0].states if near else [one.start() for one in self.aggregators]
        for other in near[1:]:
            states = [one.merge(*pair) for one, *pair in zip(self.aggregators, states, other.states, strict=True)]
        self.sequence += 1
        arguments = zip(self.aggregators, states, row.values, strict=True)
        states = [one.add(state, values, self.sequence) for one, state, values in arguments]
        self._open = sorted([*far, _Session(start, end, states, is_touched=True)], key=lambda one: one.start)

    def close(self, stream_time: int) -> None:
        """Close the sessions that no row can join any more at this time."""
        if any(self._is_closed(one.end, stream_time) for one in self._open):
            self._closed += [one for one in self._open if self._is_closed(one.end, stream_time)]
            self._open = [one for one in self._open if not self._is_closed(one.end, stream_time)]

    def emitted(self) -> list[Emitted]:
        """What this batch gives out: deletions first."""
        if self.is_final:
            return [self._emitted(one) for one in self._closed]
        there = {(one.start, one.end) for one in (*self._closed, *self._open)}
        deleted = [Emitted(start, end, None) for start, end in sorted(self._known - there)]
        return deleted + [self._emitted(one) for one in (*self._closed, *self._open) if one.is_touched]

    def to_store(self) -> list[StoredSession]:
        """The open sessions."""
        return [(one.start, one.end, one.states) for one in self._open]

    def next_close(self) -> int | None:
        """The first time of the stream at which one of the open sessions is closed."""
        return min((one.end for one in self._open), default=0) + self._rest() if self._open else None

    def _emitted(self, session: _Session) -> Emitted:
        results = [one.result(state) for one, state in zip(self.aggregators, session.states, strict=True)]
        return Emitted(session.start, session.end, results)

    def _is_closed(self, end: int, stream_time: int) -> bool:
        return end + self._rest() <= stream_time

    def _rest(self) -> int:
        """From the end of a session, which still belongs to it, to the time when it is closed."""
        return self.gap_ms + self.grace_ms + 1
