"""The REST proxy acts as its callers: a broker with TLS, users and access rules decides what they may do."""

import http.client
import json
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.furnished_proxy import FurnishedProxy
from tests.support.patience import eventually
from tests.support.proxy_access import V2, AccessWorld, Caller, SecuredProxy, access_world, proxy_client, token_of
from tests.support.registry import RegistryProcess
from tests.support.registry_access import rule
from tests.support.route_walk import Judge, Operation, is_allowed, operations_of, status, walked
from tests.support.web_login import basic

RECORD = {"value": {"type": "STRING", "data": "x"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessWorld]:
    with access_world(tmp_path_factory.mktemp("access")) as made:
        for name in ("alice", "bob"):
            made.users.add(name, f"{name} secret")
        made.users.create_topic("bills", "secrets", "shared")
        for topic in ("bills", "shared"):
            made.users.allow("alice", topic, "ALL")
        made.users.allow("bob", "shared", "ALL")
        for name in ("alice", "bob"):
            made.users.allow(name, "readers", "READ", kind="GROUP", prefixed=True)
        yield made


@pytest.fixture(scope="module")
def alice(world: AccessWorld) -> Caller:
    """May use the topics bills and shared."""
    caller = world.user("alice")
    assert caller.produce("bills").status_code == 200
    return caller


@pytest.fixture(scope="module")
def bob(world: AccessWorld) -> Caller:
    """May use the topic shared."""
    return world.user("bob")


# -- every route ------------------------------------------------------------------------------------------------------

OPEN_TO_ALL_USERS = (
    "getHealth",
    "getMetrics",
    "getRootV2",
    "postRootV2",
    "createConsumerInstanceV2",
    "listBrokersV2",
    "listKafkaClusters",
    "getKafkaCluster",
    "listKafkaBrokers",
    "getKafkaBroker",
)
"""Kafka tells every user where its brokers are; a consumer may be made, and has to ask the cluster for everything."""
LISTS = ("listTopicsV2", "listKafkaTopics", "listKafkaConfigsOfTopics", "listKafkaConsumerGroups")
"""They show what the caller may see."""
NOT_THERE = ("getKafkaReassignment", "getKafkaClusterConfig", "listKafkaDefaultTopicConfigs", "createKafkaTopic")
"""With every right, too, since nothing is being moved, nothing was set, and the topic exists."""
READ = {"readRecordsV2": {"offset": "0"}}
RULE = {
    "resource_type": "TOPIC",
    "resource_name": "walked",
    "pattern_type": "LITERAL",
    "principal": "User:zoe",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


@pytest.fixture(scope="module")
def operations(world: AccessWorld) -> list[Operation]:
    """Every route, asked for things that are there, and that belong to the administrator."""
    furnished = FurnishedProxy(world.user("admin").http)
    furnished.furnish()
    queries = {**READ, "deleteKafkaAcls": RULE}
    return operations_of(
        furnished.document(),
        furnished.known(),
        bodies={"createConsumerInstanceV2": {"name": "another"}},
        queries=queries,
    )


def is_empty(answer: httpx2.Response) -> bool:
    found = answer.json()
    return answer.status_code == 200 and not (found["data"] if isinstance(found, dict) else found)


def is_denied(answer: httpx2.Response) -> bool:
    return answer.status_code == 403 and answer.json()["error_code"] == 40301


def has_denied_records(answer: httpx2.Response) -> bool:
    found = answer.json()
    outcomes = found.get("failures", [found])
    return answer.is_success and {outcome["error_code"] for outcome in outcomes} == {40301}


def is_foreign(answer: httpx2.Response) -> bool:
    return answer.status_code == 404 and answer.json()["error_code"] == 40403


def test_no_route_answers_without_a_login_or_with_a_wrong_one(world: AccessWorld, operations: list[Operation]) -> None:
    assert len(operations) > 70
    for caller in (
        world.anyone(),
        world.user("alice", "wrong"),
        world.user("nobody", "wrong"),
        world.with_token(token_of("alice", aud="others")),
        world.with_token(token_of("alice", lasts_s=-10)),
    ):
        assert list(walked(operations, caller.http, status(401))) == []


def test_no_route_shows_or_changes_anything_for_a_user_without_rights(
    world: AccessWorld, operations: list[Operation]
) -> None:
    world.users.add("zoe", "zoe secret")
    instances = [one.name for one in operations if "/instances/{name}" in one.template]
    assert len(instances) > 10
    exceptions: dict[str, Judge] = {
        **dict.fromkeys(OPEN_TO_ALL_USERS, status(200)),
        **dict.fromkeys(LISTS, is_empty),
        **dict.fromkeys(instances, is_foreign),
        **dict.fromkeys(("produceRecord", "produceRecordBatch"), has_denied_records),
        "listKafkaReplicasOfBroker": is_empty,
    }
    zoe = world.user("zoe")
    assert list(walked(operations, zoe.http, is_denied, exceptions)) == []
    assert zoe.ask("DELETE", "/consumers/billing/instances/another").status_code == 204


def test_every_route_works_for_a_user_with_all_rights(world: AccessWorld, operations: list[Operation]) -> None:
    exceptions: dict[str, Judge] = {
        **dict.fromkeys(NOT_THERE, is_allowed),
        "assignPartitionsV2": status(409),  # it has subscribed
    }
    admin = world.user("admin")
    assert list(walked(operations, admin.http, lambda answer: answer.is_success, exceptions)) == []
    assert admin.ask("DELETE", "/consumers/billing/instances/another").status_code == 204


# -- the rules of the cluster are the only ones -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/topics/bills",
        "/topics/bills/partitions",
        "/topics/bills/partitions/0/offsets",
        "/topics/bills/partitions/0/records?offset=0",
        "/topics/bills/records?until=end",
        ":/topics/bills",
        ":/topics/bills/configs",
        ":/topics/bills/partitions",
        ":/topics/bills/partitions/0/records",
        ":/topics/bills/records?until=end",
    ],
)
def test_a_topic_is_read_with_the_rights_of_the_caller(alice: Caller, bob: Caller, path: str) -> None:
    assert alice.ask("GET", path).status_code == 200
    refused = bob.ask("GET", path)
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)


