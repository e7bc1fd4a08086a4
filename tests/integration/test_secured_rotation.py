"""Passwords, certificates and keys of tokens are changed while clients of a secured platform work; then secrets."""

import base64
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from deploy.certificates.authority import Authority
from tests.support.patience import eventually
from tests.support.sasl_world import signing_key
from tests.support.secure_platform import kafka_client, shown_certificate
from tests.support.secured_services import (
    FIRST_KEY,
    SERVICES,
    LoginWith,
    SecuredServices,
    by_password,
    by_token,
    secured_services,
)
from tests.support.steady_load import TOPIC, OpenProducer, SteadyLoad, new_producer

pytestmark = pytest.mark.timeout(900)

STEADY: Final = "password-of-steady"
OFTEN: Final = pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServices]:
    with secured_services(tmp_path_factory.mktemp("services")) as running:
        running.create_topic(TOPIC)
        running.add_user("steady", STEADY)
        for user in ("steady", "anna", "tom"):
            running.allow(user, TOPIC)
        yield running


def with_password(services: SecuredServices, user: str, password: str) -> dict[str, Any]:
    """A Kafka client that logs in with a password."""
    return {**kafka_client(services.platform), "sasl.username": user, "sasl.password": password}


def with_token(services: SecuredServices, token: str) -> dict[str, Any]:
    """A Kafka client that logs in with a token."""
    without = {key: value for key, value in kafka_client(services.platform).items() if not key.startswith("sasl.")}
    expires = time.time() + 600  # noqa: TID251 - the clock of the identity provider
    return {**without, "sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (token, expires)}


@OFTEN
def test_a_password_is_changed_under_load(services: SecuredServices, tmp_path: Path, rounds: int) -> None:
    old, new = "first-password-of-anna", "second-password-of-anna"
    services.add_user("anna", old)
    services.secrets.add(new)
    file = tmp_path / "password"
    file.write_text(new)
    with SteadyLoad() as leaving, SteadyLoad() as load:
        load.start_http(services, "steady", by_password("steady", STEADY))
        load.start({"broker, steady": new_producer(lambda: with_password(services, "steady", STEADY))})
        load.start({"broker, connected before": OpenProducer(with_password(services, "anna", old))})
        leaving.start_http(services, "anna before", by_password("anna", old))
        leaving.start({"broker, anna before": new_producer(lambda: with_password(services, "anna", old))})
        for each in (leaving, load):
            each.wait_for_rounds(rounds)
        assert leaving.failures == []
        services.run("user", "passwd", "anna", "--password-file", str(file))
        load.start_http(services, "anna", by_password("anna", new))
        load.start({"broker, anna": new_producer(lambda: with_password(services, "anna", new))})
        load.wait_for_rounds(rounds)
        leaving.wait_until_all_fail()
        load.wait_for_rounds(rounds)
    assert load.failures == [], load.failures


# A producer that has a token takes a second to be made.
@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_the_key_of_tokens_is_changed_under_load(services: SecuredServices, rounds: int) -> None:
    second = signing_key("second", "ES256")
    before, after = services.token("tom"), services.token("tom", second)
    with SteadyLoad() as leaving, SteadyLoad() as load:
        leaving.start_http(services, "first key", by_token(before))
        leaving.start({"broker, first key": new_producer(lambda: with_token(services, before))})
        leaving.wait_for_rounds(rounds)
        services.provider.show(FIRST_KEY, second)
        load.start_http(services, "second key", by_token(after))
        load.start({"broker, second key": new_producer(lambda: with_token(services, after))})
        load.wait_for_rounds(rounds)
        leaving.wait_for_rounds(rounds)
        assert leaving.failures == []
        services.provider.show(second)
        leaving.wait_until_all_fail()
        load.wait_for_rounds(rounds)
    services.provider.show(FIRST_KEY, second)
    assert load.failures == [], load.failures


def ports(services: SecuredServices) -> dict[int, str]:
    """Every port with TLS, and the name of its certificate."""
    state = services.platform.state.services
    metrics = int(services.metrics_url.split(":")[2].split("/")[0])
    by_certificate = int(kafka_client(services.platform, by_certificate=True)["bootstrap.servers"].split(":")[1])
    return {metrics: "broker", by_certificate: "broker", **{service.port: name for name, service in state.items()}}


def certificate_client(services: SecuredServices, user: str) -> Mapping[str, Any]:
    """A Kafka client that shows its certificate, as it is now."""
    own = str(services.security.certificate(user))
    files = {"ssl.certificate.location": own, "ssl.key.location": own}
    return {**kafka_client(services.platform, by_certificate=True), **files}


@OFTEN
def test_all_certificates_are_renewed_under_load(services: SecuredServices, rounds: int) -> None:
    services.certificate("steady")
    authority = services.security.authority
    before = {port: shown_certificate(services.platform, port) for port in ports(services)}
    with SteadyLoad() as load:
        load.start_http(services, "password", by_password("steady", STEADY))
        shown = LoginWith(certificate=services.security.certificate("steady"))
        load.start_http(services, "certificate", shown, produces=False)
        load.start({"broker, password": new_producer(lambda: with_password(services, "steady", STEADY))})
        load.start({"broker, certificate": new_producer(lambda: certificate_client(services, "steady"))})
        load.start({"broker, connected before": OpenProducer(certificate_client(services, "steady"))})
        load.wait_for_rounds(rounds)
        services.run("certificate", "renew", "--all", "--folder", str(services.security.path))
        new = {port: authority.find(name).serial for port, name in ports(services).items()}
        assert not set(before.values()) & set(new.values())
        eventually(lambda: {port: shown_certificate(services.platform, port) for port in new}, lambda now: now == new)
        load.wait_for_rounds(rounds)
    assert load.failures == [], load.failures


def replace(file: Path, content: bytes) -> None:
    """Another content, for whoever reads it from now on."""
    new = file.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_bytes(content)
    new.replace(file)


def lets_in(services: SecuredServices, certificate: Path) -> list[str]:
    """Who lets in a client that shows this certificate."""
    places = {name: f"{services.platform.url(name)}/health" for name in SERVICES} | {"metrics": services.metrics_url}
    found = []
    with services.client("registry", LoginWith(certificate=certificate)) as client:
        for name, url in places.items():
            with suppress(httpx2.HTTPError):
                found += [name] if client.get(url).status_code == 200 else []
    own = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(certificate)}
    with suppress(AssertionError):
        new_producer(lambda: {**kafka_client(services.platform, by_certificate=True), **own})()
        found.append("broker")
    return found


