"""Errors of drivers, mapped to what the worker does about them.

RetriableError: an outage, a lock or a full disk, which no record has caused. DataError: a record that violates a
constraint, a type or a range. ConfigError: something that an operator must change, such as permissions or columns.
"""

import re
import sqlite3
from typing import Final

import psycopg
import pymysql
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from connect.api.errors import ConfigError, ConnectError, DataError, RetriableError

DRIVER_ERRORS: Final = (
    SQLAlchemyError,
    psycopg.Error,
    pymysql.MySQLError,
    sqlite3.Error,
    OSError,
    ValueError,
    TypeError,
    OverflowError,
)
"""What drivers raise about connections, statements and values."""

_PG_RETRIABLE: Final = ("08", "53", "57", "58", "40", "28", "3D", "XX", "55P03", "55006", "25006", "25P0", "72000")
_PG_DATA: Final = ("42804", "42846", "42P18", "42P08", "42P22")
_MYSQL_RETRIABLE: Final = frozenset(
    (
        *(1021, 1037, 1038, 1040, 1041, 1042, 1043, 1044, 1045, 1049, 1053, 1077, 1079, 1080, 1114, 1129, 1130, 1135),
        *(1152, 1158, 1159, 1160, 1161, 1184, 1189, 1190, 1203, 1205, 1213, 1226, 1290, 1317, 1412, 1613, 1614, 1836),
        *(1927, 1969, 3024, 3100, 3101, 3572, 4031),
    )
)
_MYSQL_CONFIG: Final = frozenset((1054, 1064, 1103, 1142, 1143, 1146, 1149, 1227, 1298, 1347, 1370))
_MYSQL_STALE: Final = frozenset((1054, 1146))
_SQLITE_RETRIABLE: Final = re.compile(
    "SQLITE_(BUSY|LOCKED|IOERR|FULL|CANTOPEN|READONLY|NOMEM|INTERRUPT|PROTOCOL|PERM|SCHEMA)"
)
_SQLITE_CONFIG: Final = ("SQLITE_ERROR", "SQLITE_AUTH", "SQLITE_NOTADB", "SQLITE_CORRUPT")
_PG_STALE: Final = ("42703", "42P01", "42804", "42809", "0A000", "26000")


def describe(error: BaseException, *, trimmed: bool = False) -> str:
    """The database's message on one line, without the statement and its values; `trimmed`: without details either."""
    cause = _cause(error)
    if trimmed and isinstance(cause, psycopg.Error) and cause.diag.message_primary:
        return f"{type(cause).__name__}: {cause.diag.message_primary}"
    text = " ".join(str(cause.args[-1] if isinstance(cause, pymysql.MySQLError) and cause.args else cause).split())
    return f"{type(cause).__name__}: {text}"


def map_error(error: BaseException, *, doing: str, trimmed: bool = False) -> ConnectError:
    """The error to raise instead; `doing` says in a few words what failed."""
    if isinstance(error, ConnectError):
        return error
    return _class_of(_cause(error))(f"{doing}: {describe(error, trimmed=trimmed)}")


def may_be_stale(error: BaseException) -> bool:
    """Whether the table may have changed since it was reflected, so that reflecting it again may help."""
    cause = _cause(error)
    if isinstance(cause, psycopg.Error):
        return cause.sqlstate in _PG_STALE
    if isinstance(cause, pymysql.MySQLError):
        return _number(cause) in _MYSQL_STALE
    return isinstance(cause, sqlite3.OperationalError) and _sqlite_name(cause) == "SQLITE_ERROR"


def is_too_large(error: BaseException) -> bool:
    """Whether MySQL may have closed the connection because a statement was too large."""
    cause = _cause(error)
    return isinstance(cause, pymysql.MySQLError) and _number(cause) in (1153, 2006, 2013)


def is_conflict(error: BaseException) -> bool:
    """Whether two transactions were in conflict, so that trying again soon helps."""
    cause = _cause(error)
    if isinstance(cause, psycopg.Error):
        return cause.sqlstate in ("40001", "40P01")
    return isinstance(cause, pymysql.MySQLError) and _number(cause) == 1213


def _cause(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _class_of(cause: BaseException) -> type[ConnectError]:
    if isinstance(cause, psycopg.Error):
        return _postgres(cause)
    if isinstance(cause, pymysql.MySQLError):
        return _mysql(cause)
    if isinstance(cause, sqlite3.Error):
        name = _sqlite_name(cause)
        if _SQLITE_RETRIABLE.match(name):
            return RetriableError
        return ConfigError if name in _SQLITE_CONFIG else DataError
    return RetriableError if isinstance(cause, OSError | SQLAlchemyError) else DataError


def _postgres(error: psycopg.Error) -> type[ConnectError]:
    state = error.sqlstate
    if state is None:
        # The driver's own error: a broken connection, or a value that it cannot write.
        is_lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return RetriableError if is_lost else DataError
    if state.startswith(_PG_RETRIABLE):
        return RetriableError
    if state.startswith("42") and state not in _PG_DATA:
        return ConfigError
    return DataError


def _mysql(error: pymysql.MySQLError) -> type[ConnectError]:
    number = _number(error)
    if number is None:
        return DataError  # The driver's own error: a value that MySQL does not have, such as not-a-number.
    is_lost = number == 0 and isinstance(error, pymysql.InterfaceError)
    if is_lost or number in _MYSQL_RETRIABLE or 2000 <= number < 2100:
        return RetriableError
    return ConfigError if number in _MYSQL_CONFIG else DataError


def _number(error: pymysql.MySQLError) -> int | None:
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


def _sqlite_name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