def test_records_are_written_with_the_rights_of_the_caller(alice: Caller, bob: Caller) -> None:
    assert alice.produce("bills").status_code == 200
    assert bob.produce("shared").status_code == 200
    for caller, topic in ((alice, "secrets"), (bob, "bills"), (bob, "secrets")):
        refused = caller.produce(topic)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
        assert caller.ask("POST", f":/topics/{topic}/records", RECORD).json()["error_code"] == 40301
        batch = {"entries": [{"id": "1", **RECORD}]}
        failures = caller.ask("POST", f":/topics/{topic}/records:batch", batch).json()["failures"]
        assert [failure["error_code"] for failure in failures] == [40301]
    assert alice.ask("POST", ":/topics/bills/records", RECORD).json()["error_code"] == 200


def test_lists_have_what_the_caller_may_see(alice: Caller, bob: Caller) -> None:
    assert sorted(alice.ask("GET", "/topics").json()) == ["bills", "shared"]
    assert bob.ask("GET", "/topics").json() == ["shared"]
    assert [topic["topic_name"] for topic in bob.ask("GET", ":/topics").json()["data"]] == ["shared"]


def test_the_cluster_is_administered_with_the_rights_of_the_caller(world: AccessWorld, alice: Caller) -> None:
    admin = world.user("admin")
    topic = {"topic_name": "made"}
    requests: Sequence[tuple[str, str, Any]] = (
        ("POST", ":/topics", topic),
        ("POST", ":/acls", RULE),
        ("GET", ":/acls", None),
        ("PUT", ":/topics/made/configs/retention.ms", {"value": "1000"}),
        ("GET", ":/broker-configs", None),
        ("PUT", ":/broker-configs/log.cleaner.threads", {"value": "1"}),
        ("PATCH", ":/topics/made", {"partitions_count": 2}),
        ("DELETE", ":/topics/made", None),
    )
    for method, path, body in requests:
        refused = alice.ask(method, path, body)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301), f"{method} {path}: {refused.text}"
        done = admin.ask(method, path, body)
        assert done.is_success, f"{method} {path}: {done.text}"


