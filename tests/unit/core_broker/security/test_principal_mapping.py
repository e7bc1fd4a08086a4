"""ssl.principal.mapping.rules, as Kafka applies them."""

import pytest

from core_broker.security.principal_mapping import SUBJECT_LENGTH_MAX, NoRuleApplies, PrincipalMapping


@pytest.mark.parametrize(
    "rules,subject,name",
    [
        ("DEFAULT", "CN=a,OU=x,O=y", "CN=a,OU=x,O=y"),
        ("RULE:^CN=([^,]+),OU=Apps,.*$/$1/", "CN=billing,OU=Apps,O=Acme", "billing"),
        ("RULE:CN=([^,]+),OU=([^,]+),.*/$2-$1/L,DEFAULT", "CN=Kim,OU=Ops,O=Acme", "ops-kim"),
        ("RULE:CN=([^,]+),OU=([^,]+),.*/$2-$1/L,DEFAULT", "CN=Kim,O=Acme", "CN=Kim,O=Acme"),
        ("RULE:.*UID=([0-9]+).*/u$1/U", "UID=42,O=Acme", "U42"),
        ("RULE:(.*)/x$1/", "CN=a", "xCN=ax"),
        ("RULE:^CN=(.*?),O=Acme$/$1$2/", "CN=a,O=Acme", "a$2"),
        ("RULE:^CN=(.*?),O=Acme$/$12/", "CN=a,O=Acme", "a2"),
        ("RULE:^CN=.*$/$1/", "CN=a", "$1"),
        ("RULE:^CN=(.*)$/[$0]/", "CN=a", "[CN=a]"),
        (r"RULE:^CN=(.*)$/\$\/\\$1/", "CN=a", "$/\\a"),
        (r"RULE:^CN=a\/(.*)$/$1/", "CN=a/b", "b"),
        ("RULE:^CN=(?<who>[^,]+).*$/${who}/", "CN=a,O=b", "a"),
        ("RULE:^CN=((?!bob)[^,]+).*$/$1/", "CN=eve,O=b", "eve"),
        (" RULE:^CN=a$/first/ , , RULE:^CN=(.*)$/second-$1/ ", "CN=b", "second-b"),
        ("RULE:^CN=(x)?(.*)$/$1$2/", "CN=b", "b"),
        (r"RULE:^CN=(.*\\,.*),O=Acme$/$1/", "CN=a\\,b,O=Acme", "a\\,b"),
    ],
)
def test_the_first_rule_that_applies_names_the_principal(rules: str, subject: str, name: str) -> None:
    assert PrincipalMapping(rules).name_of(subject) == name


@pytest.mark.parametrize(
    "rules,subject",
    [
        ("RULE:CN=([^,]+),O=Acme/$1/", "CN=a,OU=b,O=Acme"),
        ("RULE:CN=a/x/", "CN=ab"),
        ("RULE:CN=a$/x/", "CN=a\n"),
        ("RULE:CN=((?!bob)[^,]+)/$1/", "CN=bob"),
        ("", "CN=a"),
    ],
)
def test_a_subject_that_no_rule_matches_as_a_whole_has_no_principal(rules: str, subject: str) -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalMapping(rules).name_of(subject)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "RULE:CN=a",
        "RULE:CN=a/x",
        "RULE:CN=a/x/LU",
        "RULE:CN=a/x/l",
        "RULE:CN=(/x/",
        "RULE:CN=a/$x/",
        "RULE:CN=a/${none}/",
        "DEFAULT,RULE:x",
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="cannot read the"):
        PrincipalMapping(rules)


def test_a_pattern_that_could_take_forever_does_not() -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalMapping("RULE:(a+)+b/x/").name_of("a" * SUBJECT_LENGTH_MAX)


def test_a_very_long_subject_has_no_principal() -> None:
    PrincipalMapping("DEFAULT").name_of("x" * SUBJECT_LENGTH_MAX)
    with pytest.raises(NoRuleApplies, match="more than 4096 characters"):
        PrincipalMapping("DEFAULT").name_of("x" * (SUBJECT_LENGTH_MAX + 1))
