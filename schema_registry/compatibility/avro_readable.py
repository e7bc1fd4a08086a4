"""Decide which writer's Avro types a reader's types can read, by the rules of Java's SchemaCompatibility.

Types may use each other in chains that are much longer than Python's stack, so the walk has its own.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Final, TypeAlias

from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, Map, Named, Primitive, Record, Type, Union

PAIRS_MAX: Final = 50_000
"""How many pairs of types are checked before two schemas count as too complex."""

_READABLE_AS: Final = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
"""The other primitive types that a reader's primitive type can read."""

Pair: TypeAlias = tuple[Type, Type]
"""A reader's type and a writer's type."""
Key: TypeAlias = tuple[int, int]
"""The identity of a pair of types."""


class TooManyPairs(Exception):
    """The schemas have unions that would take too long to compare."""


class _Budget:
    """The number of pairs that may still be checked."""

    def __init__(self) -> None:
        self._pairs_left = PAIRS_MAX

    def take(self) -> None:
        if not self._pairs_left:
            raise TooManyPairs
        self._pairs_left -= 1


class Readable:
    """Decides which pairs of types are readable.

    A pair that comes up again while it is being checked (recursive types) is presumed readable. If it turns out not to
    be, the verdicts that may rely on it are dropped, and the check starts again.
    """

    def __init__(self, presumed: Iterable[Key] = (), budget: "_Budget | None" = None) -> None:
        self._verdicts: dict[Key, bool] = {}
        self._under_way: set[Key] = set(presumed)
        self._presumed: set[Key] = set()
        self._branches: dict[int, dict[str, list[Type]]] = {}
        self._budget = budget or _Budget()

    def __call__(self, reader: Type, writer: Type) -> bool:
        """Whether the reader's type can read all values of the writer's type."""
        while True:
            self._presumed.clear()
            verdict = self._walk((reader, writer))
            if not any(self._verdicts.get(key) is False for key in self._presumed):
                return verdict
            self._verdicts = {key: known for key, known in self._verdicts.items() if not known}

    def presuming(self, pairs: Iterable[Key]) -> "Readable":
        """The same decisions under the presumption that these pairs are readable."""
        return Readable(pairs, self._budget)

    def _walk(self, root: Pair) -> bool:
        verdict = self._look_up(root)
        if verdict is not None:
            return verdict
        stack = [(root, self._enter(root))]
        while stack:
            pair, questions = stack[-1]
            try:
                following = next(questions) if verdict is None else questions.send(verdict)
            except StopIteration as end:
                stack.pop()
                self._under_way.remove(pair_key(*pair))
                verdict = self._verdicts[pair_key(*pair)] = end.value
                continue
            verdict = self._look_up(following)
            if verdict is None:
                stack.append((following, self._enter(following)))
        return bool(verdict)

    def _enter(self, pair: Pair) -> Generator[Pair, bool, bool]:
        self._budget.take()
        self._under_way.add(pair_key(*pair))
        return self._check(*pair)

    def _look_up(self, pair: Pair) -> bool | None:
        """The verdict on a pair, if it is known or presumed."""
        reader, writer = pair
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            return promotes(reader, writer)
        key = pair_key(*pair)
        if key in self._under_way:
            self._presumed.add(key)
            return True
        return self._verdicts.get(key)

    def _check(self, reader: Type, writer: Type) -> Generator[Pair, bool, bool]:
        """Yield the pairs inside a pair, receive the verdict on each, and return the verdict on the whole."""
        match reader, writer:
            case _, Union():
                return (yield from _all((reader, branch) for branch in writer.branches))
            case Union(), _:
                return (yield from _any((branch, writer) for branch in self._candidates(reader, writer)))
            case Array(), Array():
                return (yield reader.items, writer.items)
            case Map(), Map():
                return (yield reader.values, writer.values)
            case Fixed(), Fixed():
                return is_same_name(reader, writer) and reader.size == writer.size
            case Enum(), Enum():
                return is_same_name(reader, writer) and not missing_symbols(reader, writer)
            case Record(), Record():
                if not is_same_name(reader, writer):
                    return False
                return (yield from self._check_fields(reader, writer))
            case _:
                return False

    def _check_fields(self, reader: Record, writer: Record) -> Generator[Pair, bool, bool]:
        written = {field.name: field for field in writer.fields}
        for field in reader.fields:
            matches = match_fields(field, written)
            if len(matches) > 1 or (not matches and not field.has_default):
                return False
            if matches and not (yield field.type, matches[0].type):
                return False
        return True

    def _candidates(self, reader: Union, writer: Type) -> list[Type]:
        """The branches of a union that could read a type: for a named type, only those with the same name or alias."""
        branches = self._branches.get(id(reader))
        if branches is None:
            branches = self._branches[id(reader)] = _by_name(reader)
        if isinstance(writer, Record | Enum | Fixed):
            found = branches.get(writer.name.simple, []) + branches.get(f"={writer.name.full}", [])
            return list({id(branch): branch for branch in found}.values())
        return branches.get("", [])


def _all(pairs: Iterator[Pair]) -> Generator[Pair, bool, bool]:
    for pair in pairs:
        if not (yield pair):
            return False
    return True


def _any(pairs: Iterator[Pair]) -> Generator[Pair, bool, bool]:
    for pair in pairs:
        if (yield pair):
            return True
    return False


def match_fields(field: Field, written: dict[str, Field]) -> list[Field]:
    """The writer's fields that match a reader's field by its name or its aliases."""
    if not field.aliases:
        return [written[field.name]] if field.name in written else []
    return [written[name] for name in dict.fromkeys((field.name, *field.aliases)) if name in written]


def _by_name(union: Union) -> dict[str, list[Type]]:
    """The branches by simple name and by `=alias`; unnamed types by the empty name."""
    found: dict[str, list[Type]] = {}
    for branch in union.branches:
        if isinstance(branch, Record | Enum | Fixed):
            found.setdefault(branch.name.simple, []).append(branch)
            for alias in branch.aliases:
                found.setdefault(f"={alias.full}", []).append(branch)
        else:
            found.setdefault("", []).append(branch)
    return found


def pair_key(reader: Type, writer: Type) -> Key:
    """The identity of a pair."""
    return id(reader), id(writer)


def promotes(reader: Primitive, writer: Primitive) -> bool:
    """Whether a primitive type can be read as another."""
    return reader.kind == writer.kind or writer.kind in _READABLE_AS.get(reader.kind, ())


def is_same_name(reader: Named, writer: Named) -> bool:
    """Whether the names match, without namespaces, or else an alias with its namespace (Java since Avro 1.9)."""
    return reader.name.simple == writer.name.simple or any(alias.full == writer.name.full for alias in reader.aliases)


def missing_symbols(reader: Enum, writer: Enum) -> list[str]:
    """The writer's symbols that the reader lacks; none if it has a default."""
    return [] if reader.default is not None else sorted(set(writer.symbols).difference(reader.symbols))
