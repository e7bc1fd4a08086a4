"""Compare pairs of schemas, each pair once, even in cycles, within a bounded amount of work.

Every pair is presumed compatible until its comparison shows otherwise; then the pairs that relied on it are compared
again. So schemas that refer to each other in cycles need no recursion, and the result is the largest set of pairs that
are compatible with each other.
"""

from collections.abc import Callable, Hashable
from typing import TypeAlias

from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_shapes import Shape, ShapeKind, ShapeReader
from schema_registry.formats.json_references import Node
from schema_registry.formats.json_text import JsonValue

MAX_WORK = 150_000
"""Maximum number of steps of a comparison: less than half a second."""

_STEPS_PER_PAIR = 10

ComparePair: TypeAlias = Callable[["Comparison", Shape, Shape, Findings], None]


class TooComplex(Exception):
    """The comparison would take too long."""


class _Pair:
    """A pair of shapes, the differences between them, and the other pairs that rely on the result."""

    __slots__ = ("dependents", "found", "is_reversed", "original", "update")

    def __init__(self, original: Shape, update: Shape, found: Findings, *, is_reversed: bool) -> None:
        self.original = original
        self.update = update
        self.found = found
        self.is_reversed = is_reversed
        self.dependents: dict[_Pair, None] = {}


class Comparison:
    """Two schemas under comparison."""

    def __init__(
        self, original: ShapeReader, update: ShapeReader, *, compare_pair: ComparePair, compatible_types: frozenset[str]
    ) -> None:
        self.equality = Equality()
        self._readers = (original, update)
        self._compare_pair = compare_pair
        self._compatible_types = compatible_types
        self._work_left = MAX_WORK
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._new: list[_Pair] = []
        self._stale: dict[_Pair, None] = {}
        """Pairs that may turn out to be incompatible."""
        self._outdated: dict[_Pair, None] = {}
        """Incompatible pairs whose differences may change."""
        self._current: _Pair | None = None
        self._is_reversed = False

    def run(self) -> Findings:
        """Compare the whole schemas; raises TooComplex beyond the limit."""
        original, update = self._readers
        found = self.compare(original.root, update.root)
        while pair := self._next():
            self._process(pair)
        return found

    def compare(self, original: Node | Shape | None, update: Node | Shape | None) -> Findings:
        """The differences known so far between two schemas, of which either may be missing."""
        if original is None or update is None:
            found = Findings(self._compatible_types)
            if original is not update:
                found.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
            return found
        old, new = self._reader(of_update=False), self._reader(of_update=True)
        return self._find(old.shape(original), new.shape(update), is_reversed=self._is_reversed)

    def could_precede(self, original: Node, update: Node) -> bool:
        """Whether the original would be compatible with the update: `not` reverses the direction."""
        old, new = self._reader(of_update=False), self._reader(of_update=True)
        return self._find(new.shape(update), old.shape(original), is_reversed=not self._is_reversed).is_compatible

    def is_anything(self, node: Node, *, of_update: bool) -> bool:
        """Whether a schema accepts every value."""
        return self._reader(of_update=of_update).shape(node).kind is ShapeKind.ANYTHING

    def spend(self, steps: int) -> None:
        """Take some steps off the remaining work."""
        self._work_left -= steps
        if self._work_left < 0:
            raise TooComplex

    def _reader(self, *, of_update: bool) -> ShapeReader:
        return self._readers[of_update != self._is_reversed]

    def _find(self, original: Shape, update: Shape, *, is_reversed: bool) -> Findings:
        """The findings of a pair, which is queued if it is new; the current pair relies on them from now on."""
        key = (id(original), id(update))
        pair = self._pairs.get(key)
        if pair is None:
            self.spend(_STEPS_PER_PAIR)
            pair = _Pair(original, update, Findings(self._compatible_types), is_reversed=is_reversed)
            self._pairs[key] = pair
            self._new.append(pair)
        self.spend(1)
        if self._current is not None:
            pair.dependents[self._current] = None
        return pair.found

    def _next(self) -> _Pair | None:
        """New pairs first, then those whose verdict may change, last those whose differences may change.

        In this order a pair is compared again once for many changes in the pairs that it relies on.
        """
        if self._new:
            return self._new.pop()
        for pairs in (self._stale, self._outdated):
            if pairs:
                return pairs.popitem()[0]
        return None

    def _process(self, pair: _Pair) -> None:
        found = pair.found
        was_compatible = found.is_compatible
        found.clear()
        self._current, self._is_reversed = pair, pair.is_reversed
        self._compare_pair(self, pair.original, pair.update, found)
        if was_compatible and not found.is_compatible:
            for dependent in pair.dependents:
                (self._stale if dependent.found.is_compatible else self._outdated)[dependent] = None


class Equality:
    """Returns equal keys for equal values: 1 and 1.0 are equal, 1 and true are not, the order of members is ignored.

    Arrays and objects are cached by identity, so they must live as long as this object.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, Hashable] = {}

    def key(self, value: JsonValue) -> Hashable:
        """A hashable key that is equal for equal values."""
        if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        if not isinstance(value, dict | list):
            return (value,)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = self._container_key(value)
        return known

    def _container_key(self, value: JsonValue) -> Hashable:
        content: Hashable
        if isinstance(value, dict):
            content = ("object", frozenset((name, self.key(member)) for name, member in value.items()))
        else:
            assert isinstance(value, list)
            content = ("array", *map(self.key, value))
        return ("container", self._numbers.setdefault(content, len(self._numbers)))
