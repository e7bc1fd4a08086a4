"""sasl.jaas.config: what Kafka's users write is read, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.settings.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def test_users_and_the_login_of_the_broker() -> None:
    login = parse_jaas(f'{PLAIN} required username="admin" password="secret" user_admin="secret" user_alice="x";')
    assert (login.mechanism, login.username, login.password) == ("PLAIN", "admin", "secret")
    assert login.users == {"admin": "secret", "alice": "x"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"a b"', "a b"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ("'a\"b'", 'a"b'),
        (r'"tab\tline\n"', "tab\tline\n"),
        (r'"\101\7x"', "A\x07x"),
        ("plain-word_1", "plain-word_1"),
        ("12345", "12345"),
        ('"=;//"', "=;//"),
        ('"grün"', "grün"),
    ],
)
def test_values_are_quoted_and_escaped_as_in_java(written: str, meant: str) -> None:
    assert parse_jaas(f"{SCRAM} required username=u password={written};").password == meant


def test_comments_and_lines() -> None:
    login = parse_jaas(f'// users\n{PLAIN} /* of\nthe */ REQUIRED\n  user_a = "b" // last\n ;\n')
    assert login.users == {"a": "b"}


def test_a_login_is_for_its_mechanism() -> None:
    scram = parse_jaas(f"{SCRAM} required;")
    assert scram.accepts("SCRAM-SHA-256")
    assert scram.accepts("SCRAM-SHA-512")
    assert not scram.accepts("PLAIN")
    assert parse_jaas(f"{OAUTH} required extension_tenant=a;").extensions == {"tenant": "a"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must be a login module"),
        (f"{PLAIN} required user_a=b", "must be a login module"),
        (f"{PLAIN};", "must be a login module"),
        ("com.sun.security.auth.module.JndiLoginModule required user.provider.url=ldap;", "no other class"),
        ("com.sun.security.auth.module.LdapLoginModule required;", "no other class"),
        ("PlainLoginModule required user_a=b;", "no other class"),
        (f"{PLAIN} always user_a=b;", "followed by one of"),
        (f"{PLAIN} required user_a;", "name=value"),
        (f"{PLAIN} required user_a=;", "name=value"),
        (f"{PLAIN} required user_a b c;", "name=value"),
        (f"{PLAIN} required user_a=b; {SCRAM} required;", "one login module only"),
        (f"{PLAIN} required user_a=b user_a=c;", "each option once"),
        (f'{PLAIN} required user_a="";', "must not be empty"),
        (f"{PLAIN} required user_=b;", "no option user_"),
        (f"{PLAIN} required debug=true;", "no option debug"),
        (f"{SCRAM} required user_a=b;", "no option user_a"),
        (f"{OAUTH} required unsecuredLoginStringClaim_sub=admin;", "no option unsecured"),
        (f"{OAUTH} required extension_auth=x;", "no option extension_auth"),
        (f'{PLAIN} required user_a="b;', "cannot be read"),
        (f'{PLAIN} required user_a="b\n";', "cannot be read"),
    ],
)
def test_anything_else_is_refused(text: str, reason: str) -> None:
    """CVE-2023-25194: no class of a configuration is ever loaded."""
    with pytest.raises(ValueError, match=reason):
        parse_jaas(text)


@pytest.mark.parametrize(
    "text", [f'{PLAIN} required user_a="hunter2" user_a="hunter2";', f"{PLAIN} required x=hunter2;"]
)
def test_a_refusal_does_not_show_passwords(text: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_jaas(text)
    assert "hunter2" not in str(refusal.value)


def test_a_login_is_shown_without_its_options() -> None:
    assert repr(parse_jaas(f"{PLAIN} required user_a=b;")) == "JaasLogin(PLAIN)"


@given(st.text(alphabet="ab\"\\;= \n/*'", max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    with pytest.raises(ValueError):
        parse_jaas(f"{PLAIN} required {text}")
        parse_jaas("")
