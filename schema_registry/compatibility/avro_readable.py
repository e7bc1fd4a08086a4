"""Which Avro types a reader can make of which writer's types: the rules of Java's SchemaCompatibility.

Types may mention each other in chains much longer than Python's stack, so the walk keeps its own.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Final, TypeAlias

from schema_registry.formats.avro_types import Array, Enum, Field, Fixed, Map, Named, Primitive, Record, Type, Union

PAIRS_MAX: Final = 50_000
"""How many pairs of types are looked at before two schemas count as too intricate."""

_READABLE_AS: Final = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
"""Which other primitive types a reader's primitive type can read."""

Pair: TypeAlias = tuple[Type, Type]
"""A reader's type and a writer's."""
Key: TypeAlias = tuple[int, int]
"""What tells pairs of types apart: which types they are, not what these say."""


class TooManyPairs(Exception):
    """The schemas have unions that would take too long to compare."""


class _Allowance:
    """How many pairs may still be looked at."""

    def __init__(self) -> None:
        self._pairs_left = PAIRS_MAX

    def take(self) -> None:
        if not self._pairs_left:
            raise TooManyPairs
        self._pairs_left -= 1


class Readable:
    """Which pairs of types can be read.

    A pair that comes up again while it is judged (recursive types) is taken for readable. When it turns out not to be,
    whatever was concluded from that is forgotten and judged again.
    """

    def __init__(self, presumed: Iterable[Key] = (), allowance: "_Allowance | None" = None) -> None:
        self._verdicts: dict[Key, bool] = {}
        self._under_way: set[Key] = set(presumed)
        self._presumed: set[Key] = set()
        self._branches: dict[int, dict[str, list[Type]]] = {}
        self._allowance = allowance or _Allowance()

    def __call__(self, reader: Type, writer: Type) -> bool:
        """Whether the reader's type can read whatever the writer's type writes."""
        while True:
            self._presumed.clear()
            verdict = self._walk((reader, writer))
            if not any(self._verdicts.get(key) is False for key in self._presumed):
                return verdict
            self._verdicts = {key: known for key, known in self._verdicts.items() if not known}

    def presuming(self, pairs: Iterable[Key]) -> "Readable":
        """What could be read if these pairs could."""
        return Readable(pairs, self._allowance)

    def _walk(self, root: Pair) -> bool:
        verdict = self._known(root)
        if verdict is not None:
            return verdict
        stack = [(root, self._enter(root))]
        while stack:
            pair, questions = stack[-1]
            try:
                following = next(questions) if verdict is None else questions.send(verdict)
            except StopIteration as end:
                stack.pop()
                verdict = self._leave(pair, end.value)
                continue
            verdict = self._known(following)
            if verdict is None:
                stack.append((following, self._enter(following)))
        return bool(verdict)

    def _enter(self, pair: Pair) -> Generator[Pair, bool, bool]:
        self._allowance.take()
        self._under_way.add(key_of(*pair))
        return self._judge(*pair)

    def _leave(self, pair: Pair, verdict: bool) -> bool:
        self._under_way.remove(key_of(*pair))
        self._verdicts[key_of(*pair)] = verdict
        return verdict

    def _known(self, pair: Pair) -> bool | None:
        reader, writer = pair
        if isinstance(reader, Primitive) and isinstance(writer, Primitive):
            return promotes(reader, writer)
        key = key_of(*pair)
        if key in self._under_way:
            self._presumed.add(key)
            return True
        return self._verdicts.get(key)

    def _judge(self, reader: Type, writer: Type) -> Generator[Pair, bool, bool]:
        """Ask for the verdicts on the parts, and conclude."""
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
                return (yield from self._judge_fields(reader, writer))
            case _:
                return False

    def _judge_fields(self, reader: Record, writer: Record) -> Generator[Pair, bool, bool]:
        written = {field.name: field for field in writer.fields}
        for field in reader.fields:
            matches = matching(field, written)
            if len(matches) > 1 or (not matches and not field.has_default):
                return False
            if matches and not (yield field.type, matches[0].type):
                return False
        return True

    def _candidates(self, reader: Union, writer: Type) -> list[Type]:
        """The branches of a union that could read a type: of named types, only those with a name of it."""
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


def matching(field: Field, written: dict[str, Field]) -> list[Field]:
    """The writer's fields that a reader's field takes, by its name and its aliases."""
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


def key_of(reader: Type, writer: Type) -> Key:
    """What tells the pair apart from others."""
    return id(reader), id(writer)


def promotes(reader: Primitive, writer: Primitive) -> bool:
    """Whether a primitive type can be read as another."""
    return reader.kind == writer.kind or writer.kind in _READABLE_AS.get(reader.kind, ())


def is_same_name(reader: Named, writer: Named) -> bool:
    """Whether the names match: namespaces do not count, those of aliases do (Java since Avro 1.9)."""
    return reader.name.simple == writer.name.simple or any(alias.full == writer.name.full for alias in reader.aliases)


def missing_symbols(reader: Enum, writer: Enum) -> list[str]:
    """The writer's symbols that the reader has no answer for."""
    return [] if reader.default is not None else sorted(set(writer.symbols).difference(reader.symbols))
