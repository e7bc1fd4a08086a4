"""`/security/acls`: rules are listed, added and removed by those who may."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from core_broker.protocol.principals import parse_principal
from core_broker.security.audit import AuditLog
from core_broker.service.clock import ManualClock
from core_broker.service.web.asgi import Receive, Scope, Send
from core_broker.service.web.errors import add_error_handlers
from core_broker.web_access import rules_api
from core_broker.web_access.callers import Caller, set_caller
from core_broker.web_access.documented import add_access
from core_broker.web_access.rules import Operation, Permission, ResourceType, Rule, Rules
from core_broker.web_access.settings import RuleSettings
from tests.support.rule_list import RuleList

READ_ORDERS = {
    "principal": "User:alice",
    "resource": "orders",
    "resource_type": "SUBJECT",
    "pattern_type": "LITERAL",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


class Api:
    """The routes, with callers at will."""

    def __init__(self) -> None:
        settings = RuleSettings(authentication_method=("BASIC",), super_users=("User:root",))
        self.store, self.events = RuleList(), list[Any]()
        self.rules = Rules(settings)
        audit = AuditLog(ManualClock(), self.events.append)
        types = (ResourceType.SUBJECT, ResourceType.REGISTRY)
        app = FastAPI()
        add_error_handlers(app, ZeroDivisionError)
        app.include_router(
            rules_api.router(self.rules, self.store, resource_types=types, whole=ResourceType.REGISTRY, audit=audit)
        )
        add_access(app, settings)

        async def called(scope: Scope, receive: Receive, send: Send) -> None:
            set_caller(scope, Caller(parse_principal(self.user), "10.0.0.1"))
            await app(scope, receive, send)

        self.user = "User:root"
        self._client = TestClient(called, raise_server_exceptions=False)

    def ask(self, method: str, body: object = None, *, user: str = "User:root", **query: str) -> tuple[int, Any]:
        self.user = user
        answer = self._client.request(method, "/security/acls", json=body, params=query)
        return answer.status_code, json.loads(answer.content) if answer.content else None


def test_a_rule_that_is_added_is_shown_and_in_force() -> None:
    api = Api()
    assert api.ask("POST", [READ_ORDERS]) == (201, None)
    assert api.ask("POST", [READ_ORDERS]) == (201, None)
    assert api.ask("GET") == (200, [READ_ORDERS])
    alice = Caller(parse_principal("User:alice"), "10.0.0.1")
    assert api.rules.allows(alice, Operation.READ, ResourceType.SUBJECT, "orders")


def test_rules_are_selected_by_parameters() -> None:
    api = Api()
    other = {**READ_ORDERS, "principal": "User:bob", "pattern_type": "PREFIXED"}
    api.ask("POST", [READ_ORDERS, other])
    assert api.ask("GET", principal="User:bob", pattern_type="PREFIXED") == (200, [other])
    assert api.ask("GET", resource="nothing") == (200, [])
    assert api.ask("GET", pattern_type="MATCHING")[0] == 400
    assert api.ask("GET", princpal="User:bob")[0] == 400


def test_removed_rules_are_returned_and_no_longer_in_force() -> None:
    api = Api()
    other = {**READ_ORDERS, "operation": "WRITE"}
    api.ask("POST", [READ_ORDERS, other])
    assert api.ask("DELETE", [{"operation": "READ"}]) == (200, [READ_ORDERS])
    assert api.ask("DELETE", [READ_ORDERS]) == (200, [])
    assert api.ask("GET") == (200, [other])
    alice = Caller(parse_principal("User:alice"), "10.0.0.1")
    assert not api.rules.allows(alice, Operation.READ, ResourceType.SUBJECT, "orders")


def test_the_registry_has_one_name() -> None:
    api = Api()
    for name in ("", "registry"):
        api.ask("POST", [{**READ_ORDERS, "resource_type": "REGISTRY", "resource": name}])
    assert [rule.resource for rule in api.store.rules] == ["registry"]


@pytest.mark.parametrize(
    "change,status",
    [
        ({"principal": "alice"}, 422),
        ({"resource_type": "CONNECTOR"}, 422),
        ({"resource_type": "REGISTRY", "resource": "other"}, 422),
        ({"resource_type": "REGISTRY", "resource": "reg", "pattern_type": "PREFIXED"}, 422),
        ({"host": "shop.example"}, 422),
        ({"operation": "CLUSTER_ACTION"}, 400),
        ({"permission": "MAYBE"}, 400),
        ({"resource": "x" * 2000}, 400),
        ({"resource": None}, 400),
        ({"unknown": "x"}, 400),
    ],
)
def test_a_rule_that_could_never_match_is_refused(change: dict[str, object], status: int) -> None:
    api = Api()
    found, body = api.ask("POST", [READ_ORDERS, {**READ_ORDERS, **change}])
    assert (found, body["error_code"]) == (status, status)
    assert api.store.rules == []


@pytest.mark.parametrize("body", [{}, "x", 1, None, [[]], [None], [READ_ORDERS] * 1001])
def test_what_is_no_list_of_rules_is_refused(body: object) -> None:
    api = Api()
    assert api.ask("POST", body)[0] == 400
    assert api.ask("DELETE", body)[0] == 400


def test_who_may_describe_sees_the_rules_and_who_may_alter_changes_them() -> None:
    api = Api()
    assert api.ask("GET", user="User:alice")[0] == 403
    api.store.add([whole(Operation.DESCRIBE)])
    api.rules.reload(api.store)
    assert api.ask("GET", user="User:alice")[0] == 200
    for method in ("POST", "DELETE"):
        status, body = api.ask(method, [READ_ORDERS], user="User:alice")
        assert (status, body["error_code"]) == (403, 40301)
    api.store.add([whole(Operation.ALTER)])
    api.rules.reload(api.store)
    assert api.ask("POST", [READ_ORDERS], user="User:alice")[0] == 201


def whole(operation: Operation) -> Rule:
    return Rule(
        principal="User:alice",
        resource="registry",
        resource_type=ResourceType.REGISTRY,
        operation=operation,
        permission=Permission.ALLOW,
    )


def test_changes_are_in_the_audit_log() -> None:
    api = Api()
    api.ask("POST", [READ_ORDERS])
    api.ask("DELETE", [{}])
    api.ask("DELETE", [{}])
    shown = {"resources": ["ALLOW User:alice from *: READ SUBJECT:LITERAL:orders"]}
    assert [(event["principal"], event["api"], event["request"]) for event in api.events] == [
        ("User:root", "CreateAcls", shown),
        ("User:root", "DeleteAcls", shown),
    ]
