"""Tags inside Protobuf schemas: Confluent's options of messages and fields."""

from collections.abc import Iterator, Sequence

import msgspec
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from schema_registry.formats.protobuf import ProtobufSchema, with_options
from schema_registry.formats.protobuf_option_text import list_in, unquote, with_list
from schema_registry.formats.protobuf_options import Change, quote
from schema_registry.formats.protobuf_written import Path

_FIELD = "(confluent.field_meta)"
_MESSAGE = "(confluent.message_meta)"


class TagChange(msgspec.Struct, frozen=True, kw_only=True):
    """The tags to add to a message or field, and those to remove."""

    path: str
    """Names separated by dots, with or without the package."""
    is_field: bool
    add: Sequence[str] = ()
    remove: Sequence[str] = ()


def change_tags(schema: ProtobufSchema, wanted: Sequence[TagChange]) -> str:
    """The text of a schema with changed tags; raises KeyError with a path that the schema does not have."""
    steps: dict[Path, list[TagChange]] = {}
    for change in wanted:
        steps.setdefault(_options_path(schema.descriptor, change), []).append(change)
    return with_options(schema, {path: _change(changes) for path, changes in steps.items()})


def tags_of(schema: ProtobufSchema) -> list[TagChange]:
    """All messages and fields with tags, as changes that would add these tags."""
    found: list[TagChange] = []

    def collect(name: str, *, is_field: bool) -> Change:
        def collect_from(options: list[str]) -> list[str]:
            tags = _tags(options, _FIELD if is_field else _MESSAGE)
            if tags:
                found.append(TagChange(path=name, is_field=is_field, add=[unquote(tag) for tag in tags]))
            return options

        return collect_from

    paths = _options_paths(schema.descriptor.message_type, (), "")
    with_options(schema, {path: collect(name, is_field=is_field) for name, is_field, path in paths})
    return found


def has(schema: ProtobufSchema, wanted: TagChange) -> bool:
    """Whether the schema has the message or field of a change."""
    try:
        _options_path(schema.descriptor, wanted)
    except KeyError:
        return False
    return True


def _options_paths(messages: Sequence[DescriptorProto], path: Path, prefix: str) -> Iterator[tuple[str, bool, Path]]:
    """The name of each message and field, whether it is a field, and the path of its options in the descriptor.

    The numbers are those of descriptor.proto: 4 message_type, 3 nested_type, 2 field, 7 and 8 options.
    """
    for index, message in enumerate(messages):
        here, name = (*path, 3 if path else 4, index), f"{prefix}.{message.name}"
        yield name, False, (*here, 7)
        for number, field in enumerate(message.field):
            yield f"{name}.{field.name}", True, (*here, 2, number, 8)
        yield from _options_paths(message.nested_type, here, name)


def _change(changes: Sequence[TagChange]) -> Change:
    name = _FIELD if changes[0].is_field else _MESSAGE

    def change(options: list[str]) -> list[str]:
        tags = _tags(options, name)
        for step in changes:
            removed = {quote(tag) for tag in step.remove}
            tags = [tag for tag in tags if tag not in removed] + [quote(tag) for tag in step.add]
        return _with_tags(options, name, list(dict.fromkeys(tags)))

    return change


def _tags(options: Sequence[str], name: str) -> list[str]:
    found = []
    for option in options:
        key, _, value = option.partition(" = ")
        if key == f"{name}.tags":
            found.append(value)
        elif key == name:
            found += list_in(option, "tags")
    return found


def _with_tags(options: Sequence[str], name: str, tags: Sequence[str]) -> list[str]:
    rest = [option for option in options if not option.startswith(f"{name}.tags = ")]
    index = next((index for index, option in enumerate(rest) if option.startswith(f"{name} = ")), None)
    if index is None:
        rest.append(with_list(f"{name} = {{}}", "tags", tags))
    else:
        rest[index] = with_list(rest[index], "tags", tags)
    return [option for option in rest if option]


def _options_path(file: FileDescriptorProto, wanted: TagChange) -> Path:
    name = wanted.path.lstrip(".")
    if file.package and name.startswith(f"{file.package}."):
        name = name.removeprefix(f"{file.package}.")
    *outer, last = name.split(".")
    path: Path = ()
    messages = file.message_type
    fields = None
    for part in outer if wanted.is_field else [*outer, last]:
        index = next((index for index, message in enumerate(messages) if message.name == part), None)
        if index is None:
            raise KeyError(wanted.path)
        path = (*path, 3 if path else 4, index)
        messages, fields = messages[index].nested_type, messages[index].field
    if not wanted.is_field:
        return (*path, 7)
    index = next((index for index, field in enumerate(fields or ()) if field.name == last), None)
    if index is None:
        raise KeyError(wanted.path)
    return (*path, 2, index, 8)