def test_the_broker_sees_the_callers_and_not_the_proxy(world: AccessWorld, bob: Caller) -> None:
    bob.produce("secrets")
    bob.ask("GET", ":/acls")

    def refused() -> set[str]:
        events = [json.loads(line) for line in world.broker.log_text().splitlines() if line.startswith("{")]
        return {event["principal"] for event in events if event.get("event") == "denied"}

    assert "User:bob" in eventually(refused, lambda found: "User:bob" in found)
    assert "User:proxy" not in refused()


def test_curl_is_the_user_that_it_logs_in_as(world: AccessWorld) -> None:
    def curl(user: str, path: str, *options: str) -> int:
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "60", "--config", "-", *options]
        done = subprocess.run(
            [*command, world.proxy.url + path],
            input=f'user = "{user}:{user} secret"',
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )
        return int(done.stdout)

    record = ("-H", "content-type: application/vnd.kafka.json.v2+json", "-d", '{"records": [{"value": 1}]}')
    assert [curl(user, "/topics/bills", *record) for user in ("alice", "bob")] == [200, 403]
    assert [curl(user, "/topics/bills") for user in ("alice", "bob", "nobody")] == [200, 403, 401]


# -- consumer instances -----------------------------------------------------------------------------------------------


def test_instances_of_others_are_not_there(world: AccessWorld, alice: Caller, bob: Caller) -> None:
    assert alice.open_instance("readers-1", "mine", ["bills"]).status_code == 204
    path = "/consumers/readers-1/instances/mine"
    for method, suffix, body in (
        ("GET", "/records", None),
        ("GET", "/subscription", None),
        ("GET", "/assignments", None),
        ("GET", "/offsets", None),
        ("POST", "/offsets", {"offsets": []}),
        ("POST", "/subscription", {"topics": ["shared"]}),
        ("DELETE", "/subscription", None),
        ("DELETE", "", None),
    ):
        refused = bob.ask(method, path + suffix, body, media_type=V2)
        assert (refused.status_code, refused.json()["error_code"]) == (404, 40403), f"{method} {suffix}"
        assert refused.json()["message"] == world.user("bob").ask(method, path + "x" + suffix, body).json()["message"]
    assert bob.open_instance("readers-1", "mine", ["shared"]).status_code == 204
    assert alice.open_instance("readers-1", "mine").json()["error_code"] == 40902

    def read_by_alice() -> list[dict[str, object]]:
        # Both are members of one group, which is balanced when both read: else one may wait for the other.
        bob.poll("readers-1", "mine", timeout_ms=100)
        found: list[dict[str, object]] = alice.poll("readers-1", "mine").json()
        return found

    assert eventually(read_by_alice)[0]["topic"] == "bills"
    assert bob.ask("DELETE", path).status_code == 204
    assert bob.ask("DELETE", path).status_code == 404
    assert alice.ask("DELETE", path).status_code == 204


def test_groups_and_topics_are_refused_to_those_who_may_not_read_them(alice: Caller, bob: Caller) -> None:
    alice.open_instance("foreign", "one", ["bills"])
    bob.open_instance("readers-2", "one", ["bills"])
    for caller, group in ((alice, "foreign"), (bob, "readers-2")):
        refused = eventually(lambda caller=caller, group=group: caller.poll(group, "one"), lambda r: r.is_error)  # type: ignore[misc]  # no lambda is typed
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
        assert caller.ask("DELETE", f"/consumers/{group}/instances/one").status_code == 204


def test_a_refusal_between_two_requests_is_told_by_the_next_poll(bob: Caller) -> None:
    bob.open_instance("readers-8", "one", ["bills"])
    time.sleep(3)  # the proxy takes part in the group meanwhile, and learns that the topic is not for bob
    refused = eventually(lambda: bob.poll("readers-8", "one", timeout_ms=10), lambda answer: answer.is_error)
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert bob.ask("DELETE", "/consumers/readers-8/instances/one").status_code == 204