def test_the_authority_is_replaced_under_load(services: SecuredServices, tmp_path: Path) -> None:
    everyone = [*SERVICES, "metrics", "broker"]
    old, new = services.security.authority, Authority(tmp_path / "new").create(common_name="Successor")
    before, after = services.certificate("steady"), new.issue("steady").file
    assert (lets_in(services, before), lets_in(services, after)) == (everyone, [])
    with SteadyLoad() as load:
        load.start_http(services, "password", by_password("steady", STEADY))
        load.start({"broker, password": new_producer(lambda: with_password(services, "steady", STEADY))})
        load.wait_for_rounds()
        replace(old.certificate_file, old.certificate_file.read_bytes() + new.certificate_file.read_bytes())
        eventually(lambda: lets_in(services, after), lambda found: found == everyone)
        assert lets_in(services, before) == everyone
        load.wait_for_rounds()
    assert load.failures == [], load.failures
    with SteadyLoad() as load:  # by clients that trust both
        load.start_http(services, "password", by_password("steady", STEADY))
        load.start_http(services, "certificate", LoginWith(certificate=after), produces=False)
        load.start({"broker, password": new_producer(lambda: with_password(services, "steady", STEADY))})
        load.wait_for_rounds()
        for issued in old.issued():
            replace(issued.file, new.issue(issued.name, hosts=issued.hosts, replaces=True).file.read_bytes())
        serials = {port: new.find(name).serial for port, name in ports(services).items()}
        eventually(
            lambda: {port: shown_certificate(services.platform, port) for port in serials}, lambda now: now == serials
        )
        load.wait_for_rounds()
    assert load.failures == [], load.failures


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_no_secret_of_all_that_is_anywhere(services: SecuredServices) -> None:
    with services.client("connect", services.admin()) as admin:
        config = {"connector.class": "FileStreamSink", "topics": TOPIC, "file": str(services.files / "steady.txt")}
        assert admin.post("/connectors", json={"name": "steady", "config": config}).status_code == 201
    for words in (("acl", "list"), ("profile", "show"), ("connector", "list")):
        services.run(*words, "-o", "json")
    services.run("status", "--data", str(services.platform.data))
    files = [*services.security.path.rglob("*.pem"), services.security.path / "ca.key"]
    keys = {line for file in files for line in file.read_text().splitlines()[1:3]}
    assert len(keys) > 10
    assert services.places_with(services.secrets | keys) == []


def test_the_search_finds_what_is_there(services: SecuredServices) -> None:
    planted = "a-planted-secret-of-zed"
    with services.client("registry", services.admin()) as admin:
        encoded = base64.urlsafe_b64encode(f"zed:{planted}".encode()).decode()
        assert admin.get(f"/subjects/{encoded}/versions").status_code == 404
    with services.client("connect", services.admin()) as admin:
        config = {"connector.class": "FileStreamSink", "topics": TOPIC, "file": str(services.files / planted)}
        assert admin.post("/connectors", json={"name": "zed", "config": config}).status_code == 201
    services.run("user", "list", "-o", "json")
    found = services.places_with({planted})
    assert any(place.startswith("answer") and "/subjects/" in place for place in found)  # in base64, with the name
    assert any("connect-configs-0" in place for place in found), found
    shown = {
        "cmdline of": services.provider.url,
        "environ of": os.environ["PATH"],
        "settings of": "log.retention.ms",
        "https://localhost": "caudal_http_logins_total",
        services.metrics_url: "kafka_server",
        "caudal user list": "SCRAM-SHA-512",
        str(services.platform.data / "logs"): "keys of OAUTHBEARER read",
        str(services.platform.output): "caudal status",
    }
    places = list(services.places())
    for kind, text in shown.items():
        assert any(text.encode() in content for place, content in places if place.startswith(kind)), kind
