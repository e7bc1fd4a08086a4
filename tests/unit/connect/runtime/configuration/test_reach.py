"""Files and addresses that an operator allows, and connections that are refused when they are opened."""

import ipaddress
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connect.api import places
from connect.api.errors import ConfigError
from connect.api.places import Place, Reach
from connect.runtime.configuration.reach import Limits
from connect.settings import ConnectSettings

METADATA = ipaddress.ip_address("169.254.169.254")


def limits(*addresses: str, paths: tuple[str, ...] = ()) -> Limits:
    return Limits(ConnectSettings(connector_allowed_addresses=addresses, connector_allowed_paths=paths))


def allows(found: Limits, server: str) -> bool:
    return not list(found.problems([Place("key", Reach.ADDRESS, server)]))


@pytest.mark.parametrize(
    ("listed", "server", "is_allowed"),
    [
        ("*", "anything:1", True),
        ("*", "169.254.169.254:80", False),
        ("*", "[fe80::1]:80", False),
        ("*", "[::ffff:169.254.169.254]:80", False),
        ("169.254.0.0/16", "169.254.169.254:80", True),
        ("db.example.com", "db.example.com:5432", True),
        ("db.example.com", "DB.example.com", True),
        ("db.example.com:5432", "db.example.com:5432", True),
        ("db.example.com:5432", "db.example.com:22", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "example.com.evil", False),
        ("10.0.0.0/8", "10.1.2.3:9", True),
        ("10.0.0.0/8", "11.1.2.3:9", False),
        ("10.0.0.1:9", "10.0.0.1:9", True),
        ("10.0.0.1:9", "10.0.0.1:10", False),
        ("127.0.0.0/8,::1", "localhost:1", True),
        ("10.0.0.0/8", "localhost:1", False),
        ("[::1]:9", "[::1]:9", True),
        ("", "localhost", False),
    ],
)
def test_addresses(listed: str, server: str, *, is_allowed: bool) -> None:
    assert allows(limits(*filter(None, listed.split(","))), server) == is_allowed


@pytest.mark.parametrize("text", ["a b", "10.0.0.0/99", "http://x/y"])
def test_a_list_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="connector.allowed.addresses"):
        limits(text)


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "link").symlink_to(tmp_path / "secret")
    found = limits(paths=(str(tmp_path / "open"),))
    inside = [tmp_path / "open", tmp_path / "open" / "new" / "file"]
    outside = [tmp_path, tmp_path / "open" / ".." / "secret", tmp_path / "open" / "link", tmp_path / "opened"]
    assert [found.allows_path(str(path)) for path in (*inside, *outside)] == [True, True, False, False, False, False]


def test_certificates_of_the_worker_may_be_used_as_such(tmp_path: Path) -> None:
    (tmp_path / "own.pem").touch()
    found = Limits(ConnectSettings(connector_allowed_paths=(), ssl_certificate_location=str(tmp_path / "own.pem")))
    keys = ("ssl.certificate.location", "file")
    refused = found.problems(Place(key, Reach.PATH, str(tmp_path / "own.pem")) for key in keys)
    assert [problem.key for problem in refused] == ["file"]


def test_without_logins_everything_is_open_but_metadata() -> None:
    found = Limits(ConnectSettings())
    assert found.allows_path("/etc/passwd")
    assert allows(found, "anything")
    assert not found.allows_address(METADATA, 80)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def connect(port: int, host: str = "127.0.0.1") -> None:
    socket.create_connection((host, port), 5).close()


def test_a_connection_is_checked_when_it_is_opened(port: int) -> None:
    with limits("10.0.0.0/8").enforced(), pytest.raises(PermissionError, match=r"connector\.allowed\.addresses"):
        connect(port)
    connect(port)
    with limits(f"127.0.0.1:{port}").enforced():
        connect(port)


def test_threads_of_a_connector_are_checked_and_others_are_not(port: int) -> None:
    with limits("10.0.0.0/8").enforced(), ThreadPoolExecutor(1) as pool, pytest.raises(PermissionError):
        pool.submit(connect, port).result(10)
    other = threading.Thread(target=connect, args=(port,))
    other.start()
    other.join(10)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(connect, port).result(10)


def test_a_name_that_is_listed_may_be_used_by_its_address(port: int) -> None:
    with limits("localhost").enforced():
        connect(port, "localhost")
    with limits("example.com").enforced(), pytest.raises(PermissionError):
        connect(port, "localhost")


def test_what_nothing_is_known_of_is_guessed() -> None:
    given = {
        "name": "/x",
        "topics": "/y",
        "db.url": "jdbc:postgresql://db:5432/x",
        "broker.hosts": "a:1,b:2",
        "keystore.location": "store.jks",
        "folder": "/data",
        "words": "plain text",
        "more.urls": "http://u:p@one:1/x,http://[::1]:2",
    }
    assert [(place.key, place.value) for place in places.guessed(given)] == [
        ("db.url", "db:5432"),
        ("broker.hosts", "a:1"),
        ("broker.hosts", "b:2"),
        ("keystore.location", "store.jks"),
        ("folder", "/data"),
        ("more.urls", "one:1"),
        ("more.urls", "[::1]:2"),
    ]
