"""Addresses of databases: `jdbc:` URLs and SQLAlchemy's, whose secrets are in no message."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from connect.api.errors import ConfigError
from connect.api.places import Place, path, servers

_OTHERS: Final = {
    "sqlserver": "mssql+pyodbc",
    "jtds": "mssql+pyodbc",
    "oracle": "oracle+oracledb",
    "db2": "ibm_db_sa",
    "sap": "sqlalchemy-hana",
    "vertica": "sqlalchemy-vertica-python",
    "snowflake": "snowflake-sqlalchemy",
    "redshift": "sqlalchemy-redshift",
    "clickhouse": "clickhouse-sqlalchemy",
    "derby": "a dialect of SQLAlchemy",
    "h2": "a dialect of SQLAlchemy",
}
_DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite+pysqlite",
}
_FILES: Final = (
    *("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile", "service"),
    *("unix_socket", "ssl_ca", "ssl_cert", "ssl_key"),
)
"""Arguments that are files, or names of what a file has."""
SUPPORTED: Final = "a URL of PostgreSQL, MySQL, MariaDB or SQLite, such as jdbc:postgresql://host:5432/database"
_SECRET: Final = re.compile(r"(?i)((?:password|passwd|pwd|sslpassword)=)[^&;]*|(?<=:)([^:/@]*)(?=@)")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The URL of a database, and the arguments of its driver."""

    url: URL
    arguments: Mapping[str, Any]

    @property
    def family(self) -> str:
        """postgresql, mysql or sqlite."""
        return self.url.get_backend_name()

    def places(self, key: str) -> Iterator[Place]:
        """The server, or the file, and files with certificates."""
        if self.family == "sqlite":
            database = self.url.database or ""
            yield from path(key, "" if database == ":memory:" else database.removeprefix("file:").partition("?")[0])
            return
        ports = str(self.arguments.get("port", self.url.port or "")).split(",")
        named = (self.url.host, self.arguments.get("host"), self.arguments.get("hostaddr"))
        hosts = [host for text in named if text for host in text.split(",")]
        for number, host in enumerate(hosts or ["localhost"]):
            port = ports[number % len(ports)]
            if host.startswith("/"):
                yield from path(key, host)
            else:
                yield from servers(key, f"{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}")
        for name, value in self.arguments.items():
            if name in _FILES and value not in ("", "system"):
                yield from path(key, str(value))


def parse(text: str, *, user: str | None = None, password: str | None = None) -> Address:
    """The address in a URL; `user` and `password` take precedence over the URL's. Raises ConfigError."""
    plain = text.strip()
    scheme = plain.removeprefix("jdbc:").split(":", 1)[0].split("+", 1)[0].lower()
    if scheme in _OTHERS:
        driver = _OTHERS[scheme]
        raise _refusal(text, f"must be {SUPPORTED}; {scheme} would need {driver}, which is not supported")
    if scheme not in _DRIVERS:
        raise _refusal(text, f"must be {SUPPORTED}")
    try:
        url = _from_jdbc(plain.removeprefix("jdbc:"), scheme) if plain.startswith("jdbc:") else make_url(plain)
    except (ArgumentError, ValueError):
        raise _refusal(text, f"must be {SUPPORTED}") from None
    url = url.set(drivername=_DRIVERS[scheme])
    given = dict(url.query)
    url = url.set(
        username=user or url.username or _text(given.pop("user", None)),
        password=password or url.password or _text(given.pop("password", None)),
        query={},
    )
    return _ADDRESSES[url.get_backend_name()](url, {key: _text(value) or "" for key, value in given.items()})


def without_secrets(text: str) -> str:
    """A URL that may be shown."""
    return _SECRET.sub(lambda found: f"{found[1] or ''}***", text)


def _refusal(text: str, reason: str) -> ConfigError:
    return ConfigError(f"Invalid value {without_secrets(text)} for configuration connection.url: {reason}")


def _from_jdbc(text: str, scheme: str) -> URL:
    rest = text.split(":", 1)[1]
    if scheme == "sqlite":
        path, _, options = rest.removeprefix("file:").partition("?")
        return URL.create("sqlite", database=path or ":memory:", query=dict(parse_qsl(options)))
    if not rest.startswith("//"):
        rest = f"///{rest}"  # jdbc:postgresql:database means the local server
    parts = urlsplit(f"{scheme}:{rest}")
    query: dict[str, str] = dict(parse_qsl(parts.query, keep_blank_values=True))
    place = parts.netloc.rpartition("@")[2]
    if "," in place:
        servers = [server.partition(":") for server in place.split(",")]
        query["host"] = ",".join(name for name, _, _ in servers)
        query["port"] = ",".join(port or "5432" for _, _, port in servers)
        host, number = None, None
    else:
        host, number = parts.hostname, parts.port
    database = parts.path.removeprefix("/") or None
    return URL.create(
        scheme,
        username=parts.username,
        password=parts.password,
        host=host,
        port=number,
        database=database,
        query=query,
    )


