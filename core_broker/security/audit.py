"""The audit log: who was refused, and who changed something, from where and when, as JSON lines.

It can hold no secret: of a request only the fields in `_SHOWN` are written, which name things and never hold values of
configs, credentials or tokens. It cannot be used to fill a disk or to forge lines: events per second, lengths and file
sizes are bounded, and everything but printable ASCII is escaped. A thread writes the file, so that a slow disk delays
nothing; if it falls behind, events are left out and counted.
"""

import io
import json
import logging
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.principals import Principal
from core_broker.security.authorizer import Denial
from core_broker.service.clock import Clock
from core_broker.settings.authorization import AuditSettings

log = logging.getLogger(__name__)

Json: TypeAlias = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"] | None
Sink: TypeAlias = Callable[[Mapping[str, Json]], None]

_SHOWN: Final = frozenset(
    {
        "add_partitions", "assignments", "broker_id", "broker_ids", "config_operation", "configs", "count",
        "creations", "deletions", "dirs", "election_type", "entity", "entity_name", "entity_type", "entries",
        "feature", "feature_updates", "filters", "group_id", "groups_names", "host", "host_filter", "key",
        "max_version_level", "mechanism", "name", "num_partitions", "offset", "operation", "ops",
        "owner_principal_name", "owner_principal_type", "partition_index", "partitions", "path",
        "pattern_type_filter", "permission_type", "principal", "principal_filter", "principal_name",
        "principal_type", "remove", "renewers", "replicas", "replication_factor", "resource_name",
        "resource_name_filter", "resource_pattern_type", "resource_type", "resource_type_filter", "resources",
        "topic", "topic_id", "topic_names", "topic_partitions", "topics", "upgrade_type", "upsertions",
        "validate_only", "voter_id",
    }
)  # fmt: skip
"""The fields of requests that are written; none of them ever holds a secret. All others are left out."""
_AUTHORIZATION_CODES: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
_ITEMS_MAX: Final = 200
"""Elements of all lists of a request that are written."""
_CHARACTERS_MAX: Final = 256
_QUEUED_MAX: Final = 10_000
_CLOSE_SECONDS: Final = 5.0


class AuditLog:
    """Takes events and hands them to a sink, as many as are allowed per second."""

    def __init__(self, clock: Clock, sink: Sink, *, events_per_second_max: int = 200) -> None:
        self._clock = clock
        self._sink = sink
        self._denials = _Allowance(events_per_second_max)
        self._changes = _Allowance(events_per_second_max)

    def denied(self, denial: Denial) -> None:
        """Note that a request was refused."""
        if not self._admits(self._denials, denial.principal, denial.host):
            return
        name = "any" if denial.name is None else denial.name
        self._write(
            "denied",
            denial.principal,
            denial.host,
            denial.api,
            operation=denial.operation.name,
            resource=_clean(f"{denial.kind.name}:{name}"),
            reason=denial.decision.reason,
            rule=None if denial.decision.rule is None else _clean(str(denial.decision.rule)),
        )

    def changed(self, principal: Principal, host: str, api: str, request: Message, response: Message) -> None:
        """Note a request that changes something, and what became of it.

        One that was refused as a whole is in the log as a denial already.
        """
        codes = _error_codes(response)
        failures = [code for code in codes if code != ErrorCode.NONE]
        if failures and len(failures) == len(codes) and set(failures) <= _AUTHORIZATION_CODES:
            return
        if not self._admits(self._changes, principal, host):
            return
        outcome = "ok" if not failures else "failed" if len(failures) == len(codes) else "partly failed"
        names = sorted({ErrorCode(code).name for code in failures})
        self._write("changed", principal, host, api, request=_Request().shown(request), outcome=outcome, errors=names)

    def login_refused(self, user: str, host: str, *, method: str, reason: str) -> None:
        """Note that a login at an HTTP service failed. The user is who it claims to be, empty if it is not known."""
        claimed = Principal("User", user)
        if self._admits(self._denials, claimed, host):
            self._write("login refused", claimed, host, method, reason=_clean(reason))

    def changed_over_http(self, principal: Principal, host: str, api: str, *, resources: Sequence[str]) -> None:
        """Note a request to an HTTP service that has changed something; `resources` name it and hold no values."""
        if not self._admits(self._changes, principal, host):
            return
        shown = [_clean(name) for name in resources[:_ITEMS_MAX]]
        if len(resources) > len(shown):
            shown.append(f"and {len(resources) - len(shown)} more")
        self._write("changed", principal, host, api, request={"resources": shown}, outcome="ok", errors=[])

    def close(self) -> None:
        """Write how many events were left out last."""
        self._report_left_out()

    def _admits(self, allowance: "_Allowance", principal: Principal, host: str) -> bool:
        now = self._clock.monotonic()
        if allowance.is_over(now):
            self._report_left_out()
            allowance.restart(now)
        return allowance.take((str(principal), host))

    def _report_left_out(self) -> None:
        for event, allowance in (("denied", self._denials), ("changed", self._changes)):
            count = allowance.take_left_out()
            if count:
                self._sink({"time": self._time(), "event": f"{event} (left out)", "count": count})

    def _write(self, event: str, principal: Principal, host: str, api: str, **details: Json) -> None:
        head: dict[str, Json] = {
            "time": self._time(),
            "event": event,
            "principal": _clean(str(principal)),
            "host": _clean(host),
            "api": api,
        }
        self._sink({**head, **details})

    def _time(self) -> str:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")


