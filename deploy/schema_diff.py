"""How two schemas differ, for people: each schema as a flat list of named elements, and what changed between two."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from deploy.schema_judgement import Clash

Direction = Literal["backward", "forward", "full"]
"""Backward: the new schema reads old records; forward: the old one reads new records; full: the registry asked both."""


class Element(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a schema has."""

    kind: str
    """`field`, `symbol`, `property`, `message`, …"""
    name: str
    shown: str
    """What is worth comparing: type, default, limits."""
    path: str
    """Where registries say it is."""


Elements = dict[tuple[str, str], Element]
"""Elements by what makes them the same in two schemas, in the order of the text."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One element that one schema has and the other has not, or has otherwise."""

    change: Literal["added", "removed", "changed"]
    kind: str
    name: str
    before: str | None
    after: str | None
    breaks: tuple[Direction, ...] = ()
    """Which ways of reading the registry says it breaks."""
    paths: tuple[str | None, str | None]
    """Where it is in the old and in the new schema."""


def compare(old: Elements, new: Elements) -> list[Change]:
    """What changed, in the order of the new schema; what was removed comes last."""
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


def marked(changes: Sequence[Change], clashes: Iterable[Clash], direction: Direction) -> list[Change]:
    """The changes with those marked that clashes point at: each at the closest one above its path."""
    # Paths are those of the reader: the new schema's when it reads old records.
    sides = {"backward": (1, 0), "forward": (0, 1), "full": (1, 0)}[direction]
    guilty = set()
    for clash in clashes:
        for side in sides:
            closest = _closest(changes, clash.path, side)
            if closest is not None:
                guilty.add(closest)
                break
    return [
        msgspec.structs.replace(change, breaks=(*change.breaks, direction)) if index in guilty else change
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


def plain(value: object) -> str:
    """A JSON value in one short line."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"


def listed(pairs: Iterable[tuple[str, Any]]) -> str:
    """`maxLength 10, pattern "x"`."""
    return ", ".join(f"{name} {plain(value)}" for name, value in pairs)
