"""Types and names."""

import re
from typing import Final, assert_never

from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.types import (
    TYPE_NAMES,
    ArrayType,
    CustomType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
    Type,
)
from streams.sql.language.words import KEYWORDS, words

_PLAIN_WORDS: Final = words(
    """
    CHANGES COLUMNS DATE FINAL ID KEY MONTH PARTITIONS PERIOD SCHEMA SOURCE SUBJECT SYSTEM TIME TIMEOUT
    TIMESTAMP TYPE TYPES YEAR ZONE
    """
)
"""Words of the language that are names wherever a name may stand."""
_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_@]*", re.ASCII)


def format_name(identifier: Identifier) -> str:
    """A name, in backquotes only where it needs them."""
    name = identifier.name
    if _PLAIN.fullmatch(name) and (name not in KEYWORDS or name in _PLAIN_WORDS):
        return name
    return _quoted(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def format_type(type_: Type) -> str:
    """A type."""
    match type_:
        case PrimitiveType(name):
            return name.value
        case DecimalType(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case ArrayType(element):
            return f"ARRAY<{format_type(element)}>"
        case MapType(key, value):
            return f"MAP<{format_type(key)}, {format_type(value)}>"
        case StructType(fields):
            return f"STRUCT<{', '.join([f'{format_name(item.name)} {format_type(item.type)}' for item in fields])}>"
        case CustomType(identifier):
            name_is_taken = identifier.name in TYPE_NAMES
            return _quoted(identifier.name) if name_is_taken else format_name(identifier)
        case _:
            assert_never(type_)
