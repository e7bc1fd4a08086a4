"""Check a new schema against earlier ones at a compatibility level, and describe the differences."""

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
    """A version that was registered earlier."""

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
    """Why a new schema is not compatible with the previous ones (newest last), in Confluent's format; empty if it is.

    Levels that are not transitive check only the newest version; the others stop at the first conflict.
    `validate_fields` only appears in the last message.
    """
    if level is Level.NONE:
        return []
    for earlier in reversed(previous if level.is_transitive else previous[-1:]):
        if messages := _messages(level, new, earlier, policy):
            return [*messages, f"{{validateFields: '{str(validate_fields).lower()}', compatibility: '{level}'}}"]
    return []


def differences(reader: Schema, writer: Schema, *, policy: Policy = Policy.STRICT) -> list[Difference]:
    """The differences between two schemas of one format, from the reader's point of view."""
    # The code of a format is imported when it is first needed, so that the registry starts quickly.
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
        messages += _describe(old, new, policy, reader_name="old", writer_name="new")
    if level.checks_backward:
        messages += _describe(new, old, policy, reader_name="new", writer_name="old")
    if messages:
        messages += _describe_version(earlier)
    return messages


def _describe(reader: Schema, writer: Schema, policy: Policy, *, reader_name: str, writer_name: str) -> Iterator[str]:
    """The incompatible differences as text."""
    for difference in differences(reader, writer, policy=policy):
        if not difference.is_compatible:
            description = difference.description.replace("{reader}", reader_name).replace("{writer}", writer_name)
            if reader.schema_type is SchemaType.AVRO:
                yield (
                    f"{{errorType:'{difference.type}', description:'{description}', "
                    f"additionalInfo:'{difference.detail}'}}"
                )
            else:
                yield f'{{errorType:"{difference.type}", description:"{description}"}}'


def _describe_version(earlier: Earlier) -> Iterator[str]:
    """The version that the new schema is in conflict with."""
    if earlier.version is not None:
        yield f"{{oldSchemaVersion: {earlier.version}}}"
    text = earlier.schema.canonical
    if len(text) <= _OLD_SCHEMA_CHARACTERS_MAX:
        yield f"{{oldSchema: '{text}'}}"
    else:
        yield f"{{oldSchema: <truncated> '{text[:_OLD_SCHEMA_CHARACTERS_MAX]}...'}}"
