"""Comparing pairs of schemas, each pair once, cycles included, within a bounded amount of work.

Every pair is taken for compatible until a look at it says otherwise; then whatever had relied on it is looked at
again. So schemas that refer to each other in circles need no recursion, and what remains compatible is the largest
set of pairs that agree with each other.
"""

from collections.abc import Callable
from typing import TypeAlias

from schema_registry.compatibility.json_equality import Equality
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_shapes import Kind, Shape, ShapeReader
from schema_registry.formats.json_references import Node

MAX_WORK = 150_000
"""Steps of a comparison: less than half a second."""

_FIRST_LOOK = 10

ComparePair: TypeAlias = Callable[["Comparison", Shape, Shape, Findings], None]


class TooComplex(Exception):
    """The comparison takes more work than anybody should wait for."""


class _Question:
    """A pair of shapes, what was found between them, and which other questions rely on the answer."""

    __slots__ = ("asked_by", "found", "is_reversed", "original", "update")

    def __init__(self, original: Shape, update: Shape, found: Findings, *, is_reversed: bool) -> None:
        self.original = original
        self.update = update
        self.found = found
        self.is_reversed = is_reversed
        self.asked_by: dict[_Question, None] = {}


class Comparison:
    """Two schemas under comparison."""

    def __init__(
        self,
        original: ShapeReader,
        update: ShapeReader,
        *,
        compare_pair: ComparePair,
        compatible_types: frozenset[str],
    ) -> None:
        self.equality = Equality()
        self._readers = (original, update)
        self._compare_pair = compare_pair
        self._compatible_types = compatible_types
        self._work_left = MAX_WORK
        self._questions: dict[tuple[int, int], _Question] = {}
        self._fresh: list[_Question] = []
        self._stale: dict[_Question, None] = {}
        self._outdated: dict[_Question, None] = {}
        self._asking: _Question | None = None
        self._is_reversed = False

    def run(self) -> Findings:
        """Compare the whole schemas; raises TooComplex beyond the limit."""
        original, update = self._readers
        found = self.compare(original.root, update.root)
        while question := self._next():
            self._look_at(question)
        return found

    def compare(self, original: Node | Shape | None, update: Node | Shape | None) -> Findings:
        """What is known so far to differ between two schemas, of which either may be missing."""
        if original is None or update is None:
            found = Findings(self._compatible_types)
            if original is not update:
                found.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
            return found
        old, new = self._reader(of_update=False), self._reader(of_update=True)
        return self._ask(old.shape(original), new.shape(update), is_reversed=self._is_reversed)

    def could_precede(self, original: Node, update: Node) -> bool:
        """Whether the original could follow the update: what `not` turns round."""
        old, new = self._reader(of_update=False), self._reader(of_update=True)
        return self._ask(new.shape(update), old.shape(original), is_reversed=not self._is_reversed).is_compatible

    def is_anything(self, node: Node, *, of_update: bool) -> bool:
        """Whether a schema accepts whatever there is."""
        return self._reader(of_update=of_update).shape(node).kind is Kind.ANYTHING

    def spend(self, steps: int) -> None:
        """Take some steps off the work that is left."""
        self._work_left -= steps
        if self._work_left < 0:
            raise TooComplex

    def _reader(self, *, of_update: bool) -> ShapeReader:
        return self._readers[of_update != self._is_reversed]

    def _ask(self, original: Shape, update: Shape, *, is_reversed: bool) -> Findings:
        pair = (id(original), id(update))
        question = self._questions.get(pair)
        if question is None:
            self.spend(_FIRST_LOOK)
            question = _Question(original, update, Findings(self._compatible_types), is_reversed=is_reversed)
            self._questions[pair] = question
            self._fresh.append(question)
        self.spend(1)
        if self._asking is not None:
            question.asked_by[self._asking] = None
        return question.found

    def _next(self) -> _Question | None:
        """New pairs first, then those whose verdict may change, last those that may only tell other reasons for it.

        So each pair is looked at again once for many answers that have changed.
        """
        if self._fresh:
            return self._fresh.pop()
        for questions in (self._stale, self._outdated):
            if questions:
                return questions.popitem()[0]
        return None

    def _look_at(self, question: _Question) -> None:
        found = question.found
        was_compatible = found.is_compatible
        found.clear()
        self._asking, self._is_reversed = question, question.is_reversed
        self._compare_pair(self, question.original, question.update, found)
        if was_compatible and not found.is_compatible:
            for asker in question.asked_by:
                (self._stale if asker.found.is_compatible else self._outdated)[asker] = None
