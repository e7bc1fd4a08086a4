"""How the columns of a key or of a value lie in its bytes: as the fields of a record, or one by itself."""

from typing import Final

import msgspec

from streams.formats.errors import FormatError, Part
from streams.model.sources import Column, Format, FormatName, Source
from streams.model.types import Field, Struct

_ALWAYS_BARE: Final[frozenset[FormatName]] = frozenset({"KAFKA"})
_ALWAYS_RECORDS: Final[frozenset[FormatName]] = frozenset({"DELIMITED", "PROTOBUF", "PROTOBUF_NOSR"})


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What a format has to know about keys or values."""

    part: Part
    topic: str
    format: Format
    columns: tuple[Column, ...]

    @property
    def is_key(self) -> bool:
        """Whether it is about keys."""
        return self.part == "key"

    @property
    def is_wrapped(self) -> bool:
        """Whether the columns are fields of a record, even if there is only one."""
        if len(self.columns) > 1 or self.format.name in _ALWAYS_RECORDS:
            return True
        if self.is_key or self.format.name in _ALWAYS_BARE:
            return False
        return self.format.wraps_single is not False

    @property
    def record(self) -> Struct:
        """The type of the record of all columns."""
        return Struct(tuple(Field(column.name, column.sql_type) for column in self.columns))


def layout_of(source: Source, part: Part) -> Layout:
    """The layout of the keys or the values of a source."""
    is_key = part == "key"
    format_, columns = (source.key_format, source.key) if is_key else (source.value_format, source.value)
    layout = Layout(part=part, topic=source.topic, format=format_, columns=columns)
    if format_.name == "KAFKA" and len(columns) > 1:
        raise FormatError(f"The KAFKA format holds one column, but the {part} of {source.name} has {len(columns)}.")
    if format_.name == "NONE" and columns:
        raise FormatError(f"The NONE format holds no columns, but the {part} of {source.name} has {len(columns)}.")
    return layout
