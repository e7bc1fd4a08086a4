"""A registry whose callers log in, beside a real broker that knows the users: with curl, httpx and hostile clients."""

import asyncio
import http.client
import random
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from confluent_kafka.admin import ScramMechanism

from core_broker.client.settings import ClientSettings
from core_broker.web_access.cluster_passwords import ClusterPasswords
from core_broker.web_access.passwords import Verdict
from tests.support.connect import ConnectProcess
from tests.support.patience import PATIENCE_S, eventually
from tests.support.proxy import ProxyProcess
from tests.support.registry import AVRO
from tests.support.sasl_broker import ALICE_PASSWORD, SaslBroker
from tests.support.sasl_world import signing_key
from tests.support.secured_registry import (
    IdentityProvider,
    ScramUsers,
    SecuredRegistry,
    bearer_token,
    identity_provider,
)
from tests.support.web_login import basic

PASSWORD = "pass:wörd-of-anna"
KEY = signing_key("first")
STORAGE = {f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")}


class World(NamedTuple):
    """Everything that has to do with a login."""

    broker: SaslBroker
    users: ScramUsers
    provider: IdentityProvider
    registry: SecuredRegistry

    def client(self, headers: Mapping[str, str] | None = None, *, certificate: Path | None = None) -> httpx2.Client:
        """A client that trusts the registry."""
        context = ssl.create_default_context(cafile=str(self.registry.authority.trust_store))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return httpx2.Client(base_url=self.registry.url, verify=context, headers=headers, timeout=30)

    def status(self, headers: Mapping[str, str] | None = None, path: str = "/subjects") -> int:
        """The status of a request over a connection of its own."""
        with self.client(headers) as client:
            return client.get(path).status_code


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    settings = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}
    folder = tmp_path_factory.mktemp("world")
    with identity_provider(KEY) as provider, SaslBroker(folder / "broker", settings=settings) as broker:
        users = ScramUsers(broker)
        users.add("anna", PASSWORD)
        with SecuredRegistry(folder / "registry", broker.external, keys=provider.url) as registry:
            yield World(broker, users, provider, registry)


def by_password(user: str = "anna", password: str = PASSWORD) -> dict[str, str]:
    return {"authorization": basic(user, password)}


def by_token(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# -- who gets in ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_passwords_are_checked_with_each_mechanism(world: World, mechanism: str) -> None:
    await asyncio.to_thread(world.users.add, "alice", ALICE_PASSWORD, ScramMechanism.SCRAM_SHA_256)
    await asyncio.to_thread(world.users.add, "alice", ALICE_PASSWORD, ScramMechanism.SCRAM_SHA_512)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    cluster = ClientSettings(bootstrap_servers=world.broker.external, properties=login)
    with ClusterPasswords(cluster, logins_max=4) as passwords:
        async with asyncio.timeout(60):
            assert await passwords.verify("alice", ALICE_PASSWORD) is Verdict.RIGHT
            assert await passwords.verify("alice", "wrong") is Verdict.WRONG
            assert await passwords.verify("stranger", "wrong") is Verdict.WRONG


def curl(world: World, *options: str, secret: str = "") -> int:
    """The status that curl gets; secrets go over its standard input."""
    trusting = ("--cacert", str(world.registry.authority.trust_store), "--max-time", "30", "--config", "-")
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *trusting, *options]
    done = subprocess.run(
        [*command, f"{world.registry.url}/subjects"],
        input=secret,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return int(done.stdout)


def test_curl_logs_in_in_each_way(world: World) -> None:
    assert curl(world) == 401
    assert curl(world, secret=f'user = "anna:{PASSWORD}"') == 200
    assert curl(world, "--anyauth", secret=f'user = "anna:{PASSWORD}"') == 200
    assert curl(world, secret=f'oauth2-bearer = "{bearer_token(KEY)}"') == 200
    assert curl(world, "--cert", str(world.registry.authority.issue("carol"))) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        by_password(password="wrong"),
        by_password(user="stranger"),
        by_password(password=""),
        by_token("a.b.c"),
        by_token(bearer_token(KEY, lasts_s=-1)),
        by_token(bearer_token(KEY, aud="another")),
        by_token(bearer_token(signing_key("stranger"))),
        by_token(bearer_token(KEY)[:-4] + "AAAA"),
    ],
    ids=["nothing", "wrong", "stranger", "empty", "no token", "expired", "audience", "unknown key", "signature"],
)
def test_others_get_nowhere(world: World, headers: Mapping[str, str]) -> None:
    with world.client(headers) as client:
        refused = client.get("/subjects")
    assert refused.status_code == 401
    assert refused.json()["error_code"] == 401
    challenges = refused.headers.get_list("www-authenticate")
    assert challenges[0] == 'Basic realm="Caudal", charset="UTF-8"'
    assert challenges[1].startswith('Bearer realm="Caudal"')


