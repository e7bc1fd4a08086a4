"""What a comparison found, as a graph that shares its branches: the same pair of schemas is compared only once."""

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.json_difference_types import describe

MAX_DIFFERENCES = 1_000
"""How many differences are told; schemas that refer to each other could bring forth any number."""
MAX_VISITS = 20_000
"""How many findings are looked at to tell them."""

_MAX_KEY_CHARS = 200

Path = tuple[str, ...]


class Findings:
    """The differences between one pair of schemas, and whether all of them are compatible."""

    __slots__ = ("_compatible_types", "entries", "is_compatible")

    def __init__(self, compatible_types: frozenset[str]) -> None:
        self._compatible_types = compatible_types
        self.entries: list[tuple[str, str | Findings]] = []
        """Paths with kinds of difference, or with what was found below."""
        self.is_compatible = True

    def add(self, kind: str, path: str = "") -> None:
        """Note a difference of the pair itself, at a path below it."""
        self.entries.append((path, kind))
        self.is_compatible = self.is_compatible and kind in self._compatible_types

    def include(self, found: "Findings", path: str = "") -> None:
        """Take over what was found, or is yet to be found, between a pair below this one."""
        self.entries.append((path, found))
        self.is_compatible = self.is_compatible and found.is_compatible

    def clear(self) -> None:
        """Forget all, to look again."""
        self.entries = []
        self.is_compatible = True

    def differences(self) -> list[Difference]:
        """All differences in order, up to a limit; an incompatible one is always among them if there is any."""
        told = self._told_in_order()
        if not self.is_compatible and all(difference.is_compatible for difference in told):
            told += self._first_incompatible()
        return told

    def _told_in_order(self) -> list[Difference]:
        """Depth first; a pair that is met inside itself has nothing to add."""
        told: list[Difference] = []
        telling = self._telling()
        path: Path = ()
        inside: set[int] = set()
        stack: list[tuple[Path, str | Findings | None, int]] = [(path, self, id(self))]
        visits = 0
        while stack and len(told) < MAX_DIFFERENCES and visits < MAX_VISITS:
            path, entry, identity = stack.pop()
            if isinstance(entry, str):
                told.append(self._difference(entry, path))
            elif entry is None:
                inside.discard(identity)
            elif identity in telling and identity not in inside:
                visits += 1
                inside.add(identity)
                stack.append((path, None, identity))
                stack.extend((_joined(path, below), inner, id(inner)) for below, inner in reversed(entry.entries))
        return told

    def _telling(self) -> set[int]:
        """Which findings have any difference in or below them."""
        containing: dict[int, list[int]] = {}
        telling: list[int] = []
        seen, pending = {id(self)}, [self]
        while pending:
            found = pending.pop()
            for _, entry in found.entries:
                if isinstance(entry, str):
                    telling.append(id(found))
                    continue
                containing.setdefault(id(entry), []).append(id(found))
                if id(entry) not in seen:
                    seen.add(id(entry))
                    pending.append(entry)
        marked: set[int] = set()
        while telling:
            identity = telling.pop()
            if identity not in marked:
                marked.add(identity)
                telling.extend(containing.get(identity, ()))
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
                            return [self._difference(entry, _joined(path, below))]
                    elif id(entry) not in seen:
                        seen.add(id(entry))
                        following.append((_joined(path, below), entry))
            level = following
        return []

    def _difference(self, kind: str, path: Path) -> Difference:
        pointer = "#/" + "/".join(path)
        passes = kind in self._compatible_types
        return Difference(type=kind, path=pointer, is_compatible=passes, description=describe(kind, pointer))


def step(key: str) -> str:
    """A key as part of a path; one of hostile length is cut."""
    return key if len(key) <= _MAX_KEY_CHARS else f"{key[:_MAX_KEY_CHARS]}…"


def _joined(path: Path, below: str) -> Path:
    return (*path, below) if below else path
