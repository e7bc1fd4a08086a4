"""What is secret in a configuration, how it is shown, and what a mask stands for."""

import pytest

from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.secrets import MASK, ConfigSecrets
from connect.runtime.errors import BadRequest
from connect.settings import ConnectSettings

SECRETS = ConfigSecrets(Plugins.load(), ConfigProviders(ConnectSettings()))


@pytest.mark.parametrize(
    "key",
    [
        "connection.password",
        "producer.override.sasl.jaas.config",
        "consumer.override.sasl.password",
        "admin.override.ssl.key.pem",
        "aws.secret.access.key",
        "value.converter.basic.auth.user.info",
        "sasl.oauthbearer.client.secret",
        "some.api-key",
        "git_token",
        "my.Password",
    ],
)
def test_keys_that_name_a_secret(key: str) -> None:
    assert SECRETS.shown({key: "value-1"}) == {key: MASK}


@pytest.mark.parametrize(
    "key",
    [
        "topics",
        "pk.fields",
        "aws.access.key.id",
        "key.converter",
        "oauth2.access.token.url",
        "http.authorization.type",
        "ssl.keystore.location",
        "transforms.password.type",
        "sasl.mechanism",
    ],
)
def test_keys_that_do_not(key: str) -> None:
    assert SECRETS.shown({key: "value-1"}) == {key: "value-1"}


def test_options_that_are_declared_as_passwords_are_secret() -> None:
    config = {
        "connector.class": "HttpSink",
        "http.headers.authorization": "abc",
        "http.auth.password": "abc",
        "value.converter": "AvroConverter",
        "value.converter.schema.registry.bearer.auth.token": "abc",
    }
    shown = SECRETS.shown(config)
    assert [key for key, text in shown.items() if text == MASK] == list(config)[1:3] + list(config)[4:]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://ann:p4ss@host:6379/0", f"redis://ann:{MASK}@host:6379/0"),
        ("redis://:p4ss@host", f"redis://:{MASK}@host"),
        ("http://a:1,http://u:p4/ss@b:2", f"http://a:{MASK}@b:2"),
        ("jdbc:oracle:thin:scott/tiger@host:1521:orcl", f"jdbc:oracle:thin:{MASK}@host:1521:orcl"),
        ("http://host:8080/users/@me", "http://host:8080/users/@me"),
        ("jdbc:mysql://h/db?user=ann&password=p4ss&x=1", f"jdbc:mysql://h/db?user=ann&password={MASK}&x=1"),
        ("https://h/x?api_key=p4ss", f"https://h/x?api_key={MASK}"),
        ("Bearer abcdef123", MASK),
        ("-----BEGIN RSA PRIVATE KEY-----", MASK),
        ("plain text", "plain text"),
        ("${file:/run/x.properties:password}", "${file:/run/x.properties:password}"),
    ],
)
def test_values_that_look_like_credentials(text: str, shown: str) -> None:
    assert SECRETS.shown({"anything": text}) == {"anything": shown}


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("${file:/run/x.properties:password}", True),
        ("${env:A}${env:B}", True),
        ("prefix-${env:A}", False),
        ("${env:A}-suffix", False),
        ("${unknown:A}", False),
        ("", True),
    ],
)
def test_placeholders_are_shown(text: str, *, is_shown: bool) -> None:
    assert SECRETS.shown({"db.password": text})["db.password"] == (text if is_shown else MASK)


def test_headers_with_tokens_are_secret() -> None:
    given = {"http.headers.additional": "Accept: text/csv, X-Api-Key: abc", "headers": "Accept: text/csv"}
    assert SECRETS.shown(given) == {"http.headers.additional": MASK, "headers": "Accept: text/csv"}


STORED = {"db.password": "p4ss", "db.url": "redis://u:p4ss@host", "name": "x"}


def test_what_is_shown_stands_for_what_is_stored() -> None:
    assert SECRETS.restored(SECRETS.shown(STORED), STORED) == STORED
    assert SECRETS.restored({"db.password": None, "name": "y"}, STORED) == {"db.password": None, "name": "y"}


@pytest.mark.parametrize(
    "change",
    [
        {"other.password": MASK},
        {"db.url": f"redis://u:{MASK}@other"},
        {"db.password": f" {MASK}"},
        {"name": MASK},
    ],
)
def test_a_mask_for_nothing_is_refused(change: dict[str, str | None]) -> None:
    with pytest.raises(BadRequest, match="it stands for a value that is not shown"):
        SECRETS.restored(change, STORED)


def test_every_secret_of_a_text_is_found() -> None:
    config = {
        "db.password": "p4ss-1",
        "db.url": "redis://u:p%2Fss-2@host?token=t0ken-3",
        "a.sasl.jaas.config": 'X required username="anna" password="p4ss-4";',
        "schema.registry.basic.auth.user.info": "bob:p4ss-5",
        "http.headers.additional": "Authorization: Bearer t0ken-6789",
        "env.password": "${env:HOME}",
        "topics": "anna",
    }
    found = SECRETS.concealing(config)
    assert {"p4ss-1", "p%2Fss-2", "p/ss-2", "t0ken-3", "p4ss-4", "p4ss-5", "t0ken-6789"} <= set(found)
    assert "anna" not in found
    assert "${env:HOME}" in found.values()
