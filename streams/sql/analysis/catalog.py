"""What the analysis asks the catalog; streams.catalog answers."""

from collections.abc import Iterable
from typing import Protocol

from streams.model.plan import Query
from streams.model.sources import Source
from streams.model.types import SqlType
from streams.sql.functions.user import UserFunction


class Catalog(Protocol):
    """Everything that statements have defined, by the names under which it is stored."""

    def source(self, name: str) -> Source | None:
        """A stream or table."""

    def sources(self) -> Iterable[Source]:
        """All streams and tables."""

    def type(self, name: str) -> SqlType | None:
        """A type that CREATE TYPE has named."""

    def query(self, id: str) -> Query | None:  # noqa: A002 - what everybody calls it
        """A persistent query."""

    def queries(self) -> Iterable[Query]:
        """All persistent queries."""

    def user_function(self, name: str) -> UserFunction | None:
        """A user's function, by its name in upper case."""
