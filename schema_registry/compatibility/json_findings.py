"""What a comparison found, as a tree that shares its branches: the same pair of schemas is compared only once."""

from collections.abc import Iterator

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.json_difference_types import describe

MAX_DIFFERENCES = 1_000
"""How many differences are told; schemas that refer to each other could bring forth any number."""

_MAX_KEY_CHARS = 200


class Findings:
    """The differences between one pair of schemas, and whether all of them are compatible."""

    __slots__ = ("_compatible_types", "entries", "is_compatible")

    def __init__(self, compatible_types: frozenset[str], *, is_compatible: bool = True) -> None:
        self._compatible_types = compatible_types
        self.entries: list[tuple[str, str | Findings]] = []
        """Paths with kinds of difference, or with what was found below."""
        self.is_compatible = is_compatible

    def add(self, kind: str, path: str = "") -> None:
        """Note a difference of the pair itself, at a path below it."""
        self.entries.append((path, kind))
        self.is_compatible = self.is_compatible and kind in self._compatible_types

    def include(self, found: "Findings", path: str = "") -> None:
        """Take over what was found between a pair below this one."""
        if found.entries:
            self.entries.append((path, found))
        self.is_compatible = self.is_compatible and found.is_compatible

    def differences(self) -> list[Difference]:
        """All differences in order, up to a limit; an incompatible one is always among them if there is any."""
        told = list(self._walk((), only_incompatible=False))
        if self.is_compatible or any(not difference.is_compatible for difference in told):
            return told
        return list(self._walk((), only_incompatible=True))

    def _walk(self, prefix: tuple[str, ...], *, only_incompatible: bool) -> Iterator[Difference]:
        stack: list[tuple[tuple[str, ...], str | Findings]] = [(prefix, self)]
        told = 0
        while stack and told < MAX_DIFFERENCES:
            path, entry = stack.pop()
            if isinstance(entry, str):
                told += 1
                yield self._difference(entry, path)
                continue
            chosen = self._chosen(entry, only_incompatible)
            stack.extend(((*path, below) if below else path, inner) for below, inner in reversed(chosen))

    def _chosen(self, found: "Findings", only_incompatible: bool) -> "list[tuple[str, str | Findings]]":
        if not only_incompatible:
            return found.entries
        return [(path, entry) for path, entry in found.entries if not self._passes(entry)]

    def _passes(self, entry: "str | Findings") -> bool:
        return entry in self._compatible_types if isinstance(entry, str) else entry.is_compatible

    def _difference(self, kind: str, path: tuple[str, ...]) -> Difference:
        pointer = "#/" + "/".join(path)
        passes = kind in self._compatible_types
        return Difference(type=kind, path=pointer, is_compatible=passes, description=describe(kind, pointer))


def step(key: str) -> str:
    """A key as part of a path; one of hostile length is cut."""
    return key if len(key) <= _MAX_KEY_CHARS else f"{key[:_MAX_KEY_CHARS]}…"
