"""Compares two schemas: what changed, element by element, what that breaks, and a diff of their texts."""

import difflib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from deploy.views.compatibility import Difference, Judgement, check_compatibility, level_of, swap_sides
from deploy.views.schema_elements import Element, Elements, Unreadable, elements
from deploy.views.schemas import canonical_definition, format_schema, schema_name
from schema_registry.client.models import RegisteredSchema, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient

Direction = Literal["backward", "forward", "full"]
"""Backward: the new schema reads old records; forward: the old one reads new records; full: both at once."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """An element that was added, removed or changed."""

    change: Literal["added", "removed", "changed"]
    kind: str
    name: str
    before: str | None
    after: str | None
    breaks: tuple[Direction, ...] = ()
    """The directions that it breaks, according to the registry."""
    paths: tuple[str | None, str | None]
    """Where it is in the old and in the new schema."""


class Side(msgspec.Struct, frozen=True):
    """One of the two schemas; `registered` unless it comes from a file."""

    name: str
    definition: SchemaDefinition
    registered: RegisteredSchema | None = None

    @classmethod
    def of(cls, schema: RegisteredSchema) -> "Side":
        """A registered schema."""
        return cls(schema_name(schema), schema.definition, schema)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two schemas."""

    old: Side
    new: Side
    level: str
    changes: list[Change] | None
    """None if a schema cannot be parsed; `trouble` says why."""
    trouble: str
    judgements: dict[Direction, Judgement]
    lines: list[str]


def compare_schemas(client: RegistryClient, old: Side, new: Side) -> Comparison:
    """Compare a registered schema with another one, or with one from a file."""
    assert old.registered is not None
    level = level_of(client, old.registered.subject or "")
    judgements = _judgements(client, old, new, level)
    changes: list[Change] | None = None
    trouble = ""
    try:
        if old.definition.schema_type != new.definition.schema_type:
            raise Unreadable(f"one is {old.definition.schema_type}, the other {new.definition.schema_type}")
        changes = compare(
            *(elements(side.definition, partial(client.references, side.definition)) for side in (old, new))
        )
        for direction, judged in judgements.items():
            changes = mark_breaking(changes, judged.differences, direction)
    except Unreadable as error:
        trouble = str(error)
    lines = text_diff(_text(client, old), _text(client, new), old_name=old.name, new_name=new.name)
    return Comparison(
        old=old, new=new, level=level, changes=changes, trouble=trouble, judgements=judgements, lines=lines
    )


def compare(old: Elements, new: Elements) -> list[Change]:
    """The changes, in the order of the new schema; removals come last."""
    changes = []
    for key in [*new, *(key for key in old if key not in new)]:
        before, after = old.get(key), new.get(key)
        if before and after:
            if (before.name, before.shown) != (after.name, after.shown):
                changes.append(_change("changed", before, after))
        elif after:
            changes.append(_change("added", None, after))
        else:
            changes.append(_change("removed", before, None))
    return changes


def mark_breaking(changes: Sequence[Change], differences: Iterable[Difference], direction: Direction) -> list[Change]:
    """The changes, with the direction added to those that differences are about: the closest one above each path."""
    # Paths are those of the reader: of the new schema if it reads old records.
    sides = {"backward": (1, 0), "forward": (0, 1), "full": (1, 0)}[direction]
    breaking = set()
    for difference in differences:
        for side in sides:
            closest = _closest(changes, difference.path, side)
            if closest is not None:
                breaking.add(closest)
                break
    return [
        msgspec.structs.replace(change, breaks=(*change.breaks, direction)) if index in breaking else change
        for index, change in enumerate(changes)
    ]


def text_diff(old: str, new: str, *, old_name: str, new_name: str) -> list[str]:
    """The lines of a unified diff; none when the texts are equal."""
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm=""))


def _change(kind: Literal["added", "removed", "changed"], before: Element | None, after: Element | None) -> Change:
    element = after or before
    assert element is not None
    renamed = before is not None and after is not None and before.name != after.name
    return Change(
        change=kind,
        kind=element.kind,
        name=f"{before.name} → {after.name}" if renamed and before and after else element.name,
        before=before.shown if before else None,
        after=after.shown if after else None,
        paths=(before.path if before else None, after.path if after else None),
    )


def _closest(changes: Sequence[Change], path: str, side: int) -> int | None:
    best: tuple[int, int] | None = None
    for index, change in enumerate(changes):
        place = change.paths[side]
        if place is None or not path:
            continue
        if path == place or path.startswith(place.rstrip("/") + "/"):
            best = max(best or (-1, 0), (len(place), index))
    return best[1] if best else None


def _text(client: RegistryClient, side: Side) -> str:
    """The text as registries store it, so that the layout of a file is not a difference."""
    if side.registered is None:
        with suppress(ImportError, ValueError):
            return format_schema(canonical_definition(side.definition, partial(client.references, side.definition)))
    return format_schema(side.definition)


def _judgements(client: RegistryClient, old: Side, new: Side, level: str) -> dict[Direction, Judgement]:
    """The registry's answers in every direction that it can check.

    A registry checks a given schema against a registered one, in the direction of the level. With two registered
    schemas the roles can be swapped, which gives the other direction; a file can only be the given one.
    """
    ways: dict[str, tuple[Direction, Direction]] = {
        "BACKWARD": ("backward", "forward"),
        "FORWARD": ("forward", "backward"),
        "FULL": ("full", "full"),
    }
    directions = ways.get(level.removesuffix("_TRANSITIVE"))
    if directions is None:
        return {}
    found: dict[Direction, Judgement] = {directions[0]: _check(client, old, new)}
    if new.registered is not None and directions[1] not in found:
        found[directions[1]] = swap_sides(_check(client, new, old))
    return found


def _check(client: RegistryClient, earlier: Side, given: Side) -> Judgement:
    assert earlier.registered is not None
    return check_compatibility(
        client, earlier.registered.subject or "", given.definition, version=earlier.registered.version or "latest"
    )
