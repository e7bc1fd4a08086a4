"""Which schemas a new one must get along with, and how it is told when it does not."""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never, cast

import msgspec

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.policy import Level, Policy
from schema_registry.formats.schema import Schema, SchemaType

__all__ = ["DIFFERENT_TYPE", "Earlier", "Level", "Policy", "check", "differences"]

DIFFERENT_TYPE: Final = "Incompatible because of different schema type"
_OLD_SCHEMA_CHARACTERS_MAX: Final = 10 * 1024


class Earlier(msgspec.Struct, frozen=True):
    """A version that was registered before."""

    version: int | None
    schema: Schema


def check(
    level: Level,
    new: Schema,
    previous: Sequence[Earlier],
    *,
    policy: Policy = Policy.STRICT,
    validate_fields: bool = False,
) -> list[str]:
    """Why a new schema may not follow the previous ones (newest last), in Confluent's words; nothing when it may.

    Levels that are not transitive look at the newest version only; the others stop at the first that is in the way.
    `validate_fields` is only told, at the end.
    """
    if level is Level.NONE:
        return []
    for earlier in reversed(previous if level.is_transitive else previous[-1:]):
        if messages := _messages(level, new, earlier, policy):
            return [*messages, f"{{validateFields: '{str(validate_fields).lower()}', compatibility: '{level}'}}"]
    return []


def differences(reader: Schema, writer: Schema, *, policy: Policy = Policy.STRICT) -> list[Difference]:
    """How two schemas of one format differ, seen from the reader. The format's code is loaded when it is needed."""
    match reader.schema_type:
        case SchemaType.AVRO:
            from schema_registry.compatibility import avro
            from schema_registry.formats.avro import AvroSchema

            return avro.compare(cast(AvroSchema, reader), cast(AvroSchema, writer))
        case SchemaType.JSON:
            from schema_registry.compatibility import json_schema
            from schema_registry.formats.json_schema import JsonSchema

            return json_schema.compare(cast(JsonSchema, reader), cast(JsonSchema, writer), policy)
        case SchemaType.PROTOBUF:
            from schema_registry.compatibility import protobuf
            from schema_registry.formats.protobuf import ProtobufSchema

            return protobuf.compare(cast(ProtobufSchema, reader), cast(ProtobufSchema, writer))
        case _ as never:
            assert_never(never)


def _messages(level: Level, new: Schema, earlier: Earlier, policy: Policy) -> list[str]:
    old = earlier.schema
    if new.schema_type is not old.schema_type:
        return [DIFFERENT_TYPE]
    messages: list[str] = []
    if level.checks_forward:
        messages += _told(old, new, policy, readers="old", writers="new")
    if level.checks_backward:
        messages += _told(new, old, policy, readers="new", writers="old")
    if messages:
        messages += _about(earlier)
    return messages


def _told(reader: Schema, writer: Schema, policy: Policy, *, readers: str, writers: str) -> Iterator[str]:
    """The differences that matter as text; `readers` and `writers` are what their schemas are called in it."""
    for difference in differences(reader, writer, policy=policy):
        if not difference.is_compatible:
            description = difference.description.replace("{reader}", readers).replace("{writer}", writers)
            if reader.schema_type is SchemaType.AVRO:
                yield (
                    f"{{errorType:'{difference.type}', description:'{description}', "
                    f"additionalInfo:'{difference.detail}'}}"
                )
            else:
                yield f'{{errorType:"{difference.type}", description:"{description}"}}'


def _about(earlier: Earlier) -> Iterator[str]:
    """Which version was in the way."""
    if earlier.version is not None:
        yield f"{{oldSchemaVersion: {earlier.version}}}"
    text = earlier.schema.canonical
    if len(text) <= _OLD_SCHEMA_CHARACTERS_MAX:
        yield f"{{oldSchema: '{text}'}}"
    else:
        yield f"{{oldSchema: <truncated> '{text[:_OLD_SCHEMA_CHARACTERS_MAX]}...'}}"
