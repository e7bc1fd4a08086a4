"""Comparing pairs of schemas, each pair once, cycles included, within a bounded amount of work."""

from collections.abc import Callable
from typing import TypeAlias

from schema_registry.compatibility.json_equality import Equality
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_shapes import Kind, Shape, ShapeReader
from schema_registry.formats.json_references import Node

MAX_WORK = 300_000
"""Steps of a comparison: about half a second."""
MAX_DEPTH = 110
"""Pairs inside pairs: each takes a few frames of Python's stack."""

Pair: TypeAlias = tuple[int, int]
ComparePair: TypeAlias = Callable[["Comparison", Shape, Shape, Findings], None]


class TooComplex(Exception):
    """The comparison takes more work than anybody should wait for."""


class Work:
    """What a comparison may still spend."""

    def __init__(self, steps: int = MAX_WORK) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Take away some steps."""
        self._left -= steps
        if self._left < 0:
            raise TooComplex


class Comparison:
    """One pass over two schemas.

    A pair that is met again inside itself is taken for compatible, unless an earlier pass has found it
    incompatible. So passes are repeated with what they found until they find no more.
    """

    def __init__(
        self,
        original: ShapeReader,
        update: ShapeReader,
        *,
        compare_pair: ComparePair,
        compatible_types: frozenset[str],
        work: Work,
        equality: Equality,
        known_incompatible: frozenset[Pair] = frozenset(),
    ) -> None:
        self.original = original
        self.update = update
        self.work = work
        self.equality = equality
        self._compare_pair = compare_pair
        self._compatible_types = compatible_types
        self._known_incompatible = known_incompatible
        self._found: dict[Pair, Findings] = {}
        self._under_way: set[Pair] = set()
        self._is_reversed = False
        self.assumed = False
        """Whether a pair was taken for compatible because it was met inside itself."""

    def compare(self, original: Node | Shape | None, update: Node | Shape | None) -> Findings:
        """What differs between two schemas, of which either may be missing."""
        if original is None or update is None:
            found = Findings(self._compatible_types)
            if original is not update:
                found.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
            return found
        return self._compare_shapes(self.original.shape(original), self.update.shape(update))

    def compare_reversed(self, original: Node, update: Node) -> bool:
        """Whether the original could follow the update: what `not` turns round."""
        self.original, self.update = self.update, self.original
        try:
            return self._compare_shapes(self.original.shape(update), self.update.shape(original)).is_compatible
        finally:
            self.original, self.update = self.update, self.original

    def incompatible_pairs(self) -> frozenset[Pair]:
        """The pairs that this pass found incompatible."""
        return frozenset(pair for pair, found in self._found.items() if not found.is_compatible)

    def _compare_shapes(self, original: Shape, update: Shape) -> Findings:
        pair = (id(original), id(update))
        known = self._found.get(pair)
        if known is not None:
            self.work.spend(1)
            return known
        if pair in self._under_way:
            self.assumed = True
            return Findings(self._compatible_types, is_compatible=pair not in self._known_incompatible)
        if len(self._under_way) >= MAX_DEPTH:
            raise TooComplex
        self.work.spend(10)
        found = Findings(self._compatible_types)
        self._under_way.add(pair)
        self._compare_pair(self, original, update, found)
        self._under_way.remove(pair)
        self._found[pair] = found
        return found

    def is_anything(self, node: Node, *, of_update: bool) -> bool:
        """Whether a schema accepts whatever there is."""
        reader = self.update if of_update else self.original
        return reader.shape(node).kind is Kind.ANYTHING

    def new_findings(self) -> Findings:
        """An empty set of findings by the same policy."""
        return Findings(self._compatible_types)
