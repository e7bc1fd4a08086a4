"""The plan of a pull query: a look into the copies of tables, or a SELECT of Spark over them."""

from typing import Literal, TypeAlias

import msgspec

from streams.model.plan import Input
from streams.model.sources import Column

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "IS NULL", "IS NOT NULL"]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of a column with a literal; false if either is null."""

    column: str
    operator: Operator
    literal: msgspec.Raw = msgspec.Raw(b"null")
    """As JSON, in the form in which the REST API gives out values of the column's type."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the result: a column of the table, or a field inside it."""

    name: str
    path: tuple[str, ...]


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What can be answered from the copy without Spark."""

    source: str
    keys: tuple[tuple[msgspec.Raw, ...], ...] | None
    """Complete keys, each with a literal for every key column; None: all rows."""
    filters: tuple[Filter, ...]
    """What has to hold beside; of any column, ROWTIME, WINDOWSTART and WINDOWEND."""
    outputs: tuple[Output, ...]
    limit: int | None = None


class PullPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly one of `lookup` and `sql` is given."""

    columns: tuple[Column, ...]
    key_columns: int = 0
    """How many of the columns, from the first on, are key columns."""
    lookup: Lookup | None = None
    sql: str | None = None
    """A SELECT over views named like the tables, with the columns that a lookup knows."""
    tables: tuple[str, ...] = ()
    """The tables that `sql` reads."""
    inputs: tuple[Input, ...] = ()
    """The streams that `sql` reads, from their beginning to their present end; views as in a QueryPlan."""
    functions: tuple[str, ...] = ()
    limit: int | None = None
