"""HTTP clients that keep writing through a proxy while what is behind it fails, and record the responses."""

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

from tests.support.clients.confluent import read_to_end
from tests.support.registry import AVRO

BATCH: Final = 20
_JOIN_S: Final = 60.0
_SOCKET_TIMEOUT_S: Final = 45.0
_V2: Final = {"Content-Type": "application/vnd.kafka.json.v2+json"}
_AVRO: Final = {"Content-Type": "application/vnd.kafka.avro.v2+json"}
_JSON: Final = {"Content-Type": "application/json"}
_CLOSED: Final = (http.client.HTTPException, ConnectionError, EOFError)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Where a record went, according to the response."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The error that a client got instead; status 0 when the connection was closed without an answer."""

    status: int
    reason: str
    retry_after: str | None = None


Outcome = Acknowledged | Refused


@dataclass(slots=True, kw_only=True)
class Notes:
    """What became of each record, by its number; shared by all clients."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    slowest_s: float = 0.0
    """The longest that a client waited for an answer."""
    failures: list[str] = field(default_factory=list)
    """What must not happen: each is a failure of the test."""

    @property
    def acknowledged(self) -> dict[int, Acknowledged]:
        """Records that are promised to be in the log."""
        return {
            number: payload for number, payload in self.outcomes.copy().items() if isinstance(payload, Acknowledged)
        }

    @property
    def refusals(self) -> list[Refused]:
        """The errors of the others."""
        return [item for item in self.outcomes.copy().values() if isinstance(item, Refused)]

    def summary(self) -> str:
        """The figures, for manual runs."""
        kinds = Counter((refused.status, refused.reason[:110]) for refused in self.refusals)
        return (
            f"{len(self.outcomes)} sent, {len(self.acknowledged)} acknowledged, slowest {self.slowest_s:.2f} s, {kinds}"
        )


class ProxyLoad:
    """Clients of several kinds, each in a thread, that write to one topic until they are stopped."""

    def __init__(
        self, url: str, topic: str, *, cluster_id: str = "", kinds: Iterable[str], pause_s: float = 0.005
    ) -> None:
        self.notes = Notes()
        self._parts = urlsplit(url)
        self._topic = topic
        self._v3 = f"/v3/clusters/{cluster_id}/topics/{topic}/records"
        self._numbers = itertools.count()
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._refused_by: Counter[int | None] = Counter()
        self._threads = [threading.Thread(target=self._run, args=(kind,), name=kind) for kind in kinds]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self.notes.failures += [f"{thread.name} has not ended" for thread in self._threads if thread.is_alive()]

    def wait_for_acknowledgements(self, count: int = 30, *, timeout_s: float = 40.0) -> float:
        """Wait until so many more records were acknowledged; gives how long that took."""
        began, before = time.monotonic(), len(self.notes.acknowledged)
        while len(self.notes.acknowledged) - before < count:
            assert time.monotonic() - began < timeout_s, f"nothing gets through any more: {self.notes.summary()}"
            time.sleep(0.02)
        return time.monotonic() - began

    def wait_for_refusals(self, *, timeout_s: float = 40.0) -> None:
        """Wait until each client was refused once more: then it has also got all acknowledgements from before."""
        began, before = time.monotonic(), self._refused_by.copy()
        while any(self._refused_by[thread.ident] == before[thread.ident] for thread in self._threads):
            assert time.monotonic() - began < timeout_s, f"not every client is refused: {self.notes.summary()}"
            time.sleep(0.02)

    def _run(self, kind: str) -> None:
        clients: dict[str, Callable[[], None]] = {
            "v2": lambda: self._v2_requests(1, _V2, {}),
            "v2 batch": lambda: self._v2_requests(BATCH, _V2, {}),
            "v2 avro": lambda: self._v2_requests(3, _AVRO, {"value_schema": AVRO}),
            "v3": self._v3_requests,
            "v3 stream": self._v3_streams,
        }
        try:
            clients[kind]()
        except (OSError, ValueError, LookupError) as error:
            self.notes.failures.append(f"{kind}: {error!r}")

    def _connection(self) -> http.client.HTTPConnection:
        assert self._parts.hostname is not None
        return http.client.HTTPConnection(self._parts.hostname, self._parts.port, timeout=_SOCKET_TIMEOUT_S)

    def _numbered(self, count: int) -> list[int]:
        return list(itertools.islice(self._numbers, count))

    # --- requests, one after the other ---

    def _v2_requests(self, count: int, headers: dict[str, str], extra: dict[str, object]) -> None:
        def ask(connection: http.client.HTTPConnection, numbers: Sequence[int]) -> None:
            body = {**extra, "records": [{"key": key(number), "value": {"n": number}} for number in numbers]}
            if extra:
                body["records"] = [{"value": {"n": number}} for number in numbers]
            answer, payload = _asked(connection, f"/topics/{self._topic}", body, headers)
            offsets = payload.get("offsets") or [None] * len(numbers)
            for number, item in zip(numbers, offsets, strict=True):
                self._note(number, _v2_outcome(answer, payload, item))

        self._ask_until_stopped(count, ask)

    def _v3_requests(self) -> None:
        def ask(connection: http.client.HTTPConnection, numbers: Sequence[int]) -> None:
            answer, payload = _asked(connection, self._v3, v3_record(numbers[0]), _JSON)
            self._note(numbers[0], _v3_outcome(answer, payload))

        self._ask_until_stopped(1, ask)

    def _ask_until_stopped(self, count: int, ask: Callable[[http.client.HTTPConnection, Sequence[int]], None]) -> None:
        connection = self._connection()
        while not self._stop.wait(self._pause_s):
            numbers = self._numbered(count)
            began = time.monotonic()
            try:
                ask(connection, numbers)
            except _CLOSED as error:
                connection.close()
                self._lose(numbers, error)
            self.notes.slowest_s = max(self.notes.slowest_s, time.monotonic() - began)
        connection.close()

    # --- streams ---

    def _v3_streams(self) -> None:
        while not self._stop.wait(self._pause_s):
            connection = self._connection()
            waiting: list[int] = []
            try:
                self._one_stream(connection, waiting)
            except _CLOSED as error:
                self._lose(waiting, error)
            finally:
                connection.close()

    def _one_stream(self, connection: http.client.HTTPConnection, waiting: list[int]) -> None:
        """Send a few records, await their answers, and so on; `waiting` are those that have none yet."""
        connection.putrequest("POST", self._v3)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.putheader("Content-Type", "application/json")
        connection.endheaders()
        answer = None
        while not self._stop.wait(self._pause_s):
            waiting += self._numbered(5)
            began = time.monotonic()
            text = b"".join(json.dumps(v3_record(number)).encode() for number in waiting)
            connection.send(b"%x\r\n%b\r\n" % (len(text), text))
            answer = answer or connection.getresponse()
            if answer.status != http.client.OK:
                payload = json.loads(answer.read())
                while waiting:
                    self._note(waiting.pop(0), _v3_outcome(answer, payload))
                return
            while waiting:
                line = answer.readline()
                if not line.endswith(b"\n"):
                    raise EOFError("the stream ended")
                self._note(waiting.pop(0), _v3_outcome(answer, json.loads(line)))
            self.notes.slowest_s = max(self.notes.slowest_s, time.monotonic() - began)
        connection.send(b"0\r\n\r\n")
        if answer:
            answer.read()

    # --- responses ---

    def _note(self, number: int, payload: Outcome) -> None:
        self.notes.outcomes[number] = payload
        self._refused_by[threading.get_ident()] += isinstance(payload, Refused)

    def _lose(self, numbers: Iterable[int], error: BaseException) -> None:
        for number in numbers:
            self.notes.outcomes.setdefault(number, Refused(0, type(error).__name__))


@dataclass(slots=True, kw_only=True)
class Verdict:
    """Where the log and the clients' notes do not agree."""

    lost: list[int]
    """Acknowledged, and not in the log."""
    doubled: list[int]
    misplaced: list[int]
    """Not at the partition and offset of the response."""
    without_offset: list[int]
    """Acknowledged with an unknown offset."""
    refused_but_written: list[int]

    @property
    def is_clean(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.doubled or self.misplaced)

    def summary(self) -> str:
        """The figures, for manual runs."""
        return ", ".join(f"{name} {len(getattr(self, name))}" for name in self.__slots__)


