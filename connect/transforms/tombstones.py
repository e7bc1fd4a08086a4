"""What to do with records whose value is null; and the transform that takes keys or values away."""

import logging
from collections.abc import Mapping
from typing import ClassVar

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import STRING, Check, Config, Kind, one_of, option
from connect.api.errors import DataError
from connect.api.transform import R, Transform

log = logging.getLogger(__name__)

_WORD = Kind(name="string", wire=2, read=lambda text: text.lower(), write=str, allowed="a word")
_BEHAVIORS: Check = one_of("drop_silent", "drop_warn", "fail", "ignore")


class TombstoneHandlerConfig(Config):
    """Options of TombstoneHandler."""

    behavior: str = option(_WORD, default="drop_warn", check=_BEHAVIORS)
    """What to do with records whose value is null: drop them, drop them and say so in the log, fail, or let them
    pass."""


class TombstoneHandler(Transform):
    """Drops or refuses records whose value is null."""

    config_class = TombstoneHandlerConfig
    aliases = (
        "io.confluent.connect.transforms.TombstoneHandler",
        "io.aiven.kafka.connect.transforms.TombstoneHandler",
    )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._behavior = TombstoneHandlerConfig.parse(config).behavior

    @override
    def apply(self, record: R) -> R | None:
        if record.value is not None or self._behavior == "ignore":
            return record
        if self._behavior == "fail":
            raise DataError(f"Tombstone record encountered and transformer is configured to fail: topic {record.topic}")
        if self._behavior == "drop_warn":
            log.warning("tombstone dropped", extra={"topic": record.topic, "partition": record.partition})
        return None


class DropConfig(Config):
    """Options of Drop."""

    schema_behavior: str = option(STRING, default="nullify", check=one_of("nullify", "retain", "force_optional"))
    """What becomes of the schema: null as well, as it is (refused when it does not allow null), or made optional."""


class Drop(Transform):
    """Makes keys or values null."""

    config_class = DropConfig
    is_key: ClassVar[bool] = False

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._behavior = DropConfig.parse(config).schema_behavior

    @override
    def apply(self, record: R) -> R | None:
        schema = record.key_schema if self.is_key else record.value_schema
        if schema is not None and self._behavior == "retain" and not schema.optional:
            raise DataError("the schema is not optional and schema.behavior is retain: the data cannot be null")
        kept = None if schema is None or self._behavior == "nullify" else schema.as_optional()
        if self.is_key:
            return replace(record, key_schema=kept, key=None)
        return replace(record, value_schema=kept, value=None)


class DropKey(Drop):
    """Makes keys null."""

    is_key = True
    aliases = ("io.confluent.connect.transforms.Drop$Key",)


class DropValue(Drop):
    """Makes values null."""

    aliases = ("io.confluent.connect.transforms.Drop$Value", "io.aiven.kafka.connect.transforms.MakeTombstone")
