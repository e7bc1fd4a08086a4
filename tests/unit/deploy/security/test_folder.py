import stat
from pathlib import Path

import pytest

from core_broker.service.clock import ManualClock, SystemClock
from core_broker.service.properties import read_file
from deploy.clients.connections import client_settings
from deploy.security.client_files import write_client_files
from deploy.security.folder import ADMIN, SecurityFolder, hosts_of

DAY_MS = 86_400_000


def prepared(data: Path, *, hosts: tuple[str, ...] = ("localhost",)) -> SecurityFolder:
    folder = SecurityFolder(data)
    folder.prepare(certificates=("broker", "registry"), users=("connect",), hosts=hosts)
    return folder


def contents(folder: SecurityFolder) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.path.rglob("*") if path.is_file() and path.suffix != ".p12"}


def test_a_second_start_uses_the_same(tmp_path: Path) -> None:
    assert not SecurityFolder(tmp_path).is_set_up
    first = contents(prepared(tmp_path))
    assert SecurityFolder(tmp_path).is_set_up
    assert contents(prepared(tmp_path)) == first


def test_only_the_owner_may_use_any_of_it(tmp_path: Path) -> None:
    folder = prepared(tmp_path)
    write_client_files(folder, bootstrap="localhost:1", certificates_bootstrap="localhost:2")
    folder.write_secrets("connect", {"client.sasl.password": "x"})
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder.path, *folder.path.rglob("*"))}
    assert modes == {0o700, 0o600}


def test_passwords_are_long_and_all_different(tmp_path: Path) -> None:
    folder = prepared(tmp_path)
    passwords = [file.read_text().strip() for file in (folder.path / "passwords").iterdir()]
    assert len(set(passwords)) == len(passwords) == 3
    assert all(len(password) >= 32 for password in passwords)


def test_a_host_that_is_new_is_added_and_a_certificate_that_expires_soon_is_renewed(tmp_path: Path) -> None:
    folder = prepared(tmp_path)
    first = {one.name: one for one in folder.authority.issued()}
    assert first["broker"].hosts == ("localhost",)
    assert first["launcher"].hosts == first["admin"].hosts == ()
    prepared(tmp_path, hosts=("localhost", "river.example"))
    second = {one.name: one for one in folder.authority.issued()}
    assert second["broker"].hosts == ("localhost", "river.example")
    assert second["launcher"].serial == first["launcher"].serial
    later = SecurityFolder(tmp_path)
    later.authority._clock = ManualClock(SystemClock().now_ms() + 350 * DAY_MS)
    later.prepare(certificates=("broker",), users=(), hosts=("localhost",))
    third = {one.name: one for one in folder.authority.issued()}
    assert third["broker"].not_after > second["broker"].not_after
    assert third["broker"].hosts == ("localhost", "river.example")


def test_client_files_name_the_administrator_and_the_authority(tmp_path: Path) -> None:
    folder = prepared(tmp_path)
    write_client_files(folder, bootstrap="localhost:1", certificates_bootstrap="localhost:2")
    password = folder.password(ADMIN)
    assert f'username="admin" password="{password}";' in folder.client_config.read_text()
    assert f"sasl.password={password}" in folder.librdkafka_config.read_text()
    assert f'user = "admin:{password}"' in folder.curl_config.read_text()
    assert password not in folder.certificate_config.read_text()
    assert "ssl.truststore.type=PKCS12" in folder.java_config.read_text()


def test_a_password_that_an_administrator_has_chosen_is_read_back_as_it_is(tmp_path: Path) -> None:
    password = 'quo"te \\ back;slash = #1'
    folder = prepared(tmp_path)
    folder.password_file(ADMIN).write_text(f"{password}\n")
    write_client_files(folder, bootstrap="localhost:1", certificates_bootstrap="localhost:2")
    for file in (folder.client_config, folder.java_config):
        found = client_settings(None, None, file, timeout=1)
        assert found.properties["sasl.password"] == password
        assert found.properties["sasl.username"] == "admin"
    lines = folder.librdkafka_config.read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines)["sasl.password"] == password
    written = folder.write_secrets("connect", {"client.sasl.password": password})
    assert read_file(written) == {"client.sasl.password": password}


@pytest.mark.parametrize(("host", "named"), [("", ()), ("localhost", ()), ("192.0.2.7", ("192.0.2.7",)), ("[::1]", ())])
def test_services_are_reached_on_this_machine_and_by_the_address_that_is_given(
    host: str, named: tuple[str, ...]
) -> None:
    hosts = hosts_of(host)
    assert hosts[:3] == ["localhost", "127.0.0.1", "::1"]
    assert set(named) <= set(hosts)
    assert len(set(hosts)) == len(hosts)
    assert not {"", "[::1]"} & set(hosts)
