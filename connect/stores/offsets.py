"""Offsets of sources: the offsets topic as a table, in Kafka Connect's format."""

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


class OffsetStore(CompactedTopic):
    """Offsets of all sources, or of those with a separate topic. Thread-safe."""

    def __init__(self, settings: ConnectSettings, topic: str | None = None) -> None:
        plan = TopicPlan(
            name=topic or settings.offset_storage_topic,
            key="offsets.storage.topic" if topic else "offset.storage.topic",
            partitions=settings.offset_storage_partitions,
            replicas_wanted=settings.offset_storage_replication_factor,
        )
        super().__init__(settings.kafka(), plan, self._apply)
        self._lock = threading.Lock()
        self._offsets: dict[str, dict[bytes, tuple[bytes, dict[str, Value]]]] = {}

    def get(self, connector: str, partition: Partition) -> dict[str, Value] | None:
        """The offset of a source partition, as last read; see `refresh`."""
        with self._lock:
            found = self._offsets.get(connector, {}).get(offset_key(connector, partition))
        return dict(found[1]) if found else None

    def all(self, connector: str) -> list[tuple[dict[str, Value], dict[str, Value]]]:
        """Every source partition and its offset."""
        with self._lock:
            found = list(self._offsets.get(connector, {}).items())
        return [(msgspec.json.decode(key)[1], dict(offset)) for key, (_, offset) in found]

    def put_all(self, connector: str, changes: Sequence[Change]) -> None:
        """Write offsets, None to delete one; returns when they are acknowledged."""
        pairs = []
        for partition, offset in changes:
            key = offset_key(connector, partition)
            # Another program may have written the fields of the key in another order.
            with self._lock:
                found = self._offsets.get(connector, {}).get(key)
            pairs.append((found[0] if found else key, offset_value(offset)))
        self.send(pairs)

    def _apply(self, record: IncomingRecord) -> None:
        try:
            decoded = msgspec.json.decode(record.key or b"")
        except msgspec.DecodeError:
            decoded = None
        match decoded:
            case [str(connector), dict(partition)] if record.key is not None:
                pass
            case _:
                where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
                log.warning("the key of an offset has an unexpected format and is ignored", extra=where)
                return
        key = offset_key(connector, partition)
        offset = msgspec.json.decode(record.value) if record.value is not None else None
        with self._lock:
            if isinstance(offset, dict):
                self._offsets.setdefault(connector, {})[key] = (record.key, offset)
            else:
                self._offsets.get(connector, {}).pop(key, None)


def offset_key(connector: str, partition: Partition) -> bytes:
    """The key of an offset's record; DataError when the partition has values that cannot be written."""
    check_fields(partition)
    ordered = {name: partition[name] for name in sorted(partition, key=_java_order)}
    return msgspec.json.encode([connector, ordered])


def offset_value(offset: Offset | None) -> bytes | None:
    """The value of an offset's record; DataError when the offset has values that cannot be written."""
    if offset is None:
        return None
    check_fields(offset)
    return msgspec.json.encode(dict(offset))


def check_fields(fields: Mapping[Any, Value]) -> None:
    """Raise DataError unless all keys are text and all values are numbers, text, bytes or null."""
    for name, value in fields.items():
        if not isinstance(name, str):
            raise DataError("Offsets may only use String keys")
        if value is None or isinstance(value, bool | str | bytes):
            continue
        if isinstance(value, int) and -_LONG <= value < _LONG:
            continue
        if not isinstance(value, float) or not math.isfinite(value):
            shown = value if isinstance(value, int | float) else type(value).__name__
            raise DataError(f"Offsets may only contain primitive types as values, but field {name} contains {shown}")


@lru_cache(maxsize=4096)
def _java_order(name: str) -> tuple[int, str]:
    """The position of a key in Java's HashMap of up to twelve entries: Kafka Connect finds offsets by their bytes."""
    code = 0
    for unit in memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code ^ code >> 16) & 15, name
