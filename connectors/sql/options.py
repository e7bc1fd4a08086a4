"""Options that the source and the sink have in common: where the database is, and how it is spoken to."""

from collections.abc import Iterable
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from typing_extensions import override

from connect.api.config import (
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Config,
    Importance,
    Problem,
    Width,
    at_least,
    not_empty,
    one_of,
    option,
    optional,
)
from connect.api.errors import ConfigError
from connectors.sql import url
from connectors.sql.url import Address

CHOICE: Final = msgspec.structs.replace(STRING, read=str.lower)
"""Text of which capital letters do not matter."""
_DATABASE: Final = "Database"


class ConnectionConfig(Config):
    """How to reach a database."""

    connection_url: str = option(
        STRING, check=not_empty(), importance=Importance.HIGH, group=_DATABASE, width=Width.LONG
    )
    """Where the database is: `jdbc:postgresql://host:5432/name`, `jdbc:mysql://host/name`, `jdbc:mariadb://host/name`,
    `jdbc:sqlite:/path/file.db`, or the same as SQLAlchemy writes it."""
    connection_user: str | None = option(
        optional(STRING),
        default=None,
        aliases=("connection.username",),
        importance=Importance.HIGH,
        group=_DATABASE,
        width=Width.MEDIUM,
    )
    """Who connects; not set: as the URL says."""
    connection_password: str | None = option(
        optional(PASSWORD), default=None, importance=Importance.HIGH, group=_DATABASE, width=Width.MEDIUM
    )
    """The password of that user; not set: as the URL says."""
    connection_attempts: int = option(
        INT, default=3, check=at_least(1), importance=Importance.LOW, group=_DATABASE, width=Width.SHORT
    )
    """How often the first connection is tried at once before the worker is told to try again later. When one is lost
    afterwards, the worker tries again as after any outage."""
    connection_backoff_ms: int = option(
        LONG, default=10_000, check=at_least(0), importance=Importance.LOW, group=_DATABASE, width=Width.SHORT
    )
    """How long to wait between two such attempts."""
    db_timezone: str = option(
        STRING, default="UTC", aliases=("database.time_zone",), importance=Importance.MEDIUM, group=_DATABASE
    )
    """The time zone of columns that have a date and a time but no zone."""
    quote_sql_identifiers: str = option(
        CHOICE,
        default="always",
        check=one_of("always", "never"),
        importance=Importance.MEDIUM,
        group=_DATABASE,
        width=Width.SHORT,
    )
    """Whether names of tables and columns are quoted; never: only where they would not work without."""
    dialect_name: str = option(STRING, default="", importance=Importance.LOW, group=_DATABASE)
    """Taken for compatibility: the URL tells which database it is."""
    table_types: tuple[str, ...] = option(LIST, default=("TABLE",), importance=Importance.LOW, group=_DATABASE)
    """Which kinds of tables are meant: TABLE, VIEW, or both."""

    @override
    def problems(self) -> Iterable[Problem]:
        try:
            self.address()
        except ConfigError as error:
            yield Problem("connection.url", str(error))
        try:
            self.zone()
        except ConfigError as error:
            yield Problem("db.timezone", str(error))

    def address(self) -> Address:
        """Where the database is; raises ConfigError."""
        return url.parse(self.connection_url, user=self.connection_user, password=self.connection_password)

    def zone(self) -> ZoneInfo:
        """The time zone of the database; raises ConfigError."""
        try:
            return ZoneInfo(self.db_timezone)
        except (ZoneInfoNotFoundError, ValueError):
            told = (
                f"Invalid value {self.db_timezone} for configuration db.timezone: must be a name such as Europe/Madrid"
            )
            raise ConfigError(told) from None

    @property
    def includes_views(self) -> bool:
        """Whether views are tables, too."""
        return "VIEW" in {name.upper() for name in self.table_types}
