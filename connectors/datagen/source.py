"""DatagenConnector: makes records of a schema, the same for the same seed.

Offsets: `{"task.id": 0}` → `{"current.iteration": records made, "random.seed": …, "task.generation": restarts}`. A
record depends only on the seed and its number, so that any record can be made again.
"""

import random
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from typing_extensions import override

from connect.api.data import INT64, Value
from connect.api.errors import ConnectError
from connect.api.record import Header, SourceRecord
from connect.api.source import SourceConnector, SourceOffset, SourcePartition, SourceTask
from connectors.datagen.config import DatagenConfig
from connectors.datagen.generator import generator_of

BLOCK: Final = 100
"""Records that are made one after the other from one seed; a restart makes the earlier ones of a block again."""
LONGEST_WAIT_SECONDS: Final = 1.0


class DatagenTask(SourceTask):
    """Makes records, at its own pace."""

    config: DatagenConfig

    @override
    def start(self) -> None:
        """Continue after the last record."""
        self._partition = {"task.id": self.context.task}
        offset = self.context.offset(self._partition) or {}
        self._number = _whole(offset, "current.iteration", 0)
        self._generation = _whole(offset, "task.generation", 0)
        # A seed is stored in the offsets, so it must fit 64 bits with sign.
        seed = self.config.random_seed
        self._seed = _whole(offset, "random.seed", random.SystemRandom().getrandbits(62) if seed is None else seed)
        self._generator = generator_of(self.config.schema())
        self._key_field = self.config.key_field
        self._key_schema = self._generator.schema.field(self._key_field)
        self._pace = random.Random()
        self._due = 0.0
        self._enter_block()

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """One record when it is due, or many when there is no pause."""
        left = self.config.iterations - self._number if self.config.iterations > 0 else None
        if left is not None and left <= 0:
            self.context.wait(LONGEST_WAIT_SECONDS)
            return []
        if self.config.max_interval:
            if (pause := self._due - time.monotonic()) > 0:
                self.context.wait(min(pause, LONGEST_WAIT_SECONDS))
                if time.monotonic() < self._due:
                    return []
            self._due = time.monotonic() + self._pace.random() * self.config.max_interval / 1000
            return [self._record()]
        count = self.config.batch_size if left is None else min(left, self.config.batch_size)
        return [self._record() for _ in range(count)]

    def _record(self) -> SourceRecord:
        number = self._number
        if number % BLOCK == 0:
            self._enter_block()
        value = self._generator.make(self._chance, number)
        self._number = number + 1
        return SourceRecord(
            topic=self.config.kafka_topic,
            key_schema=self._key_schema,
            key=value.get(self._key_field),
            value_schema=self._generator.schema,
            value=value,
            headers=(
                Header("task.generation", self._generation, INT64),
                Header("task.id", self.context.task, INT64),
                Header("current.iteration", number, INT64),
            ),
            source_partition=self._partition,
            source_offset={
                "task.generation": self._generation + 1,
                "current.iteration": number + 1,
                "random.seed": self._seed,
            },
        )

    def _enter_block(self) -> None:
        """Seed the block of the next record, and make the earlier records of the block again."""
        block, behind = divmod(self._number, BLOCK)
        self._chance = random.Random(f"{self._seed}/{self.context.task}/{block}")
        for number in range(self._number - behind, self._number):
            self._generator.make(self._chance, number)


class DatagenConnector(SourceConnector):
    """Makes records that look real."""

    config_class = DatagenConfig
    task_class: ClassVar[type[SourceTask]] = DatagenTask
    tasks_limit = None
    aliases = ("io.confluent.kafka.connect.datagen.DatagenConnector", "Datagen", "DatagenSource")
    is_exactly_once = True

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Accept any whole numbers."""
        for partition, offset in offsets:
            if offset is not None:
                _whole(partition, "task.id", None)
                for key in ("current.iteration", "random.seed", "task.generation"):
                    _whole(offset, key, 0)
        return True


def _whole(values: Mapping[str, Value], key: str, default: int | None) -> int:
    value = values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConnectError(f"{key} must be a whole number, not {value!r}")
    return value
