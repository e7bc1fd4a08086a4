"""Results that stay on the server until their rows are fetched."""

import itertools
from collections.abc import Sequence
from typing import Any, Final

import psycopg
import pymysql.cursors
from sqlalchemy import Connection

from connectors.sql.select import Selection

_numbers: Final = itertools.count(1)


class Stream:
    """An open result. It begins the transaction that it needs; the caller ends it."""

    def __init__(self, connection: Connection, chosen: Selection) -> None:
        # A statement that goes directly to the driver would not begin it.
        if not connection.in_transaction():
            connection.begin()
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, psycopg.Connection):
            self._cursor: Any = driver.cursor(name=f"connect_{next(_numbers)}")
        elif isinstance(driver, pymysql.connections.Connection):
            self._cursor = driver.cursor(pymysql.cursors.SSCursor)
        else:
            self._cursor = driver.cursor()
        try:
            self._cursor.execute(chosen.statement, chosen.parameters)
        except BaseException:
            self.abandon(driver)
            raise

    @property
    def description(self) -> Sequence[Any]:
        """The driver's description of the columns."""
        described: Sequence[Any] = self._cursor.description
        return described

    def fetch(self, count: int) -> list[Sequence[Any]]:
        """The next rows; fewer than `count` at the end."""
        return list(self._cursor.fetchmany(count))

    def close(self) -> None:
        """Close the result after its last row."""
        self._cursor.close()

    def abandon(self, driver: Any = None) -> None:
        """Close the result before its end, or after an error; the connection cannot be used any more."""
        driver = driver or self._cursor.connection
        result = getattr(self._cursor, "_result", None)
        if isinstance(self._cursor, pymysql.cursors.SSCursor) and result is not None:
            result.unbuffered_active = False  # Else all remaining rows would be read and discarded.
        if isinstance(driver, psycopg.Connection):
            driver.close()  # So that no statement is sent to close the cursor.
        self._cursor.close()
