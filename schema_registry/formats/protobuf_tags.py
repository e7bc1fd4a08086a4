"""Tags inside of Protobuf schemas: Confluent's options of messages and fields."""

from collections.abc import Iterator, Sequence

import msgspec
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from schema_registry.formats.protobuf import ProtobufSchema, with_options
from schema_registry.formats.protobuf_option_text import list_in, unquoted, with_list
from schema_registry.formats.protobuf_options import Change, quoted
from schema_registry.formats.protobuf_written import Path

_FIELD = "(confluent.field_meta)"
_MESSAGE = "(confluent.message_meta)"


class Retagged(msgspec.Struct, frozen=True, kw_only=True):
    """Which tags one message or field gets and loses."""

    path: str
    """Names with dots between them, with or without the package."""
    is_field: bool
    add: Sequence[str] = ()
    remove: Sequence[str] = ()


def retagged(schema: ProtobufSchema, wanted: Sequence[Retagged]) -> str:
    """The text of a schema with other tags; KeyError with the path of what the schema does not have."""
    steps: dict[Path, list[Retagged]] = {}
    for change in wanted:
        steps.setdefault(_options_path(schema.descriptor, change), []).append(change)
    return with_options(schema, {path: _change(changes) for path, changes in steps.items()})


def tags_of(schema: ProtobufSchema) -> list[Retagged]:
    """All messages and fields that have tags, as if those were to be added."""
    found: list[Retagged] = []
    places = list(_places(schema.descriptor.message_type, (), ""))

    def noting(name: str, *, is_field: bool) -> Change:
        def note(options: list[str]) -> list[str]:
            tags = _tags(options, _FIELD if is_field else _MESSAGE)
            if tags:
                found.append(Retagged(path=name, is_field=is_field, add=[unquoted(tag) for tag in tags]))
            return options

        return note

    with_options(schema, {path: noting(name, is_field=is_field) for name, is_field, path in places})
    return found


def has(schema: ProtobufSchema, wanted: Retagged) -> bool:
    """Whether there is what some tags are meant for."""
    try:
        _options_path(schema.descriptor, wanted)
    except KeyError:
        return False
    return True


def _places(messages: Sequence[DescriptorProto], path: Path, prefix: str) -> Iterator[tuple[str, bool, Path]]:
    for index, message in enumerate(messages):
        here, name = (*path, 3 if path else 4, index), f"{prefix}.{message.name}"
        yield name, False, (*here, 7)
        for number, field in enumerate(message.field):
            yield f"{name}.{field.name}", True, (*here, 2, number, 8)
        yield from _places(message.nested_type, here, name)


def _change(changes: Sequence[Retagged]) -> Change:
    name = _FIELD if changes[0].is_field else _MESSAGE

    def change(options: list[str]) -> list[str]:
        tags = _tags(options, name)
        for step in changes:
            removed = {quoted(tag) for tag in step.remove}
            tags = [tag for tag in tags if tag not in removed] + [quoted(tag) for tag in step.add]
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
    place = next((index for index, option in enumerate(rest) if option.startswith(f"{name} = ")), None)
    if place is None:
        rest.append(with_list(f"{name} = {{}}", "tags", tags))
    else:
        rest[place] = with_list(rest[place], "tags", tags)
    return [option for option in rest if option]


def _options_path(file: FileDescriptorProto, wanted: Retagged) -> Path:
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
