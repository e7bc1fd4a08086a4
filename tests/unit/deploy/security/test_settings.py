from pathlib import Path

import pytest

from deploy.launcher.plan import Plan, make_plan
from deploy.launcher.request import Request
from deploy.security.folder import SecurityFolder
from deploy.security.settings import USERS
from deploy.security.users import acls_of
from deploy.services import settings_type
from deploy.stack import kind_of


def plan_of(data: Path, *, brokers: int = 1, host: str = "localhost", settings: tuple[str, ...] = ()) -> Plan:
    plan = make_plan(Request(data=str(data), secure=True, brokers=brokers, host=host, settings=settings))
    assert plan.security is not None
    names = [service.name for service in plan.services]
    plan.security.prepare(certificates=names, users=USERS, hosts=["localhost"])
    return plan


@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("host", ["localhost", "0.0.0.0", "::1"])
def test_every_service_takes_its_settings(tmp_path: Path, brokers: int, host: str) -> None:
    plan = plan_of(tmp_path, brokers=brokers, host=host)
    for service in plan.services:
        settings_type(kind_of(service.name).name).parse(
            {**plan.settings_of(service.name), **plan.secrets_of(service.name)}
        )


def test_no_secret_is_among_the_settings_of_a_command_line(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    passwords = [file.read_text().strip() for file in (SecurityFolder(tmp_path).path / "passwords").iterdir()]
    shown = str([plan.settings_of(service.name) for service in plan.services])
    assert [password for password in passwords if password in shown] == []


def test_everything_listens_with_tls_and_asks_for_a_login(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, brokers=3)
    for service in plan.services:
        settings = plan.settings_of(service.name)
        if kind_of(service.name).name == "broker":
            protocols = dict(pair.split(":") for pair in settings["listener.security.protocol.map"].split(","))
            names = [listener.partition(":")[0] for listener in settings["listeners"].split(",")]
            assert names == ["CLIENTS", "CERTIFICATES", "CONTROLLER"]
            assert [protocols[name] for name in names] == ["SASL_SSL", "SSL", "SSL"]
            assert settings["metrics.listener"].startswith("https:")
            assert "User:broker-3" in settings["super.users"].split(";")
        else:
            assert settings["listeners"].startswith("https:")
            assert settings["authentication.method"] == "BASIC,CERTIFICATE"


def test_tokens_are_a_way_in_where_their_keys_are_configured(tmp_path: Path) -> None:
    keys = "registry:sasl.oauthbearer.jwks.endpoint.url=https://id.example/keys"
    plan = plan_of(tmp_path, settings=(keys,))
    assert plan.settings_of("registry")["authentication.method"] == "BASIC,CERTIFICATE,BEARER"
    assert plan.settings_of("connect")["authentication.method"] == "BASIC,CERTIFICATE"


def test_services_may_not_change_what_everyone_may_do() -> None:
    for user in ("connect", "rest-proxy", "streams"):
        rules = list(acls_of(user))
        assert {rule.principal for rule in rules} <= {f"User:{user}"}
        assert not [rule for rule in rules if rule.resource_type == "CLUSTER"]
    assert list(acls_of("admin")) == []
