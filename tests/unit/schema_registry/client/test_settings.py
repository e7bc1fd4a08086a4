import ssl
from pathlib import Path

import pytest

from schema_registry.client.settings import InvalidSettings, RegistryClientSettings

parse = RegistryClientSettings.parse


@pytest.mark.parametrize("prefix", ["", "schema.registry."])
def test_keys_are_read_with_and_without_their_prefix(prefix: str) -> None:
    settings = parse({f"{prefix}url": "http://a:1, https://b/ctx/", f"{prefix}max.retries": "7"})
    assert settings.urls == ("http://a:1", "https://b/ctx")
    assert settings.max_retries == 7


def test_basic_credentials_of_the_url_are_used_and_removed_from_it() -> None:
    settings = parse({"url": "http://ann:p%40ss@a:1,http://b:2"})
    assert settings.urls == ("http://a:1", "http://b:2")
    assert settings.user_info == "ann:p@ss"


def test_explicit_credentials_win_over_those_of_the_url() -> None:
    assert parse({"url": "http://ann:x@a:1", "basic.auth.user.info": "bob:y"}).user_info == "bob:y"


def test_confluents_cloud_headers_are_sent_along() -> None:
    settings = parse({"bearer.auth.token": "t", "bearer.auth.logical.cluster": "lsrc-1"})
    assert settings.bearer_token == "t"
    assert settings.headers == {"target-sr-cluster": "lsrc-1"}


def test_secrets_are_not_shown() -> None:
    shown = repr(
        parse({"url": "http://ann:hush@a:1", "bearer.auth.token": "hush", "ssl.key.password": "hush", "proxy": "hush"})
    )
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"url": "ftp://a"}, "http:// or https://"),
        ({"url": "http://ann:hush@"}, "'http://'"),
        ({"url": " , "}, "url must have at least one URL"),
        ({"url": 5}, "url must be text, not 5"),
        ({"schema.registry.urls": "http://a"}, "unknown setting schema.registry.urls"),
        ({"basic.auth.user.info": "ann"}, "must be user:password"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "must be one of URL, USER_INFO"),
        ({"max.retries": "-1"}, "at least 0, not '-1'"),
        ({"max.retries": True}, "at least 0, not True"),
        ({"request.timeout.ms": "soon"}, "at least 1, not 'soon'"),
        ({"cache.latest.ttl.sec": "inf"}, "at least 0, not 'inf'"),
        ({"cache.capacity": 0}, "at least 1, not 0"),
    ],
)
def test_what_cannot_be_is_refused_with_key_and_value(properties: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        parse(properties)
    assert complaint in str(refusal.value)
    assert "hush" not in str(refusal.value)


def test_missing_certificates_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="certificates"):
        parse({"ssl.ca.location": str(tmp_path / "absent.pem")}).tls()


def test_tls_checks_host_names_and_certificates() -> None:
    context = parse({}).tls()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
