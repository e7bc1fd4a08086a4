import pytest

from connect.api.errors import ConfigError
from connectors.sql import url


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("jdbc:postgresql://db:5433/shop", "postgresql+psycopg://db:5433/shop"),
        ("jdbc:postgresql://db/shop?user=ana&password=geheim", "postgresql+psycopg://ana:geheim@db/shop"),
        ("jdbc:postgresql:shop", "postgresql+psycopg:///shop"),
        ("postgresql://ana:geheim@db/shop", "postgresql+psycopg://ana:geheim@db/shop"),
        ("postgresql+psycopg2://db/shop", "postgresql+psycopg://db/shop"),
        ("jdbc:mysql://db:3306/shop?useSSL=false&serverTimezone=UTC", "mysql+pymysql://db:3306/shop"),
        ("jdbc:mariadb://db/shop", "mysql+pymysql://db/shop"),
        ("mariadb+pymysql://db/shop", "mysql+pymysql://db/shop"),
        ("jdbc:sqlite:/data/shop.db", "sqlite+pysqlite:////data/shop.db"),
        ("jdbc:sqlite:shop.db", "sqlite+pysqlite:///shop.db"),
        ("sqlite:///shop.db", "sqlite+pysqlite:///shop.db"),
    ],
)
def test_addresses_are_understood(text: str, wanted: str) -> None:
    assert url.parse(text).url.render_as_string(hide_password=False) == wanted


def test_user_and_password_of_the_options_win() -> None:
    address = url.parse("jdbc:postgresql://db/shop?user=ana&password=geheim", user="eva", password="p@ss:w/rd")
    assert (address.url.username, address.url.password) == ("eva", "p@ss:w/rd")


@pytest.mark.parametrize(
    "text, key, value",
    [
        ("jdbc:postgresql://db/shop?currentSchema=sales", "options", "-csearch_path=sales"),
        ("jdbc:postgresql://db/shop?ssl=true", "sslmode", "verify-full"),
        ("jdbc:postgresql://db/shop?sslmode=require", "sslmode", "require"),
        ("jdbc:postgresql://db/shop?ApplicationName=x", "application_name", "x"),
        ("jdbc:postgresql://a:1,b/shop", "host", "a,b"),
        ("jdbc:postgresql://a:1,b/shop", "port", "1,5432"),
        ("jdbc:postgresql://db/shop?targetServerType=primary", "target_session_attrs", "primary"),
        ("postgresql://tests@/shop?host=/tmp/pg", "host", "/tmp/pg"),
        ("jdbc:postgresql://db/shop", "connect_timeout", "10"),
        ("jdbc:postgresql://db/shop", "client_encoding", "utf8"),
        ("jdbc:mysql://db/shop?connectTimeout=3000", "connect_timeout", 3),
        ("jdbc:mysql://db/shop?socketTimeout=1500", "read_timeout", 1),
        ("jdbc:mysql://db/shop?useSSL=false", "ssl_disabled", True),
        ("jdbc:mysql://db/shop?sslMode=VERIFY_IDENTITY", "ssl_verify_identity", True),
        ("mysql://root@/shop?unix_socket=/tmp/s", "unix_socket", "/tmp/s"),
        ("jdbc:sqlite:/x.db?busy_timeout=50", "timeout", 0.05),
    ],
)
def test_what_the_driver_is_told(text: str, key: str, value: object) -> None:
    assert url.parse(text).arguments[key] == value


def test_what_only_java_knows_is_left_out() -> None:
    given = url.parse("jdbc:postgresql://db/shop?reWriteBatchedInserts=true&stringtype=unspecified").arguments
    assert not {"reWriteBatchedInserts", "stringtype"} & given.keys()


@pytest.mark.parametrize(
    "text, message",
    [
        ("jdbc:oracle:thin:@db:1521:shop", "oracledb"),
        ("jdbc:sqlserver://db;databaseName=shop", "mssql"),
        ("jdbc:nonsense://db", "PostgreSQL, MySQL, MariaDB or SQLite"),
        ("nonsense", "PostgreSQL, MySQL, MariaDB or SQLite"),
        ("jdbc:postgresql://db:port/shop", "PostgreSQL, MySQL, MariaDB or SQLite"),
    ],
)
def test_other_databases_are_refused_with_what_would_be_needed(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        url.parse(text)
    assert "connection.url" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:nonsense://db/shop?password=geheim&x=1",
        "jdbc:oracle://ana:geheim@db/shop",
        "jdbc:sqlserver://db;user=a;password=geheim;x=1",
    ],
)
def test_secrets_are_not_told(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        url.parse(text)
    assert "geheim" not in str(refused.value)
    assert "db" in str(refused.value)
