"""Adds and drops headers."""

from collections.abc import Mapping

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import LIST, STRING, Config, Importance, not_empty, option
from connect.api.record import Header
from connect.api.transform import R, Transform
from connect.api.values import parse
from connect.transforms.options import FIELD_NAMES, as_given


class InsertHeaderConfig(Config):
    """Options of InsertHeader."""

    header: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The name of the header."""
    value_literal: str = option(STRING, importance=Importance.HIGH)
    """Its value; its type is told by how it looks: 1, true, 2020-01-31, [1,2], {"a":1}, else text."""


class InsertHeader(Transform):
    """Adds a header to every record, behind those that are there."""

    config_class = InsertHeaderConfig
    aliases = ("org.apache.kafka.connect.transforms.InsertHeader",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = InsertHeaderConfig.parse(config)
        schema, value = parse(as_given(options, "value.literal", default=""))
        self._added = (Header(options.header, value, schema),)

    @override
    def apply(self, record: R) -> R | None:
        return replace(record, headers=record.headers + self._added)


class DropHeadersConfig(Config):
    """Options of DropHeaders."""

    headers: tuple[str, ...] = option(LIST, check=FIELD_NAMES, importance=Importance.HIGH)
    """Names of the headers to take away."""


class DropHeaders(Transform):
    """Takes all headers of some names away."""

    config_class = DropHeadersConfig
    aliases = ("org.apache.kafka.connect.transforms.DropHeaders",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._names = frozenset(DropHeadersConfig.parse(config).headers)

    @override
    def apply(self, record: R) -> R | None:
        kept = tuple([header for header in record.headers if header.key not in self._names])
        return record if len(kept) == len(record.headers) else replace(record, headers=kept)