class _Allowance:
    """How many events may be written in one second: a quarter of them of one principal at one host."""

    def __init__(self, per_second_max: int) -> None:
        self._per_second_max = per_second_max
        self._per_source_max = max(1, per_second_max // 4)
        self._began = -1.0
        self._left_out = 0
        self._taken = 0
        self._taken_by: Counter[tuple[str, str]] = Counter()

    def is_over(self, now: float) -> bool:
        """Whether the second is over."""
        return not self._began <= now < self._began + 1

    def restart(self, now: float) -> None:
        """Begin another second."""
        self._began = now
        self._taken = 0
        self._taken_by.clear()

    def take(self, source: tuple[str, str]) -> bool:
        """Whether one more event may be written."""
        if self._taken >= self._per_second_max or self._taken_by[source] >= self._per_source_max:
            self._left_out += 1
            return False
        self._taken += 1
        self._taken_by[source] += 1
        return True

    def take_left_out(self) -> int:
        """How many events were left out since the last call."""
        count, self._left_out = self._left_out, 0
        return count


# -- sinks --


def to_service_log(event: Mapping[str, Json]) -> None:
    """Write an event to the log of the service: denials at INFO, and changes at DEBUG."""
    level = logging.DEBUG if event["event"] == "changed" else logging.INFO
    if log.isEnabledFor(level):
        log.log(level, "audit", extra={key: _as_text(event[key]) for key in event if key != "time"})


class AuditFile:
    """A file of JSON lines that only its owner may read; older ones are renamed to .1, .2 and so on.

    What cannot be written, because the disk is full or too slow, is left out and reported in the log of the service.
    """

    def __init__(self, path: Path, *, bytes_max: int, files_max: int) -> None:
        """Raises OSError if the file cannot be written."""
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._events: queue.Queue[Mapping[str, Json] | None] = queue.Queue(_QUEUED_MAX)
        self._file = self._open()
        self._size = self._file.tell()
        self.left_out = 0
        """How many events could not be written."""
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def __call__(self, event: Mapping[str, Json]) -> None:
        """Have an event written soon."""
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._on_failure("the disk is too slow")

    def close(self) -> None:
        """Write what is left, and close the file."""
        try:
            self._events.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            line = (json.dumps(event) + "\n").encode("ascii")
            try:
                if self._file.closed:  # the last attempt to begin another one has failed
                    self._file = self._open()
                if self._size and self._size + len(line) > self._bytes_max:
                    self._rotate()
                self._file.write(line)
                self._size += len(line)
                self._has_failed = False
            except OSError as error:
                self._on_failure(str(error))
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._files_max - 1, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        if self._files_max == 1:
            self._path.unlink(missing_ok=True)
        self._file = self._open()
        self._size = self._file.tell()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _open(self) -> io.FileIO:
        return open(self._path, "ab", buffering=0, opener=lambda path, flags: os.open(path, flags, 0o600))

    def _on_failure(self, reason: str) -> None:
        self.left_out += 1
        if not self._has_failed:
            self._has_failed = True
            log.error("audit log cannot be written; events are left out", extra={"reason": reason})


def sink_of(settings: AuditSettings) -> Sink | AuditFile:
    """Where the settings want events to be written. Raises OSError if that is a file that cannot be."""
    if settings.audit_log_file is None:
        return to_service_log
    return AuditFile(
        Path(settings.audit_log_file),
        bytes_max=settings.audit_log_max_bytes,
        files_max=settings.audit_log_max_files,
    )


@contextmanager
def audit_log_of(settings: AuditSettings, clock: Clock) -> Iterator[AuditLog]:
    """The audit log of the settings, open while the block runs. Raises OSError if its file cannot be written."""
    sink = sink_of(settings)
    audit = AuditLog(clock, sink, events_per_second_max=settings.audit_log_max_events_per_second)
    try:
        yield audit
    finally:
        audit.close()
        if isinstance(sink, AuditFile):
            sink.close()


# -- what is written --


class _Request:
    """A request as it is written: the fields that name things, of a bounded number of items."""

    def __init__(self) -> None:
        self._items_left = _ITEMS_MAX

    def shown(self, message: msgspec.Struct) -> dict[str, Json]:
        """The fields of a request or of a part of it; those that are empty are left out."""
        fields = ((name, getattr(message, name)) for name in message.__struct_fields__)
        return {
            name: self._value(value)
            for name, value in fields
            if (name in _SHOWN or isinstance(value, float)) and value is not False and value not in (None, "", [])
        }

    def _value(self, value: object) -> Json:
        match value:
            case msgspec.Struct():
                return self.shown(value)
            case list():
                return self._list(value)
            case bytes():
                return value[:16].hex()
            case str():
                return _clean(value)
            case int() | float():
                return value
            case _:
                return None

    def _list(self, items: Sequence[object]) -> list[Json]:
        shown: list[Json] = []
        for item in items:
            if not self._items_left:
                shown.append(f"and {len(items) - len(shown)} more")
                break
            self._items_left -= 1
            shown.append(self._value(item))
        return shown


def _error_codes(message: msgspec.Struct) -> list[int]:
    """The error codes in a response: of its items if it has some, otherwise its own."""
    own = getattr(message, "error_code", None)
    nested = [
        code
        for name in message.__struct_fields__
        if isinstance(items := getattr(message, name), list)
        for item in items
        if isinstance(item, msgspec.Struct)
        for code in _error_codes(item)
    ]
    if own:
        return [own]
    return nested or ([] if own is None else [own])


def _clean(text: str) -> str:
    """Text from outside, shortened, with everything but printable characters escaped."""
    shown = text[:_CHARACTERS_MAX]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return shown if len(text) <= _CHARACTERS_MAX else f"{shown}..."


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