def judge(notes: Notes, bootstrap: str, topic: str) -> Verdict:
    """Compare the responses with the log."""
    places: dict[int, list[Acknowledged]] = {}
    for record in read_to_end(bootstrap, topic):
        places.setdefault(_number(record.value or b""), []).append(Acknowledged(record.partition, record.offset))
    payload = notes.acknowledged
    return Verdict(
        lost=[number for number in payload if number not in places],
        doubled=[number for number, found in places.items() if len(found) > 1],
        misplaced=[n for n, place in payload.items() if place.offset >= 0 and n in places and place not in places[n]],
        without_offset=[number for number, place in payload.items() if place.offset < 0],
        refused_but_written=[number for number in places if number not in payload],
    )


def v3_record(number: int) -> dict[str, Any]:
    """A record in API v3's words."""
    value = {"type": "JSON", "data": {"n": number}}
    return {"key": {"type": "JSON", "data": key(number)}, "value": value}


def key(number: int) -> str:
    """The key of a record."""
    return f"key-{number}"


def _number(value: bytes) -> int:
    """The number in JSON, or in Avro's varint behind a schema id."""
    if value.startswith(b"{"):
        return int(json.loads(value)["n"])
    shifted = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(value[5:]))
    return shifted >> 1


def _asked(
    connection: http.client.HTTPConnection, path: str, body: object, headers: dict[str, str]
) -> tuple[http.client.HTTPResponse, dict[str, Any]]:
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    return answer, json.loads(answer.read())


def _v2_outcome(answer: http.client.HTTPResponse, payload: dict[str, Any], item: dict[str, Any] | None) -> Outcome:
    if item and item["error_code"] is None:
        return Acknowledged(item["partition"], item["offset"])
    reason = item["error"] if item else payload["message"]
    return Refused(answer.status, reason, answer.headers.get("retry-after"))


def _v3_outcome(answer: http.client.HTTPResponse, payload: dict[str, Any]) -> Outcome:
    if payload["error_code"] == http.client.OK:
        return Acknowledged(payload["partition_id"], payload["offset"])
    status = payload["error_code"] if answer.status == http.client.OK else answer.status
    return Refused(status, payload["message"], answer.headers.get("retry-after"))
