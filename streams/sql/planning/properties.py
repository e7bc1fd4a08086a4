"""The WITH clause of a statement, and the formats that it and the server's defaults ask for."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from streams.model.sources import Format, FormatName, OnError, WindowInfo, WindowKind
from streams.sql.analysis.facts import Options
from streams.sql.analysis.mistakes import mistake
from streams.sql.language.checks.properties import by_name, format_of
from streams.sql.language.checks.property_values import number_of, text_of
from streams.sql.language.tree.expressions import BooleanLiteral
from streams.sql.language.tree.node import Node
from streams.sql.language.tree.queries import UNITS, Duration
from streams.sql.language.tree.statements import Property

Side = Literal["KEY", "VALUE"]
_DEFAULTS: Final = {"KEY": "ksql.persistence.default.format.key", "VALUE": "ksql.persistence.default.format.value"}
_WRAP: Final = "ksql.persistence.wrap.single.values"
_WRAPPING: Final = frozenset({"JSON", "JSON_SR", "AVRO"})
"""The formats in which a single value column may stand alone or be a field of a record."""
_FORMATS: Final[tuple[FormatName, ...]] = get_args(FormatName)
_WINDOWS: Final[tuple[WindowKind, ...]] = get_args(WindowKind)
_NULLABLE: Final[tuple[Literal["OPTIONAL", "WRAPPER"], ...]] = ("OPTIONAL", "WRAPPER")
_DELIMITERS: Final = {"SPACE": " ", "TAB": "\t"}


class Properties:
    """The properties of one WITH clause, whose values have been checked."""

    def __init__(self, given: Sequence[Property], options: Options) -> None:
        self._given = by_name(given)
        self._options = options

    def node(self, name: str, otherwise: Node) -> Node:
        """Where a property stands."""
        return self._given.get(name, otherwise)

    def text(self, name: str) -> str | None:
        """The text of a property."""
        found = self._given.get(name)
        return None if found is None else text_of(found.value)

    def number(self, name: str) -> int | None:
        """A whole number."""
        found = self._given.get(name)
        return None if found is None else number_of(found.value)

    def retention_ms(self) -> int | None:
        """RETENTION_MS; -1 for ever."""
        found = self._given.get("RETENTION_MS")
        if found is None:
            return None
        return -1 if text_of(found.value) == "-1" else number_of(found.value)

    def flag(self, name: str) -> bool | None:
        """TRUE or FALSE, perhaps as text."""
        found = self._given.get(name)
        if found is None:
            return None
        if isinstance(found.value, BooleanLiteral):
            return found.value.value
        return (text_of(found.value) or "").lower() == "true"

    def format_name(self, side: Side) -> str | None:
        """The format of keys or values, if the clause names one."""
        return format_of(self._given, side)

    def default_format(self, side: Side) -> str | None:
        """The format of keys or values that the server's properties name."""
        found = self._options.properties.get(_DEFAULTS[side], "").upper()
        return found or ("KAFKA" if side == "KEY" else None)

    def format(self, side: Side, *, statement: Node, inherited: Format | None = None) -> Format:
        """The format of keys or values: of the clause, else of the source, else the server's default."""
        name = self.format_name(side) or (None if inherited is None else inherited.name) or self.default_format(side)
        known = next((one for one in _FORMATS if one == name), None)
        if known is None:
            if name is not None:
                raise mistake(statement, f"Unknown format '{name}' in the property {_DEFAULTS[side]}.")
            message = (
                f"Statement is missing the '{side}_FORMAT' property from the WITH clause. Add {side}_FORMAT = '...' "
                f"there, or set a default: SET '{_DEFAULTS[side]}' = 'JSON'."
            )
            raise mistake(statement, message)
        kept = inherited if inherited is not None and inherited.name == name else None
        delimiter = self.text(f"{side}_DELIMITER")
        nullable = (self.text(f"{side}_PROTOBUF_NULLABLE_REPRESENTATION") or "").upper()
        inherited_nullable = None if kept is None else kept.nullable_as
        return Format(
            name=known,
            delimiter=_DELIMITERS.get(delimiter.upper(), delimiter) if delimiter else (kept.delimiter if kept else ","),
            full_name=self._full_name(side),
            schema_id=self.number(f"{side}_SCHEMA_ID"),
            nullable_as=next((one for one in _NULLABLE if one == nullable), inherited_nullable),
        )

    def _full_name(self, side: Side) -> str | None:
        older = self.text("VALUE_AVRO_SCHEMA_FULL_NAME") if side == "VALUE" else None
        return self.text(f"{side}_SCHEMA_FULL_NAME") or older

    def wraps_single(self, value: Format, columns: int, statement: Node) -> bool | None:
        """Whether a single value column is a record of one field; None for the default of the format."""
        given = self.flag("WRAP_SINGLE_VALUE")
        if given is None:
            unwrapped = self._options.properties.get(_WRAP, "true").lower() == "false"
            return False if unwrapped and columns == 1 and value.name in _WRAPPING else None
        node = self.node("WRAP_SINGLE_VALUE", statement)
        if columns != 1:
            raise mistake(node, f"WRAP_SINGLE_VALUE is for values of one column; here there are {columns}. Remove it.")
        if value.name not in _WRAPPING:
            raise mistake(node, f"Format '{value.name}' does not support 'WRAP_SINGLE_VALUE'. Remove it.")
        return given

    def window(self) -> WindowInfo | None:
        """WINDOW_TYPE and WINDOW_SIZE."""
        given = (self.text("WINDOW_TYPE") or "").upper()
        kind = next((one for one in _WINDOWS if one == given), None)
        if kind is None:
            return None
        size = (self.text("WINDOW_SIZE") or "").split()
        size_ms = Duration(int(size[0]), UNITS[size[1].upper()]).ms if len(size) == 2 else None
        return WindowInfo(kind=kind, size_ms=size_ms)

    def on_error(self) -> OnError:
        """What becomes of records that cannot be read or written."""
        found = (self.text("ON_ERROR") or "dlq").lower()
        return "skip" if found == "skip" else "fail" if found == "fail" else "dlq"

    def dead_letter_topic(self, topic: str) -> str | None:
        """The topic of dead letters of a query that writes a topic."""
        if self.on_error() != "dlq":
            return None
        return self.text("DLQ_TOPIC") or f"{topic}-dlq"
