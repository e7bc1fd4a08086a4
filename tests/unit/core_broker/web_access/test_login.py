"""Who sends a request: headers, certificates, and everything that is neither."""

import base64
import datetime as dt
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.principals import Principal
from core_broker.service.clock import ManualClock
from core_broker.web_access.callers import BearerCredentials, PasswordCredentials
from core_broker.web_access.certificates import Certificates
from core_broker.web_access.errors import AccessError, Refused, TooManyFailures, Unavailable
from core_broker.web_access.login import Login, login_of
from core_broker.web_access.settings import RuleSettings
from core_broker.web_access.tokens import tokens_of
from tests.support.certificates import Authority
from tests.support.sasl_world import key_set, signed_token, signing_key
from tests.support.web_login import KnownUsers, basic, scope_of

NOW_MS = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)
KEY = signing_key("key")
CERTIFICATE = Authority().issue("CN=carol").certificate.public_bytes(Encoding.DER)
ALICE = basic("alice", "secret")


def login(
    tmp_path: Path, methods: str = "BASIC,BEARER,CERTIFICATE", users: KnownUsers | None = None, **more: str
) -> Login:
    keys = tmp_path / "keys.json"
    keys.write_bytes(key_set(KEY))
    settings = RuleSettings.parse(
        {
            "authentication.method": methods,
            "authentication.kafka.bootstrap.servers": "127.0.0.1:1",
            "authentication.kafka.security.protocol": "SASL_PLAINTEXT",
            "authentication.kafka.sasl.mechanism": "PLAIN",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "listeners": "https://127.0.0.1:0",
            "ssl.certificate.location": "/certificate.pem",
            "ssl.ca.location": "/ca.pem",
            "authentication.failures.per.minute": "3",
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    clock = ManualClock(NOW_MS)
    return Login(
        settings,
        clock,
        passwords=[users or KnownUsers()],
        tokens=tokens_of(settings, clock),
        certificates=Certificates(settings.ssl_principal_mapping_rules, clock),
    )


def token(subject: str = "bob") -> str:
    return signed_token({"sub": subject, "iat": NOW_MS // 1000, "exp": NOW_MS // 1000 + 60}, KEY)


async def test_a_password_names_the_caller(tmp_path: Path) -> None:
    caller = await login(tmp_path).identify(scope_of(ALICE))
    assert caller.principal == Principal("User", "alice")
    assert caller.host == "10.0.0.1"
    assert caller.credentials == PasswordCredentials("alice", "secret")


async def test_a_token_names_the_caller(tmp_path: Path) -> None:
    shown = token()
    async with login(tmp_path).running() as running:
        caller = await running.identify(scope_of(f"Bearer {shown}"))
    assert caller.principal == Principal("User", "bob")
    assert caller.credentials == BearerCredentials(shown, NOW_MS + 60_000)


async def test_a_certificate_names_the_caller(tmp_path: Path) -> None:
    caller = await login(tmp_path).identify(scope_of(certificate=CERTIFICATE))
    assert caller.principal == Principal("User", "CN=carol")
    assert caller.credentials is None


async def test_a_header_counts_more_than_a_certificate(tmp_path: Path) -> None:
    both = login(tmp_path)
    assert (await both.identify(scope_of(ALICE, certificate=CERTIFICATE))).principal.name == "alice"
    with pytest.raises(Refused):
        await both.identify(scope_of(basic("alice", "wrong"), certificate=CERTIFICATE))


async def test_a_certificate_is_nobody_where_certificates_are_no_login(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="needs a login"):
        await login(tmp_path, "BASIC,BEARER").identify(scope_of(certificate=CERTIFICATE))


async def test_schemes_are_compared_without_case(tmp_path: Path) -> None:
    assert (await login(tmp_path).identify(scope_of(ALICE.replace("Basic", "bASIC  ")))).principal.name == "alice"


async def test_a_password_may_have_colons_and_any_characters(tmp_path: Path) -> None:
    users = KnownUsers({"ünder": "a:b:ß 語"})
    assert (await login(tmp_path, users=users).identify(scope_of(basic("ünder", "a:b:ß 語")))).principal.name == "ünder"


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("",),
        ("Basic",),
        ("Basic ",),
        ("Basic !!!",),
        (ALICE[:-2],),
        (ALICE + "=",),
        (ALICE + " x",),
        ("Digest username=alice",),
        ("Bearer",),
        ("Bearer " + ALICE.split()[1],),
        (ALICE, ALICE),
        (ALICE, "Bearer x"),
        (basic("alice", ""),),
        (basic("", "secret"),),
        (basic("alice\0", "secret"),),
        (basic("", "\0alice\0secret"),),
        (basic("alice", "secret\n"),),
        (basic("alice", "s" * 9000),),
        (b"Basic " + base64.b64encode(b"alice:\xff\xfe"),),
        (b"\xff\xfe",),
        ("Basic alice:secret",),
    ],
)
async def test_everything_else_is_refused_without_asking(tmp_path: Path, headers: tuple[str | bytes, ...]) -> None:
    users = KnownUsers({"alice": "secret", "": "secret", "alice\0": "secret"})
    async with login(tmp_path, users=users).running() as running:
        with pytest.raises(Refused):
            await running.identify(scope_of(*headers))
    assert users.asked == 0


@given(st.lists(st.binary(max_size=200).map(lambda data: b"Basic " + data) | st.binary(max_size=200), max_size=3))
async def test_no_header_can_break_it(tmp_path_factory: pytest.TempPathFactory, headers: list[bytes]) -> None:
    checked = login(tmp_path_factory.getbasetemp(), users=KnownUsers({}))
    with pytest.raises(AccessError):
        await checked.identify(scope_of(*headers))


async def test_users_and_wrong_passwords_look_the_same(tmp_path: Path) -> None:
    checked = login(tmp_path, users=KnownUsers({"alice": "secret", "other": ""}))
    messages = []
    for user in ("alice", "nobody"):
        with pytest.raises(Refused) as refused:
            await checked.identify(scope_of(basic(user, "guess")))
        messages.append(refused.value.message)
    assert messages[0] == messages[1]


async def test_what_became_of_logins_is_counted(tmp_path: Path) -> None:
    users = KnownUsers()
    checked = login(tmp_path, users=users)
    await checked.identify(scope_of(ALICE))
    await checked.identify(scope_of(ALICE))
    users.is_available = False
    expected = [
        (basic("x", "1"), Unavailable),
        (basic("alice", "1"), Unavailable),
        ("Digest x", Refused),
    ]
    for header, error in expected:
        with pytest.raises(error):
            await checked.identify(scope_of(header))
    users.is_available = True
    for number in range(3):
        with pytest.raises(Refused):
            await checked.identify(scope_of(basic("alice", str(number))))
    with pytest.raises(TooManyFailures):
        await checked.identify(scope_of(basic("alice", "another")))
    logins, checks = checked.families()
    assert dict(logins.samples) == {
        ("BASIC", "ok"): 2,
        ("BASIC", "503"): 2,
        ("BASIC", "401"): 3,
        ("BASIC", "429"): 1,
        ("NONE", "401"): 1,
    }
    assert checks.samples == [((), 6)]


async def test_a_refused_login_is_in_the_audit_log_without_the_password(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    async with login(tmp_path, audit_log_file=str(file)).running() as running:
        for headers in ((basic("al\nice", "unmistakable"),), (basic("alice", "unmistakable"),), ("Bearer a.b.c",), ()):
            with pytest.raises(Refused):
                await running.identify(scope_of(*headers))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert "unmistakable" not in file.read_text()
    assert [(line["event"], line["principal"], line["api"]) for line in lines] == [
        ("login refused", "User:al\\nice", "BASIC"),
        ("login refused", "User:alice", "BASIC"),
        ("login refused", "User:", "BEARER"),
    ]
    assert lines[1]["host"] == "10.0.0.1"
    assert lines[1]["reason"] == "the user name or the password is wrong"


@pytest.mark.parametrize(
    "listener,is_warned", [("http://127.0.0.1:0", False), ("http://:0", True), ("http://10.0.0.1:0", True)]
)
async def test_an_unencrypted_listener_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, listener: str, is_warned: bool
) -> None:
    async with login(tmp_path, "BASIC", listeners=listener).running():
        assert ("readable" in caplog.text) is is_warned


async def test_an_audit_log_that_cannot_be_written_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        async with login(tmp_path, audit_log_file=str(tmp_path / "missing" / "audit.log")).running():
            pass


def test_a_wrong_rule_for_certificates_is_an_error_at_the_start() -> None:
    settings = RuleSettings(authentication_method=("CERTIFICATE",), ssl_principal_mapping_rules="RULE:nonsense")
    with pytest.raises(ValueError, match="rule"):
        login_of(settings)