def test_every_path_needs_a_login(world: World) -> None:
    for path in ("/", "/health", "/metrics", "/docs", "/openapi.json", "/subjects", "/nowhere", "//", "/%2e%2e/health"):
        assert world.status(path=path) == 401, path


def test_a_response_from_the_cache_needs_a_login_too(world: World) -> None:
    with world.client(by_password()) as client:
        registered = client.post("/subjects/cached/versions", json={"schema": AVRO}).json()["id"]
        for _ in range(2):
            assert client.get(f"/schemas/ids/{registered}").status_code == 200
    assert world.status(path=f"/schemas/ids/{registered}") == 401
    assert world.status(by_password(password="wrong"), f"/schemas/ids/{registered}") == 401


def test_certificates_get_in_until_they_expire_and_when_they_are_renewed(world: World) -> None:
    authority = world.registry.authority
    with world.client(certificate=authority.issue("carol")) as client:
        assert client.get("/subjects").status_code == 200
    expired = authority.issue("dora", has_expired=True)
    with world.client(certificate=expired) as client, pytest.raises(httpx2.HTTPError):
        client.get("/subjects")
    with world.client(certificate=authority.issue("dora")) as client:
        assert client.get("/subjects").status_code == 200
    with world.client(certificate=authority.issue("CN with capitals")) as client:
        refused = client.get("/subjects")  # no rule makes a user of it
    assert refused.status_code == 401
    with world.client() as client:
        assert client.get("/subjects").status_code == 401


# -- what changes ------------------------------------------------------------------------------------------------------


def test_a_deleted_user_is_refused_when_the_cache_forgets_it(world: World) -> None:
    world.users.add("leaving", "secret")
    assert eventually(lambda: world.status(by_password("leaving", "secret")), lambda status: status == 200)
    world.users.remove("leaving")
    eventually(lambda: world.status(by_password("leaving", "secret")), lambda status: status == 401)


def test_of_a_changed_password_only_the_new_one_stays_right(world: World) -> None:
    world.users.add("changing", "old")
    eventually(lambda: world.status(by_password("changing", "old")), lambda status: status == 200)
    world.users.add("changing", "new")
    eventually(lambda: world.status(by_password("changing", "new")), lambda status: status == 200)
    eventually(lambda: world.status(by_password("changing", "old")), lambda status: status == 401)


