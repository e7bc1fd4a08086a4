"""What a failure of the database means: try again, give up, or too slow."""

import sqlite3
from enum import Enum, auto

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from schema_registry.errors import RegistryError


class Failure(Enum):
    """How a failed transaction is to be answered."""

    RACE = auto()
    """Another transaction was faster; the same work will see its result."""
    DISCONNECTED = auto()
    """The server went away before the commit; another connection may work."""
    TIMEOUT = auto()
    FATAL = auto()


_RACES = {
    "40001",  # serialization failure
    "40P01",  # deadlock
    "23505",  # a unique key that another transaction inserted meanwhile
    "23503",  # a row that another transaction deleted or used meanwhile
}
_TIMEOUTS = {
    "55P03",  # lock not available
    "57014",  # statement timeout
    "25P03",  # idle in transaction
}
_DISCONNECTS = {
    "57P01",  # the server is shutting down
    "57P02",  # the server crashed
    "57P03",  # the server is starting
    "53300",  # too many connections
}


def classify(error: SQLAlchemyError | TimeoutError) -> Failure:
    """What to do about an error of the database."""
    if isinstance(error, TimeoutError | PoolTimeout):
        return Failure.TIMEOUT
    if not isinstance(error, DBAPIError):
        return Failure.FATAL
    if isinstance(error.orig, sqlite3.Error):
        return _classify_sqlite(error.orig)
    return _classify_postgresql(error)


def _classify_sqlite(error: sqlite3.Error) -> Failure:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, sqlite3.IntegrityError):
        return Failure.RACE
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Failure.TIMEOUT
    return Failure.FATAL


def _classify_postgresql(error: DBAPIError) -> Failure:
    state = getattr(error.orig, "sqlstate", None)
    if state in _RACES:
        return Failure.RACE
    if state in _TIMEOUTS:
        return Failure.TIMEOUT
    # A connection that breaks or cannot be made leaves no state of the server's.
    is_lost = error.connection_invalidated or state in _DISCONNECTS or (state or "08").startswith("08")
    return Failure.DISCONNECTED if is_lost else Failure.FATAL


def as_registry_error(error: SQLAlchemyError | TimeoutError) -> RegistryError:
    """The answer for a client."""
    reason = str(getattr(error, "orig", None) or error).strip().split("\n", maxsplit=1)[0]
    if classify(error) is Failure.TIMEOUT:
        return RegistryError(50002, f"The database did not answer in time: {reason}")
    return RegistryError(50001, f"Error in the backend data store: {reason}")
