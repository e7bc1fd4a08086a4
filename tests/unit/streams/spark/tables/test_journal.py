"""Exchanges of files: a stop at any step ends in the old files or the new ones."""

from pathlib import Path

import pytest

from streams.spark.files import Files, join_path
from streams.spark.tables.journal import Exchange, Journal
from streams.spark.tables.layout import data_files


class Killed(Exception):
    """Stands for a kill."""


class MortalFiles(Files):
    """Files that fail after a number of changes, as a killed process does."""

    def __init__(self, changes: int) -> None:
        super().__init__()
        self._left = changes

    def write(self, path: str, data: bytes) -> None:
        """Count."""
        self._count()
        super().write(path, data)

    def move(self, source: str, target: str) -> None:
        """Count."""
        self._count()
        super().move(source, target)

    def delete(self, path: str) -> None:
        """Count."""
        self._count()
        super().delete(path)

    def _count(self) -> None:
        if not self._left:
            raise Killed
        self._left -= 1


def _filled(location: str) -> list[tuple[str, str]]:
    files = Files()
    for name in ("one", "two", "three"):
        files.write(join_path(location, name), f"old {name}".encode())
    draft = join_path(location, "_caudal", "draft-1")
    files.write(join_path(draft, "a"), b"new")
    files.write(join_path(draft, "b"), b"new three")
    return [(join_path(draft, "a"), join_path(location, "four")), (join_path(draft, "b"), join_path(location, "three"))]


def _content(location: str) -> dict[str, bytes]:
    return {entry.name: Files().read(entry.path) for entry in data_files(Files(), location)}


@pytest.mark.parametrize("changes", range(12))
def test_a_kill_after_any_number_of_steps_leaves_the_old_or_the_new_files(tmp_path: Path, changes: int) -> None:
    location = str(tmp_path)
    added = _filled(location)
    removed = [join_path(location, name) for name in ("one", "two", "three")]
    draft = join_path(location, "_caudal", "draft-1")
    try:
        Journal(MortalFiles(changes), location).exchange(draft, removed=removed, added=added)
    except Killed:
        Journal(Files(), location).recover()
    old = {name: f"old {name}".encode() for name in ("one", "two", "three")}
    new = {"four": b"new", "three": b"new three"}
    assert _content(location) == (old if changes == 0 else new)
    assert Files().list(join_path(location, "_caudal")) == []


@pytest.mark.parametrize("changes", range(8))
def test_a_recovery_may_itself_be_killed(tmp_path: Path, changes: int) -> None:
    location = str(tmp_path)
    added = _filled(location)
    Journal(Files(), location).decide(
        join_path(location, "_caudal", "draft-1"),
        Exchange([join_path(location, name) for name in ("one", "two", "three")], added),
    )
    try:
        Journal(MortalFiles(changes), location).recover()
    except Killed:
        Journal(Files(), location).recover()
    assert _content(location) == {"four": b"new", "three": b"new three"}


def test_a_draft_that_was_not_decided_is_cleared_away(tmp_path: Path) -> None:
    _filled(str(tmp_path))
    assert Journal(Files(), str(tmp_path)).recover() == 0
    assert sorted(_content(str(tmp_path))) == ["one", "three", "two"]
