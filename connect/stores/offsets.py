"""How far sources have read: a table of the offsets topic, in Kafka Connect's own format."""

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from connect.api.data import Value
from connect.api.errors import DataError
from connect.settings import ConnectSettings
from connect.stores.topic import CompactedTopic, TopicPlan
from core_broker.client.records import IncomingRecord

log = logging.getLogger(__name__)

Partition = Mapping[str, Value]
Offset = Mapping[str, Value]
Change = tuple[Partition, Offset | None]

_LONG: Final = 1 << 63


class OffsetStore:
    """Offsets of all sources, or of those that use one topic. Safe for any number of threads."""

    def __init__(self, settings: ConnectSettings, topic: str | None = None) -> None:
        plan = TopicPlan(
            name=topic or settings.offset_storage_topic,
            key="offsets.storage.topic" if topic else "offset.storage.topic",
            partitions=settings.offset_storage_partitions,
            replication_factor=settings.offset_storage_replication_factor,
        )
        self._topic = CompactedTopic(settings.kafka(), plan, self._apply)
        self._lock = threading.Lock()
        self._offsets: dict[str, dict[bytes, tuple[bytes, dict[str, Value]]]] = {}

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._topic.plan.name

    def start(self) -> None:
        """Read all that is there, and follow what comes."""
        self._topic.start()

    def stop(self) -> None:
        """Follow no more."""
        self._topic.stop()

    def refresh(self) -> None:
        """Wait until all that was committed before this call is known."""
        self._topic.read_to_end()

    def get(self, connector: str, partition: Partition) -> dict[str, Value] | None:
        """How far a part of the other side was read, as far as it is known here; see `refresh`."""
        with self._lock:
            found = self._offsets.get(connector, {}).get(offset_key(connector, partition))
        return dict(found[1]) if found else None

    def all(self, connector: str) -> list[tuple[dict[str, Value], dict[str, Value]]]:
        """Every part and how far it was read."""
        with self._lock:
            found = list(self._offsets.get(connector, {}).items())
        return [(msgspec.json.decode(key)[1], dict(offset)) for key, (_, offset) in found]

    def put_all(self, connector: str, changes: Sequence[Change]) -> None:
        """Write offsets, None to forget one; returns when they are safe."""
        self._topic.send([(self._written_key(connector, part), offset_value(offset)) for part, offset in changes])

    def _written_key(self, connector: str, partition: Partition) -> bytes:
        """The key under which a part stands already, should somebody have written its fields in another order."""
        key = offset_key(connector, partition)
        with self._lock:
            found = self._offsets.get(connector, {}).get(key)
        return found[0] if found else key

    def _apply(self, record: IncomingRecord) -> None:
        parsed = _parsed_key(record)
        if parsed is None or record.key is None:
            return
        connector, partition = parsed
        key = offset_key(connector, partition)
        offset = msgspec.json.decode(record.value) if record.value is not None else None
        with self._lock:
            if isinstance(offset, dict):
                self._offsets.setdefault(connector, {})[key] = (record.key, offset)
            else:
                self._offsets.get(connector, {}).pop(key, None)


def offset_key(connector: str, partition: Partition) -> bytes:
    """The key of an offset's record; DataError when the partition has values that cannot be written."""
    checked(partition)
    ordered = {name: partition[name] for name in sorted(partition, key=_java_order)}
    return msgspec.json.encode([connector, ordered])


def offset_value(offset: Offset | None) -> bytes | None:
    """The value of an offset's record; DataError when the offset has values that cannot be written."""
    if offset is None:
        return None
    checked(offset)
    return msgspec.json.encode(dict(offset))


def checked(fields: Mapping[Any, Value]) -> None:
    """Raise DataError unless all keys are text and all values are numbers, text, bytes or nothing."""
    for name, value in fields.items():
        if not isinstance(name, str):
            raise DataError("Offsets may only use String keys")
        if value is None or isinstance(value, bool | str | bytes):
            continue
        if not isinstance(value, int | float) or not _is_writable(value):
            told = value if isinstance(value, int | float) else type(value).__name__
            raise DataError(f"Offsets may only contain primitive types as values, but field {name} contains {told}")


def _is_writable(number: float) -> bool:
    return -_LONG <= number < _LONG if isinstance(number, int) else math.isfinite(number)


def _parsed_key(record: IncomingRecord) -> tuple[str, dict[str, Value]] | None:
    try:
        match msgspec.json.decode(record.key or b""):
            case [str(connector), dict(partition)]:
                return connector, partition
            case _:
                pass
    except msgspec.DecodeError:
        pass
    where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    log.warning("the key of an offset has an unexpected format, and is passed over", extra=where)
    return None


@lru_cache(maxsize=4096)
def _java_order(name: str) -> tuple[int, str]:
    """Where Java's HashMap of up to twelve entries has a key: Kafka Connect looks offsets up by the bytes of keys."""
    code = 0
    for unit in memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code ^ code >> 16) & 15, name
