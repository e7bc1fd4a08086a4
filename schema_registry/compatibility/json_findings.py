"""The results of a comparison, as a graph with shared branches, since each pair of schemas is compared only once."""

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.json_difference_types import describe

MAX_DIFFERENCES = 1_000
"""Maximum number of differences that are reported; schemas that refer to each other could have any number."""
MAX_VISITS = 20_000
"""Maximum number of findings that are visited to report them."""

_MAX_KEY_CHARS = 200

Path = tuple[str, ...]


class Findings:
    """The differences between one pair of schemas, and whether all of them are compatible."""

    __slots__ = ("_compatible_types", "entries", "is_compatible")

    def __init__(self, compatible_types: frozenset[str]) -> None:
        self._compatible_types = compatible_types
        self.entries: list[tuple[str, str | Findings]] = []
        """Paths with kinds of difference, or with the findings of a pair below."""
        self.is_compatible = True

    def add(self, kind: str, path: str = "") -> None:
        """Add a difference of the pair itself, at a path below it."""
        self.entries.append((path, kind))
        self.is_compatible = self.is_compatible and kind in self._compatible_types

    def include(self, found: "Findings", path: str = "") -> None:
        """Include the present and future findings of a pair below this one."""
        self.entries.append((path, found))
        self.is_compatible = self.is_compatible and found.is_compatible

    def clear(self) -> None:
        """Remove all findings, before the pair is compared again."""
        self.entries = []
        self.is_compatible = True

    def differences(self) -> list[Difference]:
        """All differences in order, up to a limit; if there are incompatible ones, at least one is included."""
        differences = self._collect()
        if not self.is_compatible and all(difference.is_compatible for difference in differences):
            differences += self._first_incompatible()
        return differences

    def _collect(self) -> list[Difference]:
        """Depth first; a pair that appears inside itself adds nothing."""
        differences: list[Difference] = []
        with_differences = self._find_with_differences()
        path: Path = ()
        inside: set[int] = set()
        stack: list[tuple[Path, str | Findings | None, int]] = [(path, self, id(self))]
        visits = 0
        while stack and len(differences) < MAX_DIFFERENCES and visits < MAX_VISITS:
            path, entry, identity = stack.pop()
            if isinstance(entry, str):
                differences.append(self._difference(entry, path))
            elif entry is None:
                inside.discard(identity)
            elif identity in with_differences and identity not in inside:
                visits += 1
                inside.add(identity)
                stack.append((path, None, identity))
                stack.extend((_join(path, below), inner, id(inner)) for below, inner in reversed(entry.entries))
        return differences

    def _find_with_differences(self) -> set[int]:
        """The identities of the findings that have a difference in or below them."""
        containing: dict[int, list[int]] = {}
        pending_marks: list[int] = []
        seen, pending = {id(self)}, [self]
        while pending:
            found = pending.pop()
            for _, entry in found.entries:
                if isinstance(entry, str):
                    pending_marks.append(id(found))
                    continue
                containing.setdefault(id(entry), []).append(id(found))
                if id(entry) not in seen:
                    seen.add(id(entry))
                    pending.append(entry)
        marked: set[int] = set()
        while pending_marks:
            identity = pending_marks.pop()
            if identity not in marked:
                marked.add(identity)
                pending_marks.extend(containing.get(identity, ()))
        return marked

    def _first_incompatible(self) -> list[Difference]:
        """The incompatible difference with the shortest path."""
        level: list[tuple[Path, Findings]] = [((), self)]
        seen = {id(self)}
        while level:
            following: list[tuple[Path, Findings]] = []
            for path, found in level:
                for below, entry in found.entries:
                    if isinstance(entry, str):
                        if entry not in self._compatible_types:
                            return [self._difference(entry, _join(path, below))]
                    elif id(entry) not in seen:
                        seen.add(id(entry))
                        following.append((_join(path, below), entry))
            level = following
        return []

    def _difference(self, kind: str, path: Path) -> Difference:
        pointer = "#/" + "/".join(path)
        is_compatible = kind in self._compatible_types
        return Difference(type=kind, path=pointer, is_compatible=is_compatible, description=describe(kind, pointer))


def step(key: str) -> str:
    """A key as part of a path; very long ones are cut."""
    return key if len(key) <= _MAX_KEY_CHARS else f"{key[:_MAX_KEY_CHARS]}…"


def _join(path: Path, below: str) -> Path:
    return (*path, below) if below else path
