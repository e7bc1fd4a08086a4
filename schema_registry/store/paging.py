"""Pages of a query's result."""

from typing import Any, TypeVar

from sqlalchemy import Select

S = TypeVar("S", bound=Select[Any])


def page(statement: S, *, offset: int, limit: int) -> S:
    """One page: `limit` rows after the first `offset`; a negative limit means all."""
    if limit >= 0:
        statement = statement.limit(limit)
    return statement.offset(offset) if offset > 0 else statement
