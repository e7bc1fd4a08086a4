"""Everything that is defined, as it stands after the last record of the log."""

import copy
from collections.abc import Iterable, Mapping
from typing import Literal, Self, TypeAlias, TypeVar

import msgspec

from streams.model.plan import Query
from streams.model.sources import Source
from streams.model.types import SqlType, parse_type

T = TypeVar("T")


class NamedType(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="type"):
    """What CREATE TYPE has defined."""

    name: str
    type: str


class Cleanup(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="cleanup"):
    """What is left to do after a definition has gone. The server that runs the queries does it, and then removes this.

    It is kept in the log, so that nothing stays behind when a server dies in between.
    """

    name: str
    """The query, or the stream or table, that is gone."""
    jobs: tuple[str, ...] = ()
    """Jobs to stop, and whose state is thrown away."""
    topics: tuple[str, ...] = ()
    """Topics to delete."""
    subjects: tuple[str, ...] = ()
    """Topics whose schemas are soft-deleted."""
    groups: tuple[str, ...] = ()
    """Consumer groups to delete."""


class Replacement(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="replacement"):
    """A query that is built beside the one that it will replace, into a topic of its own."""

    name: str
    """The stream or table."""
    old_query: str
    new_query: str
    source: Source
    """What the stream or table will be."""


class SourceDefinition(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="source"):
    """A stream or a table."""

    source: Source

    @property
    def name(self) -> str:
        """Its name."""
        return self.source.name


class QueryDefinition(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="query"):
    """A persistent query."""

    query: Query

    @property
    def name(self) -> str:
        """Its id."""
        return self.query.id


Definition: TypeAlias = SourceDefinition | QueryDefinition | NamedType | Replacement | Cleanup
Kind: TypeAlias = Literal["source", "query", "type", "replacement", "cleanup"]
_KINDS: Mapping[type[msgspec.Struct], Kind] = {
    SourceDefinition: "source",
    QueryDefinition: "query",
    NamedType: "type",
    Replacement: "replacement",
    Cleanup: "cleanup",
}


class Change(msgspec.Struct, frozen=True):
    """A definition that replaces the one of its kind and name; None removes that."""

    kind: Kind
    name: str
    definition: Definition | None = None


def put(definition: Definition) -> Change:
    """The change that defines something, or defines it anew."""
    return Change(_KINDS[type(definition)], definition.name, definition)


def put_source(source: Source) -> Change:
    """The change that defines a stream or a table."""
    return put(SourceDefinition(source=source))


def put_query(query: Query) -> Change:
    """The change that defines a query."""
    return put(QueryDefinition(query=query))


class State:
    """Sources, types and queries by their names. What is read stays as it is while changes are applied."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._queries: dict[str, Query] = {}
        self._types: dict[str, SqlType] = {}
        self._replacements: dict[str, Replacement] = {}
        self._cleanups: dict[str, Cleanup] = {}

    def source(self, name: str) -> Source | None:
        """A stream or a table."""
        return self._sources.get(name)

    def sources(self) -> Iterable[Source]:
        """All streams and tables, by name."""
        return [source for _, source in sorted(self._sources.items())]

    def type(self, name: str) -> SqlType | None:
        """A type that CREATE TYPE has named."""
        return self._types.get(name)

    def types(self) -> Mapping[str, SqlType]:
        """All of them, by name."""
        return dict(sorted(self._types.items()))

    def query(self, id: str) -> Query | None:  # noqa: A002 - the word of the language
        """A persistent query."""
        return self._queries.get(id)

    def queries(self) -> Iterable[Query]:
        """All persistent queries, in the order in which they were defined."""
        return list(self._queries.values())

    def replacement(self, name: str) -> Replacement | None:
        """The replacement of a stream or table that is being built."""
        return self._replacements.get(name)

    def replacements(self) -> Iterable[Replacement]:
        """All replacements that are being built."""
        return list(self._replacements.values())

    def cleanups(self) -> Iterable[Cleanup]:
        """What is left to do after definitions that have gone."""
        return list(self._cleanups.values())

    def cleanup(self, name: str) -> Cleanup | None:
        """What is left to do after one definition."""
        return self._cleanups.get(name)

    def readers(self, name: str) -> tuple[Query, ...]:
        """The queries that read a stream or table."""
        return tuple(query for query in self._queries.values() if name in query.reads)

    def writers(self, name: str) -> tuple[Query, ...]:
        """The queries that fill a stream or table."""
        return tuple(query for query in self._queries.values() if query.writes == name)

    def apply(self, change: Change) -> None:
        """Carry out a change."""
        name, definition = change.name, change.definition
        match definition:
            case SourceDefinition():
                self._sources = {**self._sources, name: definition.source}
            case QueryDefinition():
                self._queries = {**self._queries, name: definition.query}
            case NamedType():
                self._types = {**self._types, name: parse_type(definition.type)}
            case Replacement():
                self._replacements = {**self._replacements, name: definition}
            case Cleanup():
                self._cleanups = {**self._cleanups, name: definition}
            case None:
                self._remove(change)

    def _remove(self, change: Change) -> None:
        name = change.name
        match change.kind:
            case "source":
                self._sources = _without(self._sources, name)
            case "query":
                self._queries = _without(self._queries, name)
            case "type":
                self._types = _without(self._types, name)
            case "replacement":
                self._replacements = _without(self._replacements, name)
            case "cleanup":
                self._cleanups = _without(self._cleanups, name)

    def copy(self) -> Self:
        """Another state that can be changed without this one."""
        return copy.copy(self)  # what it holds is replaced by changes, never changed


def _without(values: dict[str, T], name: str) -> dict[str, T]:
    return {key: value for key, value in values.items() if key != name}