# --- arguments of each driver ---

_LIBPQ: Final = frozenset(
    (
        *("host", "hostaddr", "port", "connect_timeout", "options", "application_name", "target_session_attrs"),
        *(
            "service",
            "sslmode",
            "sslrootcert",
            "sslcert",
            "sslkey",
            "sslpassword",
            "sslcrl",
            "sslnegotiation",
            "channel_binding",
        ),
        *("gssencmode", "krbsrvname", "load_balance_hosts", "passfile", "tcp_user_timeout", "keepalives"),
        *("keepalives_idle", "keepalives_interval", "keepalives_count", "channel_binding"),
    )
)
_SESSIONS: Final = {
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "preferSecondary": "prefer-standby",
}
_PGJDBC: Final[dict[str, Callable[[str], dict[str, str]]]] = {
    "ssl": lambda text: {"sslmode": "verify-full"} if text.lower() in ("true", "") else {},
    "connectTimeout": lambda text: {"connect_timeout": text},
    "loginTimeout": lambda text: {"connect_timeout": text},
    "ApplicationName": lambda text: {"application_name": text},
    "currentSchema": lambda text: {"options": f"-csearch_path={text}"},
    "targetServerType": lambda text: {"target_session_attrs": _SESSIONS.get(text, "any")},
    "hostRecheckSeconds": lambda _: {},
}
# A server that has disappeared must not block a task for ever.
_PG_DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "tcp_user_timeout": "60000",
    "client_encoding": "utf8",  # As the JDBC driver; if the database has no encoding, text would arrive as bytes.
}


def _postgres(url: URL, given: Mapping[str, str]) -> Address:
    arguments = dict(_PG_DEFAULTS)
    for key, value in given.items():
        if key in _LIBPQ:
            arguments[key] = value
        elif key in _PGJDBC:
            arguments.update(_PGJDBC[key](value))
    return Address(url=url, arguments=arguments)


_PYMYSQL: Final = frozenset(("unix_socket", "charset", "ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password"))


def _mysql(url: URL, given: Mapping[str, str]) -> Address:
    arguments: dict[str, Any] = {"charset": "utf8mb4", "connect_timeout": 10, "read_timeout": 600, "write_timeout": 600}
    arguments.update({key: value for key, value in given.items() if key in _PYMYSQL})
    if "localSocket" in given:
        arguments["unix_socket"] = given["localSocket"]
    for key, targets in (
        ("connectTimeout", ("connect_timeout",)),
        ("socketTimeout", ("read_timeout", "write_timeout")),
    ):
        milliseconds = int(given[key]) if given.get(key, "").isdigit() else 0
        if milliseconds > 0:
            arguments.update(dict.fromkeys(targets, max(1, milliseconds // 1000)))
    arguments.update(_mysql_encryption(given))
    return Address(url=url, arguments=arguments)


def _mysql_encryption(given: Mapping[str, str]) -> dict[str, Any]:
    mode = given.get("sslMode", "").upper().replace("-", "_")
    if mode in ("DISABLED", "DISABLE") or given.get("useSSL", "").lower() == "false":
        return {"ssl_disabled": True}
    if mode in ("VERIFY_IDENTITY", "VERIFY_FULL"):
        return {"ssl_verify_cert": True, "ssl_verify_identity": True}
    if mode == "VERIFY_CA":
        return {"ssl_verify_cert": True}
    if mode in ("REQUIRED", "TRUST") or given.get("requireSSL", "").lower() == "true":
        return {"ssl": {"check_hostname": False, "verify_mode": "none"}}
    return {}


def _sqlite(url: URL, given: Mapping[str, str]) -> Address:
    busy = given.get("busy_timeout", given.get("timeout", "5000"))
    seconds = int(busy) / 1000 if busy.isdigit() else 5.0
    return Address(url=url, arguments={"timeout": seconds, "check_same_thread": False})


_ADDRESSES: Final = {"postgresql": _postgres, "mysql": _mysql, "sqlite": _sqlite}


def _text(value: str | tuple[str, ...] | None) -> str | None:
    return value if value is None or isinstance(value, str) else ",".join(value)
