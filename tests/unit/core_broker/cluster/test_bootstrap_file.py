"""The first users of a cluster, from the file to their login."""

import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from core_broker.broker import Links, start
from core_broker.cluster.bootstrap_file import FILE_NAME, BootstrapFile, add_first_user
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError
from core_broker.handlers.context import Services
from core_broker.log.log_directory import LogDirectory
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.stored.metadata import UserScramCredentialRecord
from core_broker.security.sasl.scram import make_credential
from core_broker.server.server import Server
from core_broker.service.clock import SystemClock
from core_broker.settings import BrokerSettings, Listener

BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "a password that is not stored"


def node(path: Path, **settings: object) -> BrokerSettings:
    listeners = (Listener("PLAINTEXT", "127.0.0.1", 0),)
    return BrokerSettings(log_dirs=(str(path),), listeners=listeners, **settings)  # type: ignore[arg-type] # by name


async def started(settings: BrokerSettings, stack: AsyncExitStack) -> Services:
    """The parts of a running node; the stack stops it."""
    metrics = BrokerMetrics()
    links, server = Links.of(settings), Server(settings, metrics)
    await start(settings, SystemClock(), stack, metrics=metrics, links=links, server=server)
    return server.services


async def test_a_new_cluster_begins_with_its_first_users(tmp_path: Path) -> None:
    settings = node(tmp_path)
    file = add_first_user(settings, "admin", PASSWORD, mechanisms=BOTH)
    add_first_user(settings, "broker", "another", mechanisms=["SCRAM-SHA-512"], iterations=8192)
    async with AsyncExitStack() as stack:
        services = await started(settings, stack)
        credentials = services.credentials
        assert {name: credentials.iterations_of(name) for name in credentials.names()} == {
            "admin": {1: 4096, 2: 4096},
            "broker": {2: 8192},
        }
        found = credentials.find("admin", "SCRAM-SHA-256")
        assert found is not None
        assert found == make_credential(PASSWORD, "SCRAM-SHA-256", 4096, found.salt)
        assert not file.exists()
    async with AsyncExitStack() as stack:
        services = await started(settings, stack)
        assert list(services.credentials.names()) == ["admin", "broker"]


def test_the_file_has_no_password_and_is_private(tmp_path: Path) -> None:
    file = add_first_user(node(tmp_path), "admin", PASSWORD, mechanisms=BOTH)
    assert file == tmp_path / FILE_NAME
    assert PASSWORD.encode() not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("bootstrap")] == [FILE_NAME]


def test_a_user_that_is_added_again_gets_the_new_password(tmp_path: Path) -> None:
    for password in ("old", "new"):
        add_first_user(node(tmp_path), "admin", password, mechanisms=BOTH)
    file = BootstrapFile(tmp_path)
    file.read()
    assert [(record.name, record.mechanism) for record in file.credentials] == [("admin", 1), ("admin", 2)]
    first = file.credentials[0]
    assert first.stored_key == make_credential("new", "SCRAM-SHA-256", 4096, first.salt).stored_key


async def test_a_cluster_that_exists_gets_no_first_users(tmp_path: Path) -> None:
    settings = node(tmp_path)
    async with AsyncExitStack() as stack:
        await started(settings, stack)
        with pytest.raises(BrokerError, match="in use|lock"):
            add_first_user(settings, "admin", PASSWORD, mechanisms=BOTH)
    with pytest.raises(BrokerError, match="belongs to a cluster that exists"):
        add_first_user(settings, "admin", PASSWORD, mechanisms=BOTH)
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize(
    "wrong,reason",
    [
        ({"name": ""}, "name"),
        ({"password": ""}, "password"),
        ({"mechanisms": ["PLAIN"]}, "mechanisms are"),
        ({"mechanisms": []}, "mechanisms are"),
        ({"iterations": 4095}, "iterations"),
        ({"iterations": 16385}, "iterations"),
    ],
)
def test_a_user_that_could_not_log_in_is_refused(tmp_path: Path, wrong: dict[str, object], reason: str) -> None:
    values = {"name": "admin", "password": PASSWORD, "mechanisms": BOTH, **wrong}
    with pytest.raises(BrokerError, match=reason) as error:
        add_first_user(node(tmp_path), **values)  # type: ignore[arg-type] # by name
    assert PASSWORD not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_node_without_a_controller_forms_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="on each controller"):
        add_first_user(node(tmp_path, process_roles=("broker",)), "admin", PASSWORD, mechanisms=BOTH)


async def test_a_damaged_file_stops_the_start(tmp_path: Path) -> None:
    file = add_first_user(node(tmp_path), "admin", PASSWORD, mechanisms=BOTH)
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    async with AsyncExitStack() as stack:
        with pytest.raises(BrokerError, match="create the first users again"):
            await started(node(tmp_path), stack)
    assert file.exists()


def test_users_of_a_controller_that_was_not_the_first_are_named_before_they_are_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = add_first_user(node(tmp_path), "admin", PASSWORD, mechanisms=["SCRAM-SHA-256"])
    file = BootstrapFile(tmp_path)
    file.read()
    file.remove_after_use(MetadataImage(cluster_id="c"))
    assert path.exists()
    exists = MetadataImage(cluster_id="c", features={"metadata.version": 30})
    with caplog.at_level(logging.WARNING):
        file.remove_after_use(exists)
        file.remove_after_use(exists)
    assert not path.exists()
    assert [vars(record)["users"] for record in caplog.records] == [["admin"]]


def test_users_that_the_first_controller_has_created_need_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_first_user(node(tmp_path), "admin", PASSWORD, mechanisms=["SCRAM-SHA-256"])
    file = BootstrapFile(tmp_path)
    file.read()
    created = UserScramCredentialRecord("admin", 1, b"other salt", b"stored", b"server", 4096)
    file.remove_after_use(
        MetadataImage(cluster_id="c", features={"metadata.version": 30}, carried={("scram", "admin", 1): created})
    )
    assert caplog.records == []


def test_a_directory_of_its_own_for_the_metadata_has_the_file(tmp_path: Path) -> None:
    settings = node(tmp_path / "data", metadata_log_dir=str(tmp_path / "metadata"))
    assert add_first_user(settings, "admin", PASSWORD, mechanisms=BOTH) == tmp_path / "metadata" / FILE_NAME
    LogDirectory(tmp_path / "metadata").close()  # the lock was released
