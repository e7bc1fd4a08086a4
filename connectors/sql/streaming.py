"""Results that stay on the server until they are fetched, by the means of each driver."""

import itertools
from collections.abc import Sequence
from typing import Any, Final

import psycopg
import pymysql.cursors
from sqlalchemy import Connection

from connectors.sql.select import Selection

_numbers: Final = itertools.count(1)


class Stream:
    """An open result; rows are fetched in parts. The transaction that it needs is begun, and ended by others."""

    def __init__(self, connection: Connection, chosen: Selection) -> None:
        # A statement that goes to the driver past SQLAlchemy would not begin it.
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
        """What the driver says about the columns."""
        described: Sequence[Any] = self._cursor.description
        return described

    def fetch(self, count: int) -> list[Sequence[Any]]:
        """The next rows; less than wanted when there are no more."""
        return list(self._cursor.fetchmany(count))

    def close(self) -> None:
        """After the last row."""
        self._cursor.close()

    def abandon(self, driver: Any = None) -> None:
        """In the middle of the rows, or after an error: the connection is not used any more."""
        driver = driver or self._cursor.connection
        result = getattr(self._cursor, "_result", None)
        if isinstance(self._cursor, pymysql.cursors.SSCursor) and result is not None:
            result.unbuffered_active = False  # else all the rows would be read, only to be thrown away
        if isinstance(driver, psycopg.Connection):
            driver.close()  # so that no statement is sent to close the cursor
        self._cursor.close()
