"""Paths to nested fields (KIP-821): `a.b`, with backticks around names that have dots: ``a.`b.c` ``."""

from connect.api.data import Schema, Type, Value
from connect.api.errors import ConfigError, DataError
from connect.transforms.structs import class_name

Path = tuple[str, ...]


def parse_path(text: str, version: str) -> Path:
    """The names of the fields along a path; V1 takes the whole text as one name."""
    if version == "V1":
        return (text,)
    steps: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "`":
            step, at = _quoted_step(text, at)
        else:
            end = text.find(".", at)
            step, at = (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
        steps.append(step)
    if text.endswith("."):
        steps.append("")
    return tuple(steps)


def json_path(text: str) -> Path:
    """A path with dots that may begin as a JSON path does: `$.a.b`."""
    return parse_path(text.removeprefix("$").removeprefix(".") if text.startswith("$") else text, "V2")


def schema_at(schema: Schema, path: Path) -> Schema | None:
    """The schema of the field at a path; None when there is no such field."""
    current: Schema | None = schema
    for step in path:
        current = current.field(step) if current is not None else None
    return current


def value_at(value: Value, path: Path) -> Value:
    """The value at a path; None when there is none, DataError when the path leads through a value without fields."""
    for step in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            found = class_name(value)
            raise DataError(f"Only Struct and Map objects supported for [nested field access], found: {found}")
        value = value.get(step)
    return value


def typed_value_at(schema: Schema, value: Value, *, path: Path, replace_null: bool) -> Value:
    """The value at a path of a STRUCT; `replace_null`: defaults replace nulls."""
    current: Schema | None = schema
    for step in path:
        if value is None or current is None or current.type is not Type.STRUCT:
            return None
        current = current.field(step)
        value = value.get(step)
        if value is None and replace_null and current is not None:
            value = current.default
    return value


def _quoted_step(text: str, start: int) -> tuple[str, int]:
    """From a backtick to the next one that is followed by a dot or the end, and not preceded by a backslash."""
    name, begin, at = "", start + 1, start + 1
    while (at := text.find("`", at)) >= 0:
        is_escaped = text[at - 1] == "\\"
        is_last = at == len(text) - 1
        if is_last and is_escaped:
            break
        if is_last or (text[at + 1] == "." and not is_escaped):
            return name + text[begin:at], at + 2
        if text[at + 1] == ".":
            name, begin = f"{name}{text[begin : at - 1]}`", at + 1
        at += 1
    raise ConfigError(
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position {start}"
        " to escape it"
    )
