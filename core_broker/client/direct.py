"""Requests that the library cannot send: configs of the whole cluster, replicas on the move, a new topic's configs;
and one whose errors it keeps to itself: DescribeAcls.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from core_broker.client.config_entries import SOURCES
from core_broker.client.connection import Connection
from core_broker.client.errors import Rejected, from_code
from core_broker.client.models import Broker, Config, Reassignment, Synonym
from core_broker.client.settings import ClientSettings

T = TypeVar("T")
_CREATE_TOPICS, _DESCRIBE_ACLS, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _LIST_REASSIGNMENTS = 19, 29, 32, 44, 46
_BROKER, _EVERY_BROKER = 4, ""
_SET, _DELETE = 0, 1
_ANY, _LITERAL = 1, 3
_DEFAULT_CONFIG = 5
_TEXT_BYTES_MAX = 32767


class DirectAdmin:
    """Asks one broker (the controller, which all may ask) over a connection of its own."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def cluster_configs(self, broker: Broker) -> list[Config]:
        """The configs that were set for all brokers, by key."""
        body = struct.pack(">ib", 1, _BROKER) + _text(_EVERY_BROKER) + struct.pack(">ib", -1, 1)
        answer = _Answer(self._ask(broker, _DESCRIBE_CONFIGS, 1, body))
        answer.int32()  # how long the request was held back
        (configs,) = answer.items(lambda: _described(answer))
        return sorted(configs, key=lambda config: config.key)

    def alter_cluster_configs(
        self, broker: Broker, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some configs for all brokers and forget others; the rest stays as it is."""
        changes = [_text(key) + struct.pack(">b", _SET) + _text(value) for key, value in put.items()]
        changes += [_text(key) + struct.pack(">b", _DELETE) + _text(None) for key in remove]
        body = struct.pack(">ib", 1, _BROKER) + _text(_EVERY_BROKER) + struct.pack(">i", len(changes))
        body += b"".join(changes) + struct.pack(">?", validate_only)
        answer = _Answer(self._ask(broker, _ALTER_CONFIGS, 0, body))
        answer.int32()
        answer.items(lambda: _raise_error(answer))

    def reassignments(self, broker: Broker) -> list[Reassignment]:
        """Every partition whose replicas are on the move, by topic and number."""
        body = struct.pack(">i", int(self._settings.timeout_ms)) + b"\0\0"  # of all topics
        answer = _CompactAnswer(self._ask(broker, _LIST_REASSIGNMENTS, 0, body, is_flexible=True))
        answer.int32()
        _raise_error(answer)
        topics = answer.items(lambda: _moving(answer))
        return sorted((item for topic in topics for item in topic), key=lambda item: (item.topic, item.partition))

    def new_topic_configs(self, broker: Broker, name: str) -> list[Config]:
        """The configs that a topic would get if it were created now, by key; raises what creating it would raise."""
        topic = _compact(name) + struct.pack(">ih", -1, -1) + b"\1\1\0"  # no assignments, no configs
        body = b"\2" + topic + struct.pack(">i?", int(self._settings.timeout_ms), True) + b"\0"
        answer = _CompactAnswer(self._ask(broker, _CREATE_TOPICS, 5, body, is_flexible=True))
        answer.int32()
        (configs,) = answer.items(lambda: _created(answer))
        return sorted(configs, key=lambda config: config.key)

    def check_acls(self, broker: Broker) -> None:
        """Raise what the cluster says when it is asked for ACLs; asked for few, so that the answer is short."""
        body = struct.pack(">b", _ANY) + _text("nobody's resource") + struct.pack(">b", _LITERAL)
        body += _text(None) + _text(None) + struct.pack(">bb", _ANY, _ANY)
        answer = _Answer(self._ask(broker, _DESCRIBE_ACLS, 1, body))
        answer.int32()
        _raise_error(answer)

    def _ask(self, broker: Broker, key: int, version: int, body: bytes, *, is_flexible: bool = False) -> bytes:
        with Connection(self._settings, broker.host, broker.port) as connection:
            return connection.ask(key, version, body, is_flexible=is_flexible)


# --- what is written ---


def _text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    encoded = value.encode()
    if len(encoded) > _TEXT_BYTES_MAX:
        raise Rejected(f"A text of {len(encoded)} bytes is too long: at most {_TEXT_BYTES_MAX} are taken")
    return struct.pack(">h", len(encoded)) + encoded


def _compact(value: str) -> bytes:
    encoded = value.encode()
    length, head = len(encoded) + 1, bytearray()
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + encoded


# --- what is read ---


class _Answer:
    """The body of an answer, read from its beginning to its end."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._position = 0

    def int8(self) -> int:
        return int(self._unpack(">b"))

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def boolean(self) -> bool:
        return bool(self._unpack(">b"))

    def text(self) -> str | None:
        return self._characters(self.int16())

    def items(self, read: Callable[[], T]) -> list[T]:
        return [read() for _ in range(max(self.int32(), 0))]

    def end(self) -> None:
        """Pass over what newer brokers may add to a structure."""

    def _characters(self, length: int) -> str | None:
        if length < 0:
            return None
        self._position += length
        return self._body[self._position - length : self._position].decode(errors="replace")

    def _unpack(self, form: str) -> int:
        try:
            (value,) = struct.unpack_from(form, self._body, self._position)
        except struct.error as error:
            raise Rejected("the broker's answer ends too early") from error
        self._position += struct.calcsize(form)
        return int(value)


class _CompactAnswer(_Answer):
    """The same with lengths of variable size, and room for additions (KIP-482)."""

    def text(self) -> str | None:
        return self._characters(self.varint() - 1)

    def items(self, read: Callable[[], T]) -> list[T]:
        return [read() for _ in range(max(self.varint() - 1, 0))]

    def end(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self._position += self.varint()

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.int8() & 0xFF
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def _raise_error(answer: _Answer) -> None:
    """Read an error and its message, and raise it if there is one."""
    code, message = answer.int16(), answer.text()
    if code:
        raise from_code(code, message)


def _described(answer: _Answer) -> list[Config]:
    _raise_error(answer)
    answer.int8()  # the kind of the resource
    answer.text()  # its name
    return answer.items(lambda: _config(answer))


def _config(answer: _Answer) -> Config:
    key, value, is_read_only = answer.text() or "", answer.text(), answer.boolean()
    source, is_sensitive = answer.int8(), answer.boolean()
    synonyms = [] if isinstance(answer, _CompactAnswer) else answer.items(lambda: _synonym(answer))
    answer.end()
    return Config(
        key=key,
        value=value,
        is_default=source == _DEFAULT_CONFIG,
        is_read_only=is_read_only,
        is_sensitive=is_sensitive,
        source=SOURCES.get(source, "UNKNOWN"),
        synonyms=tuple(synonyms),
    )


def _synonym(answer: _Answer) -> Synonym:
    key, value, source = answer.text() or "", answer.text(), answer.int8()
    return Synonym(key=key, value=value, source=SOURCES.get(source, "UNKNOWN"))


def _created(answer: _CompactAnswer) -> list[Config]:
    answer.text()  # the name of the topic
    _raise_error(answer)
    answer.int32(), answer.int16()  # how many partitions and replicas it would get
    configs = answer.items(lambda: _config(answer))
    answer.end()
    return configs


def _moving(answer: _CompactAnswer) -> Sequence[Reassignment]:
    topic = answer.text() or ""

    def partition() -> Reassignment:
        index = answer.int32()
        replicas, adding, removing = (tuple(answer.items(answer.int32)) for _ in range(3))
        answer.end()
        return Reassignment(topic=topic, partition=index, replicas=replicas, adding=adding, removing=removing)

    found = answer.items(partition)
    answer.end()
    return found