# -- passwords change, users go ---------------------------------------------------------------------------------------


def test_a_changed_password_has_clients_of_its_own_and_instances_go_on(world: AccessWorld) -> None:
    world.users.add("carol", "first")
    world.users.allow("carol", "shared", "ALL")
    world.users.allow("carol", "readers", "READ", kind="GROUP", prefixed=True)
    old = world.user("carol", "first")
    old.produce("shared", "before")
    old.open_instance("readers-3", "one", ["shared"])
    eventually(lambda: old.poll("readers-3", "one").json())
    clients = world.gauge("callers")
    world.users.add("carol", "second")
    new = world.user("carol", "second")
    assert new.produce("shared", "after").status_code == 200
    assert world.gauge("callers") == clients + 1
    eventually(lambda: old.produce("shared").status_code, lambda status: status == 401)
    found = eventually(lambda: new.poll("readers-3", "one").json())
    assert found[-1]["value"] == "after"
    assert old.poll("readers-3", "one").status_code == 401
    assert new.ask("DELETE", "/consumers/readers-3/instances/one").status_code == 204


class Lines:
    """What a stream sends, until it ends."""

    def __init__(self, caller: Caller, path: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self._request = (caller, path)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        caller, path = self._request
        with (
            httpx2.Client(base_url=caller.http.base_url, headers=caller.http.headers, timeout=60) as client,
            client.stream("GET", path, headers={"accept": "application/x-ndjson"}) as response,
        ):
            for line in response.iter_lines():
                if line:  # otherwise it is a heartbeat
                    self.lines.append(json.loads(line))

    def last(self) -> dict[str, Any]:
        """The last line, when the stream has ended."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.lines[-1]


def test_streams_of_a_deleted_user_end_with_a_message(world: AccessWorld) -> None:
    world.users.add("dave", "dave secret")
    world.users.allow("dave", "shared", "ALL")
    dave = world.user("dave")
    assert dave.produce("shared").status_code == 200
    reading = Lines(dave, "/topics/shared/records?from=beginning")
    eventually(lambda: reading.lines)
    connection = http.client.HTTPConnection("127.0.0.1", dave.http.base_url.port or 0, timeout=60)
    connection.putrequest("POST", f"{dave.cluster}/topics/shared/records")
    for name, value in {**dave.http.headers, "transfer-encoding": "chunked"}.items():
        if name not in ("host", "connection", "accept-encoding"):
            connection.putheader(name, value)
    connection.endheaders()
    record = json.dumps(RECORD).encode()
    connection.send(b"%x\r\n%b\r\n" % (len(record), record))
    response = connection.getresponse()
    assert json.loads(response.readline())["error_code"] == 200
    world.users.remove("dave")
    # The body stays open: it is the proxy that ends it.
    assert json.loads(response.readline())["error_code"] == 40101
    connection.close()
    assert reading.last()["error_code"] == 40101
    assert dave.produce("shared").status_code == 401


def test_clients_that_have_to_log_in_again_notice_a_deleted_user_themselves(world: AccessWorld, tmp_path: Path) -> None:
    settings = {"authentication.cache.ttl.ms": "3600000"}
    world.users.add("fay", "fay secret")
    world.users.allow("fay", "shared", "ALL")
    process = SecuredProxy(
        tmp_path, world.broker, registry="http://127.0.0.1:1", listener="SESSIONS", settings=settings
    )
    with process as proxy, closing(AccessWorld(world.broker, proxy)) as own:
        fay = own.user("fay")
        assert fay.produce("shared").status_code == 200
        world.users.remove("fay")
        for ask in (
            lambda: fay.produce("shared"),
            lambda: fay.ask("GET", "/topics"),
            lambda: fay.ask("GET", "/topics/shared/partitions/0/records?offset=0"),
        ):
            refused = eventually(ask, lambda answer: answer.is_error)
            assert (refused.status_code, refused.json()["error_code"]) == (401, 40101)


def test_a_stream_ends_when_the_right_to_read_is_taken_back(world: AccessWorld) -> None:
    world.users.add("eve", "eve secret")
    world.users.allow("eve", "shared", "READ")
    world.users.allow("eve", "shared", "DESCRIBE")
    eve = world.user("eve")
    reading = Lines(eve, "/topics/shared/records?from=beginning")
    eventually(lambda: reading.lines)
    world.users.forbid("eve", "shared", "READ")
    assert reading.last()["error_code"] == 40301


# -- tokens and certificates ------------------------------------------------------------------------------------------


def test_a_token_is_passed_on_and_a_newer_one_takes_its_place(world: AccessWorld) -> None:
    lasts_s = 6.0
    first = world.with_token(token_of("alice", lasts_s=lasts_s))
    ends_at = time.monotonic() + lasts_s
    assert first.produce("bills").status_code == 200
    assert first.produce("secrets").json()["error_code"] == 40301
    assert first.open_instance("readers-4", "one", ["bills"]).status_code == 204
    clients = world.gauge("callers")
    newer = world.with_token(token_of("alice"))
    assert newer.produce("bills").status_code == 200
    assert world.gauge("callers") == clients
    reading = Lines(newer, "/topics/bills/records")
    eventually(lambda: time.monotonic() > ends_at + 1)
    assert first.produce("bills").status_code == 401
    assert newer.produce("bills", "later").status_code == 200
    eventually(lambda: reading.lines and reading.lines[-1].get("value"))
    assert eventually(lambda: newer.poll("readers-4", "one").json())
    assert newer.ask("DELETE", "/consumers/readers-4/instances/one").status_code == 204
    assert newer.ask("GET", ":/topics/bills").status_code == 200


def test_with_the_last_token_everything_of_it_ends(world: AccessWorld) -> None:
    world.users.allow("tom", "shared", "ALL")
    world.users.allow("tom", "readers", "READ", kind="GROUP", prefixed=True)
    tom = world.with_token(token_of("tom", lasts_s=7))
    before = world.gauge("callers")
    assert tom.produce("shared").status_code == 200
    assert tom.open_instance("readers-5", "one", ["shared"]).status_code == 204
    reading = Lines(tom, "/topics/shared/records?from=beginning")
    eventually(lambda: world.users.members("readers-5"))
    assert reading.last()["error_code"] == 40101
    assert tom.produce("shared").status_code == 401
    eventually(lambda: world.gauge("callers"), lambda count: count == before)
    assert eventually(lambda: world.users.members("readers-5"), lambda members: not members) == []
    back = world.with_token(token_of("tom"))
    assert eventually(lambda: back.poll("readers-5", "one").json())
    assert back.ask("DELETE", "/consumers/readers-5/instances/one").status_code == 204


def test_a_token_that_only_the_proxy_accepts_is_refused_by_the_cluster(world: AccessWorld, tmp_path: Path) -> None:
    settings = {"sasl.oauthbearer.expected.audience": "someone-else"}
    with (
        SecuredProxy(tmp_path, world.broker, registry="http://127.0.0.1:1", settings=settings) as proxy,
        proxy_client(proxy.url, f"Bearer {token_of('alice', aud='someone-else')}") as client,
    ):
        for path in ("/topics", "/topics/bills/partitions/0/records?offset=0"):
            refused = client.get(path)
            assert (refused.status_code, refused.json()["error_code"]) == (401, 40101)


def test_a_certificate_opens_what_is_not_the_cluster_s(world: AccessWorld) -> None:
    with world.proxy.by_certificate("alice") as client:
        assert client.get("/metrics").status_code == 200
        refused = client.get("/topics")
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
        assert "log in with a password or a token" in refused.json()["message"]
        assert client.post("/topics/bills", json={"records": []}).status_code == 403


# -- the registry -----------------------------------------------------------------------------------------------------


def test_the_registry_sees_the_caller_if_it_shall(world: AccessWorld, tmp_path: Path) -> None:
    users = {
        "authentication.method": "BASIC,BEARER",
        "authentication.kafka.bootstrap.servers": world.broker.addresses["LOGIN"],
        "authentication.kafka.security.protocol": "SASL_SSL",
        "authentication.kafka.sasl.mechanism": "SCRAM-SHA-512",
        "authentication.kafka.ssl.ca.location": str(world.broker.stores.trust_store),
        "super.users": "User:admin",
        **{key: value for key, value in world.proxy.settings.items() if key.startswith("sasl.oauthbearer.")},
    }
    as_caller = {"schema.registry.as.caller": "true"}
    as_proxy = {"schema.registry.basic.auth.user.info": "admin:admin secret"}
    with RegistryProcess(tmp_path / "registry", settings=users) as registry:
        with proxy_client(registry.url, basic("admin", "admin secret")) as admin:
            assert admin.post("/security/acls", json=[rule("ALL", "shared-value")]).status_code == 201
        for settings, bobs_status in ((as_caller, 403), (as_proxy, 200)):
            folder = tmp_path / str(bobs_status)
            with SecuredProxy(folder, world.broker, registry=registry.url, settings=settings) as proxy:
                for login in (basic("alice", "alice secret"), f"Bearer {token_of('alice')}"):
                    assert avro(proxy.url, login).status_code == 200
                for login in (basic("bob", "bob secret"), f"Bearer {token_of('bob')}"):
                    assert avro(proxy.url, login).status_code == bobs_status
                with proxy_client(proxy.url, basic("bob", "bob secret")) as bob:
                    path = "/topics/shared/partitions/0/records?offset=0"
                    read = bob.get(path, headers={"accept": "application/vnd.kafka.avro.v2+json"})
                assert read.status_code == 200
                assert ("from alice" in read.text) is (bobs_status == 200)


def avro(url: str, login: str) -> httpx2.Response:
    """Write a record in Avro."""
    body = {"value_schema": '"string"', "records": [{"value": "from alice"}]}
    with proxy_client(url, login) as client:
        return client.post("/topics/shared", json=body, headers={"content-type": "application/vnd.kafka.avro.v2+json"})


# -- limits -----------------------------------------------------------------------------------------------------------


def test_clients_of_few_callers_are_kept_and_only_for_a_while(world: AccessWorld, tmp_path: Path) -> None:
    settings = {
        "caller.clients.max": "2",
        "caller.clients.idle.timeout.ms": "1000",
        "caller.consumer.instances.max": "1",
    }
    process = SecuredProxy(tmp_path, world.broker, registry="http://127.0.0.1:1", settings=settings)
    with process as proxy, ExitStack() as stack:
        small = stack.enter_context(closing(AccessWorld(world.broker, proxy)))
        small.cluster_id = world.cluster_id
        alice, bob, admin = small.user("alice"), small.user("bob"), small.user("admin")
        with alice.http.stream("GET", "/topics/shared/records"):
            with bob.http.stream("GET", "/topics/shared/records"):
                refused = admin.ask("GET", "/topics")
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
                assert "caller.clients.max" in refused.json()["message"]
                assert alice.ask("GET", "/topics").status_code == 200
                assert admin.ask("GET", "/health").status_code == 200
            eventually(lambda: admin.ask("GET", "/topics").status_code, lambda status: status == 200)
            assert small.gauge("callers") == 2
        assert eventually(lambda: small.gauge("callers"), lambda count: count == 0) == 0
        assert alice.produce("shared").status_code == 200
        for caller in (alice, bob):
            assert caller.open_instance("readers-7", "one").status_code == 200
            refused = caller.open_instance("readers-7", "two")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert "caller.consumer.instances.max" in refused.json()["message"]


def test_no_secret_is_in_the_log_of_the_proxy(world: AccessWorld) -> None:
    text = world.proxy.log_text()
    for secret in ("alice secret", "bob secret", "first", "second secret", "secret of the proxy", "eyJ"):
        assert secret not in text
