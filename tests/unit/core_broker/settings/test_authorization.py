"""Settings of authorization and of the audit log."""

import pytest

from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerSettings
from core_broker.settings.authorization import STANDARD_AUTHORIZER


def test_there_is_no_authorizer_unless_it_is_named() -> None:
    assert BrokerSettings.parse({}).authorizer_class_name is None
    assert BrokerSettings.parse({"authorizer.class.name": ""}).authorizer_class_name is None
    assert BrokerSettings.parse({"authorizer.class.name": STANDARD_AUTHORIZER}).authorizer_class_name is not None


@pytest.mark.parametrize("name", ["kafka.security.authorizer.AclAuthorizer", "StandardAuthorizer", "com.acme.Own"])
def test_another_authorizer_is_refused_with_the_one_there_is(name: str) -> None:
    with pytest.raises(SettingsError, match=STANDARD_AUTHORIZER):
        BrokerSettings.parse({"authorizer.class.name": name})


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", ()),
        (" ; ", ()),
        ("User:admin", ("User:admin",)),
        ("User:CN=broker,OU=x,O=Acme; User:b:c ;", ("User:CN=broker,OU=x,O=Acme", "User:b:c")),
    ],
)
def test_super_users_are_separated_by_semicolons(text: str, users: tuple[str, ...]) -> None:
    assert BrokerSettings.parse({"super.users": text}).super_users == users


@pytest.mark.parametrize("text", ["admin", "User:a;bob", ":admin"])
def test_super_user_without_a_type_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="super.users.*semicolons"):
        BrokerSettings.parse({"super.users": text})


def test_everyone_is_allowed_only_by_the_word_true() -> None:
    assert not BrokerSettings.parse({}).allow_everyone_if_no_acl_found
    assert BrokerSettings.parse({"allow.everyone.if.no.acl.found": "TRUE"}).allow_everyone_if_no_acl_found
    with pytest.raises(SettingsError):
        BrokerSettings.parse({"allow.everyone.if.no.acl.found": "yes"})


LISTENERS = {"listeners": "PLAINTEXT://:1,CONTROLLER://:2,OTHER://:3"}
NAMES = {
    "controller.listener.names": "CONTROLLER,OTHER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OTHER:PLAINTEXT",
}


@pytest.mark.parametrize(
    ("text", "early"),
    [
        (None, ("CONTROLLER", "OTHER")),
        ("", ()),
        ("other", ("OTHER",)),
        ("PLAINTEXT,CONTROLLER", ("CONTROLLER",)),
    ],
)
def test_controller_listeners_start_early_unless_others_are_named(text: str | None, early: tuple[str, ...]) -> None:
    given = {} if text is None else {"early.start.listeners": text}
    assert BrokerSettings.parse({**LISTENERS, **NAMES, **given}).early_controller_listeners == early


def test_early_listener_must_exist() -> None:
    with pytest.raises(SettingsError, match="MISSING must also be one of listeners"):
        BrokerSettings.parse({"early.start.listeners": "MISSING"})
