"""Find the differences between two Protobuf schemas, with Confluent's names, and whether old records stay readable.

Messages are matched by name and fields by number, since records contain only numbers. Confluent's "original" is the
writer here, and its "update" the reader.
"""

from collections.abc import Mapping, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.protobuf_changes import Changes, Trail
from schema_registry.compatibility.protobuf_types import (
    FieldKind,
    Member,
    Types,
    by_name,
    field_kind,
    members,
    real_oneofs,
    scalar_group,
)
from schema_registry.formats.protobuf import ProtobufSchema

MAX_NESTED_COMPARISONS = 50
"""Imported types are compared where they are used, but beyond this depth separately at the end."""


def compare(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """All differences between a reader's schema (Confluent's update) and a writer's (its original)."""
    comparison = _Comparison(Types(reader), Types(writer))
    if reader.descriptor.package != writer.descriptor.package:
        comparison.changes.add("PACKAGE_CHANGED", ())
    comparison.compare_messages(reader.descriptor.message_type, writer.descriptor.message_type, trail=())
    comparison.compare_enums(reader.descriptor.enum_type, writer.descriptor.enum_type, trail=())
    comparison.finish()
    return comparison.changes.differences


class _Comparison:
    def __init__(self, reader: Types, writer: Types) -> None:
        self.changes = Changes()
        self._reader = reader
        self._writer = writer
        self._seen: dict[tuple[str, str], bool] = {}
        """Pairs of imported types that have been compared or are being compared, and whether they are compatible."""
        self._postponed: list[tuple[str, str]] = []
        self._depth = 0

    def finish(self) -> None:
        """Compare the types that were nested too deeply to be compared on the way."""
        while self._postponed:
            self._compare_imported(*self._postponed.pop())

    def compare_messages(
        self, reader: Sequence[DescriptorProto], writer: Sequence[DescriptorProto], *, trail: Trail
    ) -> None:
        new, old = by_name(reader), by_name(writer)
        for name in dict.fromkeys([*old, *new]):
            here = (*trail, name)
            if name not in new:
                self.changes.add("MESSAGE_REMOVED", here)
            elif name not in old:
                self.changes.add("MESSAGE_ADDED", here)
            else:
                self._compare_message(new[name][1], old[name][1], here)
                if new[name][0] != old[name][0]:
                    self.changes.add("MESSAGE_MOVED", here)

    def compare_enums(
        self, reader: Sequence[EnumDescriptorProto], writer: Sequence[EnumDescriptorProto], *, trail: Trail
    ) -> None:
        new, old = {enum.name: enum for enum in reader}, {enum.name: enum for enum in writer}
        for name in dict.fromkeys([*old, *new]):
            here = (*trail, name)
            if name not in new:
                self.changes.add("ENUM_REMOVED", here)
            elif name not in old:
                self.changes.add("ENUM_ADDED", here)
            else:
                self._compare_enum(new[name], old[name], here)

    def _compare_enum(self, reader: EnumDescriptorProto, writer: EnumDescriptorProto, trail: Trail) -> None:
        new = {value.number: value.name for value in reader.value}
        old = {value.number: value.name for value in writer.value}
        for number in sorted({*new, *old}):
            here = (*trail, str(number))
            if number not in new:
                self.changes.add("ENUM_CONST_REMOVED", here)
            elif number not in old:
                self.changes.add("ENUM_CONST_ADDED", here)
            elif new[number] != old[number]:
                self.changes.add("ENUM_CONST_CHANGED", here)

    def _compare_message(self, reader: DescriptorProto, writer: DescriptorProto, trail: Trail) -> None:
        new, old = members(reader), members(writer)
        self._compare_oneofs(reader, writer, trail=trail)
        lost = _lost_oneofs(reader, writer)
        for number in sorted({*new, *old}):
            if number not in new:
                if old[number].oneof not in lost:
                    self.changes.add(_field_kind(old[number], "REMOVED"), old[number].trail(trail))
            elif number not in old:
                self.changes.add(_field_kind(new[number], "ADDED"), new[number].trail(trail))
            else:
                self._compare_fields(new[number], old[number], trail)
        self.compare_messages(reader.nested_type, writer.nested_type, trail=trail)
        self.compare_enums(reader.enum_type, writer.enum_type, trail=trail)

    def _compare_oneofs(self, reader: DescriptorProto, writer: DescriptorProto, *, trail: Trail) -> None:
        new, old = real_oneofs(reader), real_oneofs(writer)
        before = members(writer)
        for name, numbers in new.items():
            self._check_moved(name, [before[number] for number in numbers if number in before], trail)
        for name in sorted({*new, *old}):
            if name not in new:
                self.changes.add("ONEOF_REMOVED", (*trail, name))
            elif name not in old:
                self.changes.add("ONEOF_ADDED", (*trail, name))

    def _check_moved(self, oneof: str, before: Sequence[Member], trail: Trail) -> None:
        """Report fields that could be set together, but exclude each other now: data would be lost."""
        origins = {member.oneof or member.field.number for member in before}
        if len(origins) < 2:
            return
        were_free = sum(member.oneof is None for member in before)
        kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if were_free > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
        self.changes.add(kind, (*trail, oneof))

    def _compare_fields(self, new: Member, old: Member, trail: Trail) -> None:
        here = new.trail(trail)
        if old.oneof is not None and new.oneof is None:
            self.changes.add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", here)
        if new.field.name != old.field.name:
            self.changes.add("FIELD_NAME_CHANGED", here)
        self._compare_types(new.field, old.field, here)

    def _compare_types(self, new: FieldDescriptorProto, old: FieldDescriptorProto, here: Trail) -> None:
        new_entry, old_entry = self._reader.map_entry(new), self._writer.map_entry(old)
        kind = field_kind(new, is_map=new_entry is not None)
        if kind != field_kind(old, is_map=old_entry is not None):
            self.changes.add("FIELD_KIND_CHANGED", here)
        elif kind is FieldKind.SCALAR:
            self._compare_scalars(new, old, here)
        elif kind is FieldKind.MESSAGE:
            self._compare_references(new.type_name, old.type_name, here)
        elif new_entry is not None and old_entry is not None:
            for part in (0, 1):
                self._compare_types(new_entry.field[part], old_entry.field[part], here)

    def _compare_scalars(self, new: FieldDescriptorProto, old: FieldDescriptorProto, here: Trail) -> None:
        group = scalar_group(new)
        if group != scalar_group(old):
            self.changes.add("FIELD_SCALAR_KIND_CHANGED", here)
            return
        new_label, old_label = self._reader.label(new), self._writer.label(old)
        if new_label and old_label and new_label != old_label:
            is_text = group == "string or bytes"
            self.changes.add("FIELD_STRING_OR_BYTES_LABEL_CHANGED" if is_text else "FIELD_NUMERIC_LABEL_CHANGED", here)

    def _compare_references(self, new: str, old: str, here: Trail) -> None:
        is_renamed = self._reader.local_name(new) != self._writer.local_name(old)
        # Types of the same origin need no comparison here: those of the schema itself are compared with it, and one
        # version of a reference is the same on both sides.
        is_elsewhere = self._reader.origin(new) != self._writer.origin(old)
        if is_renamed or (is_elsewhere and not self._compare_imported(new, old)):
            self.changes.add("FIELD_NAMED_TYPE_CHANGED", here)

    def _compare_imported(self, new: str, old: str) -> bool:
        """Whether two types from different files are compatible."""
        pair = (new, old)
        if pair in self._seen:
            return self._seen[pair]
        if self._depth >= MAX_NESTED_COMPARISONS:
            self._postponed.append(pair)
            return True
        # Presumed during the comparison, because types may use each other.
        self._seen[pair] = True
        self._depth += 1
        before = self.changes.incompatible
        with self._reader.within(new), self._writer.within(old):
            trail = tuple(self._reader.local_name(new).split("."))
            self._compare_message(self._reader.message(new), self._writer.message(old), trail)
        self._depth -= 1
        self._seen[pair] = self.changes.incompatible == before
        return self._seen[pair]


def _field_kind(member: Member, change: str) -> str:
    if member.oneof is not None:
        return f"ONEOF_FIELD_{change}"
    is_required = member.field.label == FieldDescriptorProto.LABEL_REQUIRED
    return f"REQUIRED_FIELD_{change}" if is_required else f"FIELD_{change}"


def _lost_oneofs(reader: DescriptorProto, writer: DescriptorProto) -> frozenset[str]:
    """Oneofs that were removed with all their members, which is allowed."""
    kept: Mapping[int, Member] = members(reader)
    new = real_oneofs(reader)
    return frozenset(
        name
        for name, numbers in real_oneofs(writer).items()
        if name not in new and not any(number in kept for number in numbers)
    )
