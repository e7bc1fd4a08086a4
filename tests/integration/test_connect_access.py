"""Connect's access rules: every route, every worker, and what must never be shown."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from connect.rest.access_table import ROWS
from connect.runtime.signatures import Signatures, new_session_key
from core_broker.web_access.callers import caller_named
from tests.support.command import Caudal
from tests.support.connect_access import (
    ADMIN,
    CASES,
    PASSES_WITH_400,
    SINK,
    SecuredConnect,
    all_but,
    granted,
    path_of,
    right,
    secured_connect,
)
from tests.support.patience import eventually
from tests.support.registry_access import Administrator
from tests.support.secured import client_properties, write_properties

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredConnect]:
    with secured_connect(tmp_path_factory.mktemp("connect")) as world:
        yield world


def prepare(world: SecuredConnect) -> None:
    """Only the connector that requests are about exists, with a task."""
    for name in world.admin.get("/connectors"):
        if name != "orders":
            world.admin.do("DELETE", f"/connectors/{name}")
    if world.admin.get("/connectors") == []:
        config = {**SINK, "file": str(world.folder / "open" / "orders.txt")}
        world.admin.do("POST", "/connectors", {"name": "orders", "config": config})
    world.admin.do("PUT", "/connectors/orders/resume")
    eventually(lambda: world.admin.get("/connectors/orders/status")["tasks"], timeout_s=20)


@pytest.mark.parametrize("route", CASES)
def test_a_route_needs_its_right_and_no_other(world: SecuredConnect, route: str) -> None:
    case = CASES[route]
    method, path = path_of(route)
    prepare(world)
    for stranger in world.strangers:
        refusal = stranger.ask(method, path, case.body)
        assert (refusal.status_code, refusal.json()["error_code"]) == (401, 401)
    if case.need:
        elsewhere = granted(case.need, "other") if case.is_about_connector else []
        world.admin.allow(*all_but(case.need), *elsewhere)
        refusal = world.alice.ask(method, path, case.body)
        assert (refusal.status_code, refusal.json()["error_code"]) == (403, 403), refusal.text
        world.admin.allow()
        hidden = world.alice.ask(method, path, case.body)
        absent = world.alice.ask(method, path.replace("orders", "absent"), case.body)
        assert hidden.status_code == (404 if "/orders" in path and method + path[-7:] != "PUT/config" else 403)
        assert absent.text.replace("absent", "orders") == hidden.text
        names = ("orders-new",) if "new" in str(case.body) else ("orders",)
        world.admin.allow(*granted(case.need, *names))
    answer = world.alice.ask(method, path, case.body)
    assert answer.is_success or (answer.status_code == 400 and route in PASSES_WITH_400), answer.text


def test_the_walk_takes_every_route_of_the_document(world: SecuredConnect) -> None:
    document = world.admin.get("/openapi.json")
    methods = ("get", "put", "post", "delete", "patch", "head", "options")
    routes = {f"{one.upper()} {path}" for path, item in document["paths"].items() for one in item if one in methods}
    assert routes == set(CASES) == set(ROWS)
    assert document["security"] == [{"basic": []}]


def test_lists_leave_out_what_a_caller_may_not_see(world: SecuredConnect) -> None:
    prepare(world)
    world.admin.do("PUT", "/connectors/orders-new/config", SINK)
    world.admin.allow(right("DESCRIBE", "orders-new"))
    assert world.alice.get("/connectors") == ["orders-new"]
    expanded = world.alice.get("/connectors?expand=status&expand=info")
    assert {name: list(parts) for name, parts in expanded.items()} == {"orders-new": ["status"]}
    world.admin.allow(right("DESCRIBE_CONFIGS", "orders", pattern_type="PREFIXED"))
    expanded = world.alice.get("/connectors?expand=status&expand=info")
    assert {name: list(parts) for name, parts in expanded.items()} == {"orders": ["info"], "orders-new": ["info"]}


def test_who_may_create_may_not_replace(world: SecuredConnect) -> None:
    prepare(world)
    world.admin.allow(right("CREATE", "orders", pattern_type="PREFIXED"))
    assert world.alice.ask("PUT", "/connectors/orders/config", SINK).status_code == 403
    assert world.alice.ask("PUT", "/connectors/orders-new/config", SINK).status_code == 201
    assert world.alice.ask("PUT", "/connectors/orders-new/config", SINK).status_code == 403
    world.admin.allow(right("ALTER_CONFIGS", "orders", pattern_type="PREFIXED"))
    assert world.alice.ask("PUT", "/connectors/orders-new/config", SINK).status_code == 200
    assert world.alice.ask("PUT", "/connectors/orders-newer/config", SINK).status_code == 403


def test_a_validation_without_a_name_needs_a_right_on_any_connector(world: SecuredConnect) -> None:
    def validate() -> int:
        return world.alice.ask("PUT", "/connector-plugins/FileStreamSink/config/validate", SINK).status_code

    world.admin.allow(right("DESCRIBE"))
    assert validate() == 403
    world.admin.allow(right("CREATE", "something-"))
    assert validate() == 200


def rules_at(user: Any) -> list[dict[str, Any]]:
    return sorted(user.get("/security/acls"), key=str)


def test_rules_are_those_of_all_workers(world: SecuredConnect) -> None:
    world.admin.allow()
    world.admin.allow(right("ALTER", "connect"), right("DESCRIBE", "connect"))
    eventually(lambda: world.afar.ask("GET", "/security/acls").status_code, lambda status: status == 200)
    # The worker that follows hands this on, and the leader knows who asks.
    world.afar.do("POST", "/security/acls", [right("READ", "orders")])
    assert len(rules_at(world.alice)) == 3
    world.afar.do("DELETE", "/security/acls", [{"operation": "ALTER"}])
    refusal = world.alice.ask("POST", "/security/acls", [right("READ", "orders")])
    assert refusal.json() == {"error_code": 403, "message": "User:alice may not ALTER CONNECT connect"}
    eventually(lambda: len(rules_at(world.afar)), lambda count: count == 2)


def test_caudal_acl_makes_rules(world: SecuredConnect, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(world)
    world.admin.allow()
    login = client_properties(world.certificates, *ADMIN, mechanism="SCRAM-SHA-512")
    file = write_properties(world.folder / "admin.properties", {"bootstrap.servers": world.broker.address, **login})
    monkeypatch.setenv("CAUDAL_CLIENT_CONFIG", str(file))
    monkeypatch.setenv("CAUDAL_CONNECT", world.follower.url)
    caudal = Caudal(monkeypatch)
    assert world.alice.ask("GET", "/connectors/orders/status").status_code == 404
    caudal("acl", "allow", "alice", "describe", "--connector", "ord", "--prefixed")
    assert world.alice.get("/connectors/orders/status")["name"] == "orders"
    eventually(lambda: caudal.json("acl", "list", "--connector", "orders"), bool)
    caudal("acl", "deny", "alice", "describe", "--connector", "orders", "--yes")
    assert world.alice.ask("GET", "/connectors/orders/status").status_code == 404
    eventually(lambda: len(caudal.json("acl", "list", "--connector", "orders")), lambda count: count == 2)
    caudal("acl", "remove", "alice", "--connector", "orders", "--yes")
    assert world.alice.get("/connectors/orders/status")["name"] == "orders"


def test_a_rule_that_makes_no_sense_is_refused(world: SecuredConnect) -> None:
    refusal = world.admin.ask("POST", "/security/acls", [right("READ") | {"resource_type": "SUBJECT"}])
    assert refusal.status_code == 422
    assert "CONNECTOR, CONNECT" in refusal.json()["message"]


def test_a_forwarded_request_is_that_of_its_caller(world: SecuredConnect) -> None:
    prepare(world)
    world.admin.allow(right("CREATE", "orders-"), right("CREATE", "orders-new"), right("DELETE", "orders-new"))
    eventually(lambda: world.afar.ask("PUT", "/connectors/orders-new/config", SINK).status_code, lambda s: s == 201)
    world.admin.allow()
    # The one that follows may not know it yet; the leader does.
    assert world.afar.ask("DELETE", "/connectors/orders-new").status_code == 404
    assert "orders-new" in world.admin.get("/connectors")


SECRETS = {
    "connector.class": "JdbcSource",
    "mode": "bulk",
    "query": "select 1",
    "topic.prefix": "orders-in",
    "connection.attempts": "1",
    "connection.url": "jdbc:postgresql://ann:url-s3cret-1@127.0.0.1:9/shop?sslpassword=query-s3cret-2",
    "connection.password": "option-s3cret-3",
    "value.converter": "AvroConverter",
    "value.converter.schema.registry.url": "http://reg:conv-s3cret-4@127.0.0.1:9",
    "value.converter.basic.auth.user.info": "reg:auth-s3cret-5",
    "producer.override.sasl.jaas.config": 'PlainLoginModule required username="c" password="jaas-s3cret-6";',
    "errors.retry.timeout": "0",
}
FOUND_SECRETS = [f"s3cret-{number}" for number in range(1, 7)]


def test_secrets_are_in_no_answer_and_no_log(world: SecuredConnect) -> None:
    prepare(world)
    created = world.admin.ask("POST", "/connectors", {"name": "orders-new", "config": SECRETS})
    assert created.status_code == 201, created.text
    asked = [
        *(
            ("GET", f"/connectors/orders-new{part}", None)
            for part in ("", "/config", "/tasks", "/tasks-config", "/status")
        ),
        ("GET", "/connectors?expand=info&expand=status", None),
        ("PUT", "/connector-plugins/JdbcSource/config/validate", SECRETS),
        ("PUT", "/connector-plugins/JdbcSource/config/validate", {**SECRETS, "connection.url": "oracle:x:s3cret-1@h"}),
        ("PUT", "/connectors/orders-new/config", {**SECRETS, "connection.attempts": "no"}),
        ("POST", "/connectors/dry-run", {"config": SECRETS, "records": [{"value": "x"}]}),
    ]
    eventually(lambda: world.admin.get("/connectors/orders-new/tasks"))
    texts = [created.text, *(world.admin.ask(*one).text for one in asked)]
    # The connection fails, and the log says so.
    eventually(lambda: "the source cannot read now" in world.leader.log_text(), timeout_s=30)
    texts.append(world.admin.ask("GET", "/connectors/orders-new/status").text)
    texts += [worker.log_text() for worker in (world.leader, world.follower)]
    assert [secret for secret in FOUND_SECRETS for text in texts if secret in text] == []
    assert world.admin.get("/connectors/orders-new/config")["connection.password"] == "********"


def test_a_mask_stands_for_the_stored_secret(world: SecuredConnect) -> None:
    prepare(world)
    world.admin.do("POST", "/connectors", {"name": "orders-new", "config": SECRETS, "initial_state": "STOPPED"})
    shown = world.admin.get("/connectors/orders-new/config")
    world.admin.do("PUT", "/connectors/orders-new/config", {**shown, "batch.max.rows": "7"})
    world.admin.do("PATCH", "/connectors/orders-new/config", {"connection.password": "********"})
    assert world.stored_config("orders-new") == {**SECRETS, "name": "orders-new", "batch.max.rows": "7"}
    elsewhere = shown["connection.url"].replace("127.0.0.1", "127.0.0.2")
    for change in ({"connection.url": elsewhere}, {"redis.password": "********"}, {"connection.password": "x********"}):
        refusal = world.admin.ask("PATCH", "/connectors/orders-new/config", change)
        assert refusal.status_code == 400
        assert f"Invalid value ******** for configuration {next(iter(change))}" in refusal.json()["message"]
    refusal = world.admin.ask("POST", "/connectors", {"name": "orders-newer", "config": shown})
    assert refusal.status_code == 400


def secret_file(world: SecuredConnect) -> str:
    path = world.folder / "secret.properties"
    path.write_text("password=of-the-worker")
    (world.folder / "open" / "link").unlink(missing_ok=True)
    (world.folder / "open" / "link").symlink_to(path)
    return str(path)


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("file", {"connector.class": "FileStreamSink", "topics": "t", "file": "/etc/passwd"}),
        ("file", {"connector.class": "FileStreamSource", "topic": "t", "file": "{folder}/open/../secret.properties"}),
        ("file", {"connector.class": "FileStreamSource", "topic": "t", "file": "{folder}/open/link"}),
        ("topic", {"connector.class": "FileStreamSource", "topic": "${file:{folder}/secret.properties:password}"}),
        ("topic", {"connector.class": "FileStreamSource", "topic": "${env:PATH}"}),
        ("path", {"connector.class": "DirectorySource", "topic": "t", "path": "{folder}"}),
        ("schema.filename", {"connector.class": "Datagen", "kafka.topic": "t", "schema.filename": "/etc/passwd"}),
        ("connection.url", {"connector.class": "JdbcSink", "topics": "t", "connection.url": "jdbc:sqlite:/x.db"}),
        (
            "connection.url",
            {"connector.class": "JdbcSink", "topics": "t", "connection.url": "jdbc:mysql://127.0.0.1/x"},
        ),
        ("redis.uri", {"connector.class": "RedisSink", "topics": "t", "redis.uri": "unix:///run/redis.sock"}),
        ("redis.host", {"connector.class": "RedisSink", "topics": "t", "redis.host": "192.168.0.1"}),
        ("http.url", {"connector.class": "HttpSink", "topics": "t", "http.url": "http://169.254.169.254/latest"}),
        ("http.url", {"connector.class": "HttpSink", "topics": "t", "http.url": "http://[::1]:8083/"}),
        (
            "http.proxy.host",
            {
                "connector.class": "HttpSink",
                "topics": "t",
                "http.url": "http://a.example.com",
                "http.proxy.host": "192.168.0.1",
            },
        ),
        (
            "source.cluster.bootstrap.servers",
            {
                "connector.class": "MirrorSource",
                "source.cluster.alias": "a",
                "source.cluster.bootstrap.servers": "10.0.0.1:9092,evil:9092",
                "target.cluster.bootstrap.servers": "10.0.0.1:9092",
            },
        ),
        (
            "value.converter.schema.registry.url",
            {
                "connector.class": "FileStreamSink",
                "topics": "t",
                "value.converter": "AvroConverter",
                "value.converter.schema.registry.url": "http://evil:8081",
            },
        ),
        (
            "producer.override.ssl.ca.location",
            {"connector.class": "FileStreamSource", "topic": "t", "producer.override.ssl.ca.location": "/etc/passwd"},
        ),
        (
            "consumer.override.bootstrap.servers",
            {"connector.class": "FileStreamSink", "topics": "t", "consumer.override.bootstrap.servers": "evil:1"},
        ),
        (
            "consumer.override.plugin.library.paths",
            {"connector.class": "FileStreamSink", "topics": "t", "consumer.override.plugin.library.paths": "x"},
        ),
        (
            "producer.override.sasl.kerberos.kinit.cmd",
            {"connector.class": "FileStreamSource", "topic": "t", "producer.override.sasl.kerberos.kinit.cmd": "id"},
        ),
    ],
)
def test_what_the_operator_did_not_list_is_refused(world: SecuredConnect, key: str, config: dict[str, str]) -> None:
    secret_file(world)
    given = {name: text.replace("{folder}", str(world.folder)) for name, text in config.items()}
    refusal = world.admin.ask("POST", "/connectors", {"name": "orders-refused", "config": given})
    assert refusal.status_code == 400
    message = refusal.json()["message"]
    assert f"configuration {key}" in message
    assert any(
        words in message
        for words in ("connector.allowed.", "config.providers.env.param.allowlist.pattern", "run other code")
    ), message
    assert "of-the-worker" not in message


def test_what_the_operator_did_list_is_allowed(world: SecuredConnect) -> None:
    url = "http://things.example.com/x"
    for config in (
        {"connector.class": "HttpSink", "topics": "t", "http.url": url},
        {"connector.class": "HttpSink", "topics": "t", "http.url": "http://10.1.2.3/x"},
        {"connector.class": "FileStreamSink", "topics": "t", "file": str(world.folder / "open" / "new")},
    ):
        plugin = config["connector.class"]
        answer = world.admin.do("PUT", f"/connector-plugins/{plugin}/config/validate", {**config, "name": "x"})
        assert [error for info in answer["configs"] for error in info["value"]["errors"]] == []


def test_a_connector_acts_as_its_own_user(world: SecuredConnect) -> None:
    prepare(world)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(world.folder / "open" / "alice.txt"),
        "topics": "alice-in",
        "value.converter": "JsonConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "alice-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
        **world.as_alice("producer", "consumer", "admin"),
    }
    world.send("alice-in", b"no json")
    world.admin.do("POST", "/connectors", {"name": "orders-new", "config": config})
    every = (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE)

    def trace() -> str:
        tasks = world.admin.get("/connectors/orders-new/status")["tasks"]
        return tasks[0].get("trace", "") if tasks else ""

    # Of the worker's own rights, which are all, the connector has none.
    shown = eventually(trace, timeout_s=30)
    assert "uthorization" in shown or "not authorized" in shown or "denied" in shown, shown
    world.allow_in_kafka(ResourceType.TOPIC, "alice-", *every)
    world.allow_in_kafka(ResourceType.GROUP, "connect-orders-new", AclOperation.READ)
    world.admin.do("POST", "/connectors/orders-new/restart?includeTasks=true")
    letters = eventually(lambda: world.admin.get("/connectors/orders-new/dlq")["records"], timeout_s=40)
    assert letters[0]["value"] == "no json"
    # Dead letters are read, and redriven, as that user, too.
    redrive = {"selection": {"all": True}}
    refusal = world.admin.ask("POST", "/connectors/orders-new/dlq/redrive", redrive)
    assert refusal.status_code == 500
    assert "uthoriz" in refusal.json()["message"]
    world.allow_in_kafka(ResourceType.TOPIC, "connect-redrive", *every)
    world.allow_in_kafka(ResourceType.TRANSACTIONAL_ID, "connect-redrive-", AclOperation.WRITE)
    redriven = eventually(
        lambda: world.admin.ask("POST", "/connectors/orders-new/dlq/redrive", redrive),
        lambda answer: answer.is_success,
        timeout_s=30,
    )
    assert redriven.json()["redriven"] == 1


def test_what_another_worker_says_cannot_be_forged(world: SecuredConnect) -> None:
    foreign = Signatures(lambda: [new_session_key()])
    caller = caller_named("User:admin", host="127.0.0.1")
    made = foreign.sign(caller, method="GET", target="/connectors", body=b"")
    assert made is not None
    for header in (made, "", ".", "a.b", "é.é", "x" * 4000):
        headers = [(b"X-Connect-Authorization", header.encode("latin-1"))]
        answer = httpx2.get(f"{world.leader.url}/connectors", headers=headers, timeout=30)
        assert answer.status_code == 403, answer.text
        assert answer.json()["error_code"] == 403


def test_the_key_of_forwarded_requests_is_replaced_while_they_go_on(world: SecuredConnect) -> None:
    prepare(world)
    follower = Administrator(world.follower.url, ADMIN)
    known = len(world.stored("session-key"))
    follower.do("PUT", "/connectors/orders/resume")
    eventually(lambda: len(world.stored("session-key")) > known, pause_s=0.5)
    follower.do("PUT", "/connectors/orders/resume")
    follower.close()
    keys = [record["key"] for record in world.stored("session-key")]
    assert len(set(keys)) == len(keys)
    logs = world.leader.log_text() + world.follower.log_text()
    assert [key for key in keys if key in logs] == []
