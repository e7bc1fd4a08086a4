"""The tools at a registry and a worker that ask for a login: the user is the one of the cluster, by the same file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.command import Caudal
from tests.support.connect import ConnectProcess
from tests.support.registry import RegistryProcess
from tests.support.secured import ADMIN, Certificates, SecuredBroker, client_properties, write_properties

pytestmark = pytest.mark.timeout(300)

_COMMANDS: Final = (("schema", "list"), ("connector", "list"))


class _Registry(RegistryProcess):
    ready = re.compile(rb"registry ready: listeners=(https://[\w.\[\]:-]+:\d+)")


class _Worker(ConnectProcess):
    ready = re.compile(rb"connect ready: listeners=(https://[\w.\[\]:-]+:\d+)")


class Services:
    """What asks for a login, and client files."""

    def __init__(self, folder: Path, certificates: Certificates, registry: str, connect: str, bootstrap: str) -> None:
        self._folder = folder
        self._certificates = certificates
        self.registry = registry
        self.connect = connect
        self.bootstrap = bootstrap

    def file(self, password: str = "admin-secret") -> str:
        properties = client_properties(self._certificates, ADMIN, password)
        written = {"bootstrap.servers": self.bootstrap, **properties}
        return str(write_properties(self._folder / f"{password}.properties", written))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("services")
    certificates = Certificates(folder)
    with SecuredBroker(folder / "broker", certificates) as broker:
        login = {
            "listeners": "https://127.0.0.1:0",
            "ssl.certificate.location": str(certificates.broker_file),
            "ssl.key.location": str(certificates.broker_file),
            "authentication.method": "BASIC",
            "authentication.kafka.bootstrap.servers": broker.address,
            "authentication.kafka.security.protocol": "SASL_SSL",
            "authentication.kafka.sasl.mechanism": "PLAIN",
            "authentication.kafka.ssl.ca.location": str(certificates.ca_file),
            "super.users": f"User:{ADMIN}",
        }
        plain = f"127.0.0.1:{broker.plain_port}"
        with (
            _Registry(folder / "registry", settings=login) as registry,
            _Worker(folder / "connect", bootstrap=plain, settings=login) as worker,
        ):
            yield Services(folder, certificates, registry.url, worker.url, broker.address)


@pytest.fixture
def caudal(services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caudal:
    monkeypatch.setenv("CAUDAL_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("CAUDAL_REGISTRY", services.registry)
    monkeypatch.setenv("CAUDAL_CONNECT", services.connect)
    monkeypatch.delenv("CAUDAL_CLIENT_CONFIG", raising=False)
    return Caudal(monkeypatch)


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_the_client_file_of_the_cluster_logs_in(caudal: Caudal, services: Services, command: tuple[str, ...]) -> None:
    assert caudal.json(*command, "--client-config", services.file()) == []


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_a_wrong_password_and_none_are_refused_with_what_to_do(
    caudal: Caudal, services: Services, command: tuple[str, ...]
) -> None:
    wrong = caudal(*command, "--client-config", services.file("wrong-secret"), code=1).stderr
    assert "--profile NAME" in wrong
    assert "wrong-secret" not in wrong
    # Without a client file, there is no authority to trust either.
    assert "not trusted" in caudal(*command, code=1).stderr.replace("certificate verify failed", "not trusted")


def test_a_profile_has_it_all(caudal: Caudal, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CAUDAL_REGISTRY", "CAUDAL_CONNECT", "CAUDAL_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
    where = ("--registry", services.registry, "--connect", services.connect)
    caudal("profile", "add", "shop", "--client-config", services.file(), *where)
    for command in (*_COMMANDS, ("topic", "list")):
        caudal(*command, "--profile", "shop")
    monkeypatch.setenv("CAUDAL_PROFILE", "shop")
    caudal("schema", "list")
    monkeypatch.delenv("CAUDAL_PROFILE")
    caudal("profile", "use", "shop")
    caudal("connector", "list")


def test_the_owners_name_and_password_may_differ_at_the_registry(caudal: Caudal, services: Services) -> None:
    file = services.file()
    caudal("schema", "list", "--client-config", file, "--user", f"{ADMIN}:wrong-secret", code=1)
    with Path(file).open("a") as opened:
        opened.write("schema.registry.basic.auth.user.info=admin:wrong-secret\n")
    caudal("schema", "list", "--client-config", file, code=1)
    caudal("connector", "list", "--client-config", file)
