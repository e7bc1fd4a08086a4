"""Classify errors of the database: retry, give up, or report a time-out."""

import sqlite3
from enum import Enum, auto

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from schema_registry.errors import RegistryError


class Failure(Enum):
    """Why a transaction failed, as far as it decides what to do next."""

    RACE = auto()
    """It conflicted with another transaction; a retry sees the other one's result."""
    DISCONNECTED = auto()
    """The connection was lost before the commit; a retry on another one may work."""
    TIMEOUT = auto()
    FATAL = auto()


_RACES = {
    "40001",  # serialization failure
    "40P01",  # deadlock
    "23505",  # unique violation: another transaction inserted the key meanwhile
    "23503",  # foreign key violation: another transaction deleted or used the row meanwhile
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
    """The kind of failure behind an error."""
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
    # Without an SQLSTATE the error is the driver's own: the connection broke or could not be made.
    is_lost = error.connection_invalidated or state in _DISCONNECTS or (state or "08").startswith("08")
    return Failure.DISCONNECTED if is_lost else Failure.FATAL


def as_registry_error(error: SQLAlchemyError | TimeoutError) -> RegistryError:
    """The error to return to the client."""
    reason = str(getattr(error, "orig", None) or error).strip().split("\n", maxsplit=1)[0]
    if classify(error) is Failure.TIMEOUT:
        return RegistryError(50002, f"The database did not answer in time: {reason}")
    return RegistryError(50001, f"Error in the backend data store: {reason}")
