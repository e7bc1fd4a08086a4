import sqlite3

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import OperationalError

from connect.api.errors import ConfigError, ConnectError, DataError, RetriableError
from connectors.sql import errors


def _postgres(state: str) -> psycopg.Error:
    return psycopg.errors.lookup(state)("reason")


def _sqlite(statement: str, *, before: str = "SELECT 1") -> sqlite3.Error:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(before)
        with pytest.raises(sqlite3.Error) as raised:
            connection.execute(statement)
    finally:
        connection.close()
    return raised.value


@pytest.mark.parametrize(
    "error, wanted",
    [
        (psycopg.OperationalError("connection refused"), RetriableError),
        (psycopg.DataError("NUL is not allowed"), DataError),
        *[
            (_postgres(state), RetriableError)
            for state in ("57P01", "57P03", "40001", "40P01", "55P03", "53300", "08006")
        ],
        *[(_postgres(state), RetriableError) for state in ("57014", "25006", "28P01", "53100", "XX000")],
        *[(_postgres(state), DataError) for state in ("23505", "23502", "22001", "22003", "22P02", "42804", "21000")],
        *[(_postgres(state), ConfigError) for state in ("42501", "42P01", "42703", "42P10")],
        *[(pymysql.OperationalError(code, "reason"), RetriableError) for code in (2003, 2006, 2013, 1205, 1213, 1040)],
        (pymysql.InterfaceError(0, ""), RetriableError),
        *[(pymysql.IntegrityError(code, "reason"), DataError) for code in (1062, 1048, 1452)],
        *[(pymysql.DataError(code, "reason"), DataError) for code in (1406, 1264, 1366)],
        (pymysql.OperationalError(1142, "reason"), ConfigError),
        (pymysql.ProgrammingError("nan can not be used with MySQL"), DataError),
        (_sqlite("INSERT INTO t VALUES (NULL)", before="CREATE TABLE t (a NOT NULL)"), DataError),
        (_sqlite("SELECT * FROM missing"), ConfigError),
        (ConnectionRefusedError("reason"), RetriableError),
        (OverflowError("reason"), DataError),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "reason"), DataError),
    ],
)
def test_every_error_is_about_the_other_side_the_record_or_the_operator(
    error: Exception, wanted: type[ConnectError]
) -> None:
    assert type(errors.map_error(error, doing="writing")) is wanted


def test_what_sqlalchemy_wraps_is_unwrapped_and_the_statement_is_not_told() -> None:
    wrapped = OperationalError("INSERT secret", {"a": "secret"}, pymysql.OperationalError(2013, "Lost connection"))
    raised = errors.map_error(wrapped, doing="writing")
    assert isinstance(raised, RetriableError)
    assert str(raised) == "writing: OperationalError: Lost connection"


def test_our_own_errors_stay_what_they_are() -> None:
    own = DataError("reason")
    assert errors.map_error(own, doing="writing") is own


def test_a_table_that_has_changed_is_looked_at_again() -> None:
    assert errors.may_be_stale(_postgres("42703"))
    assert errors.may_be_stale(pymysql.OperationalError(1054, "reason"))
    assert errors.may_be_stale(_sqlite("SELECT * FROM missing"))
    assert not errors.may_be_stale(_postgres("23505"))


def test_conflicts_are_tried_again_soon() -> None:
    assert errors.is_conflict(_postgres("40P01"))
    assert errors.is_conflict(pymysql.OperationalError(1213, "reason"))
    assert not errors.is_conflict(_postgres("08006"))