def test_keys_are_exchanged_under_load_without_an_error_for_new_tokens(world: World) -> None:
    new = signing_key("second", "ES256")
    old_token, statuses, stop = bearer_token(KEY), list[int](), threading.Event()

    def load(make: Callable[[], str]) -> None:
        with world.client() as client:
            while not stop.is_set():
                statuses.append(client.get("/subjects", headers=by_token(make())).status_code)

    def start(make: Callable[[], str]) -> list[threading.Thread]:
        threads = [threading.Thread(target=load, args=(make,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        return threads

    threads = start(lambda: old_token)
    try:
        eventually(lambda: len(statuses), lambda count: count > 20)
        world.provider.show(KEY, new)
        threads += start(lambda: bearer_token(new))
        before = len(statuses)
        eventually(lambda: len(statuses), lambda count: count > before + 100)
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert set(statuses) == {200}
    world.provider.show(new)
    look_for_keys(world, "third")
    assert world.status(by_token(old_token)) == 401
    assert world.status(by_token(bearer_token(new))) == 200
    world.provider.show(KEY, new)
    look_for_keys(world, "fourth")
    assert world.status(by_token(old_token)) == 200


def look_for_keys(world: World, unknown: str) -> None:
    """A token with an unknown key makes the registry look for it once."""
    assert world.status(by_token(bearer_token(signing_key(unknown, "ES256")))) == 401


def test_the_certificate_of_the_registry_is_renewed_while_connections_stay(world: World) -> None:
    def serial() -> int:
        pem = ssl.get_server_certificate(("127.0.0.1", world.registry.port), timeout=30)
        from cryptography import x509

        return x509.load_pem_x509_certificate(pem.encode()).serial_number

    before = serial()
    with world.client(by_password()) as client:
        assert client.get("/subjects").status_code == 200
        world.registry.authority.issue("registry", file=world.registry.certificate)
        eventually(serial, lambda now: now != before, pause_s=0.2)
        assert client.get("/subjects").status_code == 200
    assert world.status(by_password()) == 200


def test_without_the_cluster_nobody_new_gets_in_and_is_told_to_come_back(world: World, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed = f"127.0.0.1:{listening.getsockname()[1]}"
    audit = tmp_path / "audit.log"
    settings = {"authentication.skip.paths": "/health", "audit.log.file": str(audit)}
    with SecuredRegistry(tmp_path / "registry", closed, keys=world.provider.url, settings=settings) as registry:
        other = world._replace(registry=registry)
        with other.client(by_password()) as client:
            absent = client.get("/subjects")
            assert (absent.status_code, absent.headers["retry-after"]) == (503, "1")
            assert absent.json()["error_code"] == 503
        assert other.status(path="/health") == 200
        assert eventually(lambda: other.status(by_token(bearer_token(KEY))), lambda status: status == 200)
        assert other.status(by_token(bearer_token(KEY, lasts_s=-1))) == 401
        eventually(lambda: "the token has expired" in audit.read_text())


# -- hostile clients --------------------------------------------------------------------------------------------------


def test_no_header_gets_in_or_breaks_it(world: World) -> None:
    """Random mixtures of what headers are made of, over a socket: http.client would refuse to send most of them."""
    random_ = random.Random(20)
    right = by_password()["authorization"].encode()
    schemes = [b"Basic ", b"basic\t", b"Bearer ", b"Digest ", b"Negotiate "]
    tokens = [b"a.b.c", bearer_token(KEY).encode()[:-3], b"eyJhbGciOiJub25lIn0.e30."]
    noise = [b"=", b"==", b":", b" ", b",", b"\t", b"\x00", b"\xff\xfe", b"AAAA" * 500]
    parts = [*schemes, *tokens, *noise, right[6:], right[6:10], b"YTpi"]
    names = [b"Authorization: ", b"authorization:", b"AUTHORIZATION : ", b"Authorization\t:", b" Authorization: "]
    for _ in range(150):
        lines = [
            random_.choice(names) + b"".join(random_.choices(parts, k=random_.randint(0, 4)))
            for _ in range(random_.randint(0, 3))
        ]
        found = status_of_raw(world.registry.plain_port, lines)
        # Two right parts may come together by chance; then it is no attack.
        is_right = any(line.partition(b":")[2].strip().lower() == right.lower() for line in lines)
        assert found in (400, 401, None) or is_right, lines
    assert world.status(by_password()) == 200


@pytest.mark.parametrize(
    "lines",
    [
        [b"Authorization: " + by_password()["authorization"].encode()] * 2,
        [b"Authorization: " + by_password()["authorization"].encode(), b"authorization: Bearer x"],
        [b"Authorization: " + by_password()["authorization"].encode() + b"," + by_password()["authorization"].encode()],
        [b"X-Authorization: " + by_password()["authorization"].encode()],
        [b"Proxy-Authorization: " + by_password()["authorization"].encode()],
        [b"Authorization: Basic " + b"A" * 20_000],
        [b"Authorization: Bearer " + b"A" * 20_000],
        [b"Authorization: " + by_password()["authorization"].encode() + b"A" * 9000],
    ],
)
def test_only_one_header_of_bounded_length_is_a_login(world: World, lines: list[bytes]) -> None:
    assert status_of_raw(world.registry.plain_port, lines) == 401


def test_a_body_that_is_refused_is_not_waited_for(world: World) -> None:
    with socket.create_connection(("127.0.0.1", world.registry.plain_port), timeout=PATIENCE_S) as connection:
        head = (
            b"POST /subjects/s/versions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\nexpect: 100-continue\r\n\r\n"
        )
        connection.sendall(head)
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 401
        assert response.headers["connection"] == "close"


def status_of_raw(port: int, lines: list[bytes]) -> int | None:
    """The status for a request with these lines; None if the connection is closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(
            b"GET /subjects HTTP/1.1\r\nhost: x\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
        )
        response = http.client.HTTPResponse(connection)
        try:
            response.begin()
        except (http.client.HTTPException, ConnectionError):
            return None
        return response.status


def test_no_secret_is_in_the_logs(world: World) -> None:
    assert world.status(by_password()) == 200
    token = bearer_token(KEY)
    world.status(by_token(token))
    world.status(by_password(password="guess-of-mallory"))
    text = world.registry.log_text() + world.broker.log_text()
    assert "login refused" in text
    for secret in (PASSWORD, "guess-of-mallory", token, by_password()["authorization"][6:]):
        assert secret not in text


def test_logins_are_in_the_metrics(world: World) -> None:
    with world.client(by_password()) as client:
        text = client.get("/metrics").text
    assert 'caudal_http_logins_total{method="BASIC",outcome="ok"}' in text
    assert "caudal_http_password_checks_total" in text


def test_the_document_says_how_to_log_in(world: World) -> None:
    with world.client(by_password()) as client:
        document = client.get("/openapi.json").json()
    assert set(document["components"]["securitySchemes"]) == {"basic", "bearer", "certificate"}


# -- the other services -----------------------------------------------------------------------------------------------


def test_users_of_the_cluster_are_users_of_the_rest_proxy_and_of_connect(world: World, tmp_path: Path) -> None:
    login = {
        "authentication.method": "BASIC",
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "SCRAM-SHA-512",
        "client.sasl.username": "service",
        "client.sasl.password": "of the service",
    }
    world.users.add("service", "of the service")
    bootstrap = world.broker.external
    cors = {"access.control.allow.origin": "https://shop.example"}
    connect = {"task.processes": "0", "authorization.enable": "false", **STORAGE}
    with (
        ProxyProcess(
            tmp_path / "proxy", bootstrap=bootstrap, registry=world.registry.url, settings={**login, **cors}
        ) as proxy,
        ConnectProcess(
            tmp_path / "connect", bootstrap=bootstrap, group="logins", settings={**login, **connect}
        ) as worker,
    ):
        for url, path in ((proxy.address, "/topics"), (worker.address, "/connectors")):
            refused = httpx2.get(url + path, headers={"origin": "https://shop.example"}, timeout=30)
            assert refused.status_code == 401
            assert refused.json()["error_code"] == 401
            assert httpx2.get(url + path, headers=by_password(password="wrong"), timeout=30).status_code == 401
            assert httpx2.get(url + path, headers=by_password(), timeout=30).status_code == 200
            document = httpx2.get(f"{url}/openapi.json", headers=by_password(), timeout=30).json()
            assert set(document["components"]["securitySchemes"]) == {"basic"}
        # A page learns that it has to log in: the browser shows it the response, and asks before it sends a login.
        refused = httpx2.get(f"{proxy.address}/topics", headers={"origin": "https://shop.example"}, timeout=30)
        assert refused.headers["access-control-allow-origin"] == "https://shop.example"
        asking = {"origin": "https://shop.example", "access-control-request-method": "GET"}
        assert httpx2.options(f"{proxy.address}/topics", headers=asking, timeout=30).status_code == 200
