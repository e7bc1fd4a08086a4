"""TombstoneHandler, for records whose value is null, and Drop, which makes keys or values null."""

import logging

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import STRING, Config, one_of, option
from connect.api.errors import DataError
from connect.api.transform import R, Transform
from connect.transforms.options import WORD
from connect.transforms.sides import Sided, both_sides

log = logging.getLogger(__name__)


class TombstoneHandlerConfig(Config):
    """Options of TombstoneHandler."""

    behavior: str = option(WORD, default="drop_warn", check=one_of("drop_silent", "drop_warn", "fail", "ignore"))
    """What to do with records whose value is null: drop them silently, or with a warning in the log, fail, or let them
    pass."""


class TombstoneHandler(Transform):
    """Drops or rejects records whose value is null."""

    config_class = TombstoneHandlerConfig
    config: TombstoneHandlerConfig
    aliases = (
        "io.confluent.connect.transforms.TombstoneHandler",
        "io.aiven.kafka.connect.transforms.TombstoneHandler",
    )

    @override
    def apply(self, record: R) -> R | None:
        if record.value is not None:
            return record
        behavior = self.config.behavior
        if behavior == "ignore":
            return record
        if behavior == "fail":
            raise DataError(f"Tombstone record encountered and transformer is configured to fail: topic {record.topic}")
        if behavior == "drop_warn":
            log.warning("tombstone dropped", extra={"topic": record.topic, "partition": record.partition})
        return None


class DropConfig(Config):
    """Options of Drop."""

    schema_behavior: str = option(STRING, default="nullify", check=one_of("nullify", "retain", "force_optional"))
    """Whether to drop the schema as well, to keep it (an error if it does not allow null), or to make it optional."""


class Drop(Sided):
    """Makes keys or values null."""

    config_class = DropConfig
    config: DropConfig
    aliases = ("io.confluent.connect.transforms.Drop",)

    @override
    def apply(self, record: R) -> R | None:
        schema = record.key_schema if self.is_key else record.value_schema
        behavior = self.config.schema_behavior
        if schema is not None and behavior == "retain" and not schema.optional:
            raise DataError("the schema is not optional and schema.behavior is retain: the data cannot be null")
        kept = None if schema is None or behavior == "nullify" else schema.as_optional()
        if self.is_key:
            return replace(record, key_schema=kept, key=None)
        return replace(record, value_schema=kept, value=None)


DropKey, DropValue = both_sides(Drop)
DropValue.aliases = (*DropValue.aliases, "io.aiven.kafka.connect.transforms.MakeTombstone")
