"""How records are written, under the names of Confluent's serializers and converters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from schema_registry.client.settings import InvalidSettings, RegistryClientSettings
from schema_registry.serdes.subject_names import SubjectNameStrategy


class IdPlace(StrEnum):
    """Where the schema of a record is named."""

    PREFIX = "PREFIX"
    """Its id, before the data."""
    HEADER = "HEADER"
    """Its guid, in a header of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializerSettings:
    """How schemas are registered, and how records name them; Confluent's key is below each."""

    strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME
    """`key.subject.name.strategy`, `value.subject.name.strategy`"""
    auto_register: bool = True
    """`auto.register.schemas`: register schemas that are missing; otherwise they are errors."""
    use_latest_version: bool = False
    """`use.latest.version`: write with the subject's latest schema, whatever schema was given."""
    schema_id: int | None = None
    """`use.schema.id`: write with this schema, whatever schema was given."""
    normalize: bool = False
    """`normalize.schemas`"""
    id_place: IdPlace = IdPlace.PREFIX
    """`key.schema.id.serializer`, `value.schema.id.serializer`"""
    message: str | None = None
    """The full name of the Protobuf message to write; by default the first one of the schema."""


def parse(
    properties: Mapping[str, object], *, is_key: bool = False
) -> tuple[RegistryClientSettings, SerializerSettings]:
    """Read the settings of a serializer of keys or of values, and of its registry client.

    Keys that begin with `key.` or `value.` apply to that side only; unknown keys are refused.
    """
    values: dict[str, Any] = {}
    others: dict[str, object] = {}
    own, foreign = ("key.", "value.") if is_key else ("value.", "key.")
    for key, value in properties.items():
        name = key.removeprefix(own)
        if name in _KEYS:
            attribute, read = _KEYS[name]
            values[attribute] = read(key, value)
        elif key.removeprefix(foreign) not in _KEYS:
            others[key] = value
    return RegistryClientSettings.parse(others), SerializerSettings(**values)


def _boolean(key: str, value: object) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidSettings(f"{key} must be true or false, not {value!r}")
    return text == "true"


def _schema_id(key: str, value: object) -> int | None:
    text = str(value).strip()
    if text == "-1":  # Confluent's default
        return None
    if not text.isascii() or not text.isdigit() or int(text) >= 1 << 32:
        raise InvalidSettings(f"{key} must be a schema id, not {value!r}")
    return int(text)


def _strategy(key: str, value: object) -> SubjectNameStrategy:
    try:
        return SubjectNameStrategy.parse(str(value))
    except ValueError as error:
        raise InvalidSettings(f"{key}: {error}") from None


def _id_place(key: str, value: object) -> IdPlace:
    """By the name of Confluent's Java class, with or without its package."""
    name = str(value).strip().rpartition(".")[2].removesuffix("SchemaIdSerializer").upper()
    if name not in IdPlace.__members__:
        classes = "PrefixSchemaIdSerializer or HeaderSchemaIdSerializer"
        raise InvalidSettings(f"{key} must be {classes}, not {value!r}")
    return IdPlace[name]


_KEYS: dict[str, tuple[str, Callable[[str, object], object]]] = {
    "auto.register.schemas": ("auto_register", _boolean),
    "use.latest.version": ("use_latest_version", _boolean),
    "use.schema.id": ("schema_id", _schema_id),
    "normalize.schemas": ("normalize", _boolean),
    "subject.name.strategy": ("strategy", _strategy),
    "schema.id.serializer": ("id_place", _id_place),
}
