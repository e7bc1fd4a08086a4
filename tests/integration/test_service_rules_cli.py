"""`caudal acl` for the registry and Connect: rules that they keep themselves, beside those of the cluster."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from core_broker.web_access.rules import ResourceType
from tests.support.admin import eventually
from tests.support.command import Caudal
from tests.support.rules_server import rules_server
from tests.support.secured import Certificates, SecuredBroker

_CLOSED: Final = "http://127.0.0.1:9"


@pytest.fixture
def registry_url() -> Iterator[str]:
    with rules_server((ResourceType.SUBJECT, ResourceType.REGISTRY), ResourceType.REGISTRY) as url:
        yield url


@pytest.fixture
def connect_url() -> Iterator[str]:
    with rules_server((ResourceType.CONNECTOR, ResourceType.CONNECT), ResourceType.CONNECT) as url:
        yield url


@pytest.fixture
def caudal(monkeypatch: pytest.MonkeyPatch, registry_url: str, connect_url: str) -> Caudal:
    """No cluster answers: rules of the services do not need one."""
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", "127.0.0.1:9")
    monkeypatch.setenv("CAUDAL_REGISTRY", registry_url)
    monkeypatch.setenv("CAUDAL_CONNECT", connect_url)
    return Caudal(monkeypatch)


def _resources(listed: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(rule["resource_type"], rule["resource_name"]) for rule in listed]


def test_a_rule_about_subjects_is_added_listed_and_removed(caudal: Caudal) -> None:
    said = caudal("acl", "allow", "User:ann", "read,write", "--subject", "orders-", "--prefixed").stderr
    assert "User:ann may write subjects orders-*" in said
    assert "as before" in caudal("acl", "allow", "User:ann", "read", "--subject", "orders-", "--prefixed").stderr
    assert _resources(caudal.json("acl", "list", "--subject", "orders-value")) == [("SUBJECT", "orders-")] * 2
    assert caudal.json("acl", "list", "--subject", "payments") == []
    assert "subjects orders-*" in caudal("acl", "list", "--subject", "orders-value").stdout
    caudal("acl", "remove", "User:ann", "write", "--subject", "orders-", "--prefixed", "--yes")
    assert [rule["operation"] for rule in caudal.json("acl", "list", "--subject", "orders-value")] == ["READ"]


def test_a_rule_about_connectors_is_kept_by_connect(caudal: Caudal) -> None:
    caudal("acl", "allow", "etl", "all", "--connector", "orders-to-sql")
    caudal("acl", "deny", "etl", "delete", "--connector", "*", "--yes")
    listed = caudal.json("acl", "list", "--connector", "orders-to-sql")
    assert sorted((rule["permission"], rule["operation"]) for rule in listed) == [("ALLOW", "ALL"), ("DENY", "DELETE")]


def test_the_rule_that_decides_is_named(caudal: Caudal) -> None:
    caudal("acl", "allow", "User:ann", "write", "--subject", "orders-", "--prefixed")
    caudal("acl", "deny", "*", "write", "--subject", "orders-secret", "--yes")
    allowed = caudal("acl", "check", "User:ann", "write,describe", "--subject", "orders-value")
    assert "User:ann may write subjects orders-*" in allowed.stdout
    assert "the registry does not show super.users" in allowed.stderr
    assert caudal.json("acl", "check", "User:ann", "describe", "--subject", "orders-value")[0]["allowed"]
    denied = caudal("acl", "check", "User:ann", "write", "--subject", "orders-secret", code=1).stdout
    assert "everyone may not write subject orders-secret" in denied
    caudal("acl", "check", "User:bob", "read", "--subject", "orders-value", code=1)


def test_the_whole_of_a_service_is_a_resource(caudal: Caudal) -> None:
    caudal("acl", "allow", "User:ann", "alter", "--registry-wide", "--connect-wide")
    assert caudal.json("acl", "check", "User:ann", "alter", "--registry-wide")[0]["allowed"]
    assert caudal.json("acl", "check", "User:ann", "alter", "--connect-wide")[0]["allowed"]
    assert "may alter the whole registry" in caudal("acl", "check", "User:ann", "alter", "--registry-wide").stdout


def test_all_rules_are_in_one_table(
    caudal: Caudal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connect_url: str
) -> None:
    with SecuredBroker(tmp_path, Certificates(tmp_path)) as broker:
        monkeypatch.setenv("CAUDAL_BOOTSTRAP", f"127.0.0.1:{broker.plain_port}")
        caudal("acl", "allow", "ann", "read", "--topic", "t", "--subject", "s", "--connector", "c", "--yes")
        rows = eventually(lambda: caudal("acl", "list").stdout, lambda text: "topic t" in text)
        assert [what for what in ("topic t", "subject s", "connector c") if what not in rows] == []
        monkeypatch.setenv("CAUDAL_REGISTRY", _CLOSED)
        monkeypatch.delenv("CAUDAL_CONNECT")
        shown = caudal("acl", "list")
        assert "topic t" in shown.stdout
        assert f"without the rules of registry at {_CLOSED}" in shown.stderr
        # Of a service that nothing names, nothing is asked.
        assert "connector c" not in shown.stdout
        assert "rules of Connect" not in shown.stderr
        caudal("acl", "remove", "ann", "--registry", _CLOSED, "--connect", connect_url, "--yes")
        assert caudal.json("acl", "list", "--connector", "c", "--connect", connect_url) == []


def test_a_service_without_rules_is_told_apart(caudal: Caudal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_CONNECT", _CLOSED)
    assert "cannot be reached" in caudal("acl", "list", "--connector", "x", code=1).stderr
