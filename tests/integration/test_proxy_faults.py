"""What becomes of records while broker, registry or proxy fail under load: each is in the log once, or refused."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from operator import eq
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.proxy_load import Acknowledged, ProxyLoad, Refused, judge
from tests.support.registry import AVRO, RegistryProcess

KINDS: Final = ("v2", "v2", "v2 batch", "v2 batch", "v3", "v3 stream")
TIMEOUT_S: Final = 3.0
"""The proxy's `kafka.timeout.ms` in these tests."""
SLACK_S: Final = 60.0
"""A busy machine; what hangs, hangs for good."""
ROUNDS: Final = int(os.environ.get("FAULT_ROUNDS", "2"))
V2: Final = "application/vnd.kafka.v2+json"
V2_JSON: Final = "application/vnd.kafka.json.v2+json"
V2_AVRO: Final = "application/vnd.kafka.avro.v2+json"


@dataclass(frozen=True)
class World:
    """A broker, a registry and a proxy of the test's own, to be treated badly."""

    broker: BrokerProcess
    registry: RegistryProcess
    proxy: ProxyProcess
    cluster_id: str

    def load(self, topic: str, *kinds: str) -> ProxyLoad:
        """Clients that write to a topic."""
        return ProxyLoad(self.proxy.url, topic, cluster_id=self.cluster_id, kinds=kinds or KINDS)

    def client(self) -> httpx2.Client:
        """A client that waits longer than the proxy may."""
        return httpx2.Client(base_url=self.proxy.url, timeout=TIMEOUT_S + SLACK_S)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Processes for this file alone."""
    directory = tmp_path_factory.mktemp("faults")
    with (
        BrokerProcess(directory / "broker", settings={"auto.create.topics.enable": "false"}) as broker,
        RegistryProcess(directory / "registry") as registry,
        ProxyProcess(
            directory / "proxy",
            bootstrap=broker.bootstrap,
            registry=registry.url,
            settings={"kafka.timeout.ms": str(int(TIMEOUT_S * 1000))},
        ) as proxy,
    ):
        cluster_id = httpx2.get(f"{proxy.url}/v3/clusters", timeout=30).json()["data"][0]["cluster_id"]
        yield World(broker, registry, proxy, cluster_id)
        assert proxy.is_running, proxy.log_tail()
        assert "Traceback" not in proxy.log_text()


@pytest.fixture
def topic(world: World, name: str) -> str:
    """A topic of the test's own, while everything runs."""
    create_topic(world.broker, name, partitions=3)
    return name


def stop_broker(world: World) -> None:
    world.broker.stop()
    world.broker.start()


def kill_broker(world: World) -> None:
    world.broker.kill()
    world.broker.start()


def pause_broker(world: World) -> None:
    os.kill(world.broker.pid, signal.SIGSTOP)
    time.sleep(TIMEOUT_S + 1)  # longer than records are waited for
    os.kill(world.broker.pid, signal.SIGCONT)


def kill_proxy(world: World) -> None:
    world.proxy.kill()
    world.proxy.start()


def stop_proxy(world: World) -> None:
    world.proxy.stop()
    world.proxy.start()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", [stop_broker, kill_broker, pause_broker, kill_proxy, stop_proxy])
def test_acknowledged_records_are_where_the_response_says_and_none_is_duplicated(
    world: World, topic: str, fault: Callable[[World], None]
) -> None:
    with world.load(topic) as load:
        for _ in range(ROUNDS):
            load.wait_for_acknowledgements()
            fault(world)
            load.wait_for_acknowledgements()
    verdict = judge(load.notes, world.broker.bootstrap, topic)
    assert load.notes.failures == []
    assert verdict.is_clean, f"{verdict.summary()}; {load.notes.summary()}"
    assert len(verdict.without_offset) == 0
    assert load.notes.slowest_s < TIMEOUT_S + SLACK_S
    assert {refused.status for refused in load.notes.refusals} <= {0, HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}


def test_a_topic_that_is_made_anew_is_written_to_again(world: World, topic: str) -> None:
    with world.load(topic) as load:
        load.wait_for_acknowledgements()
        admin_client(world.broker).delete_topics([topic])[topic].result(30)
        eventually(lambda: any(refused.status == HTTPStatus.NOT_FOUND for refused in load.notes.refusals))
        create_topic(world.broker, topic, partitions=3)
        before = set(load.notes.outcomes)
        load.wait_for_acknowledgements()
    verdict = judge(load.notes, world.broker.bootstrap, topic)
    assert load.notes.failures == []
    assert verdict.doubled == verdict.misplaced == []
    assert set(verdict.lost) <= before


@pytest.mark.timeout(120)
def test_a_broker_that_forgot_what_it_had_acknowledged_is_written_to_again(
    world: World, topic: str, tmp_path: Path
) -> None:
    """Its log ends before the producer's last record: the producer fails for good, and another takes its place."""
    with world.load(topic) as load:
        load.wait_for_acknowledgements()
        world.broker.stop()
        shutil.copytree(world.broker.data, tmp_path / "older")
        world.broker.start()
        load.wait_for_acknowledgements(300)
        world.broker.kill()
        shutil.rmtree(world.broker.data)
        shutil.copytree(tmp_path / "older", world.broker.data)
        load.wait_for_refusals()
        # With the broker gone, no more are acknowledged, and the responses for all that were have arrived.
        before = set(load.notes.acknowledged)
        world.broker.start()
        load.wait_for_acknowledgements(300)
    verdict = judge(load.notes, world.broker.bootstrap, topic)
    assert load.notes.failures == []
    assert verdict.doubled == []
    assert set(verdict.lost) <= before
    assert {refused.status for refused in load.notes.refusals} <= {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}


def test_known_schemas_go_on_without_the_registry_and_new_ones_get_503(world: World, topic: str) -> None:
    new = {"value_schema": AVRO.replace("Order", "Unknown"), "records": [{"value": {"n": 1}}]}
    with world.load(topic, "v2 avro", "v2 avro") as load, world.client() as client:

        def ask() -> httpx2.Response:
            return client.post(f"/topics/{topic}-new", json=new, headers={"Content-Type": V2_AVRO})

        load.wait_for_acknowledgements()
        world.registry.stop()
        refused = ask()
        load.wait_for_acknowledgements()
        world.registry.start()
        create_topic(world.broker, f"{topic}-new")
        eventually(lambda: ask().status_code, lambda status: status == HTTPStatus.OK)
    assert (refused.status_code, refused.headers.get("retry-after")) == (503, "1")
    assert load.notes.failures == []
    assert load.notes.refusals == []
    assert judge(load.notes, world.broker.bootstrap, topic).is_clean


def requests_of(world: World, topic: str) -> dict[str, Callable[[httpx2.Client], httpx2.Response]]:
    """One request of each kind that needs the cluster."""
    v3 = f"/v3/clusters/{world.cluster_id}"

    def get(path: str, accept: str = "*/*") -> Callable[[httpx2.Client], httpx2.Response]:
        return lambda client: client.get(path, headers={"Accept": accept})

    def post(
        path: str, body: Any, content_type: str = "application/json"
    ) -> Callable[[httpx2.Client], httpx2.Response]:
        return lambda client: client.post(path, json=body, headers={"Content-Type": content_type})

    record = {"value": {"type": "JSON", "data": 1}}
    return {
        "v2 produce": post(f"/topics/{topic}", {"records": [{"value": 1}]}, V2_JSON),
        "v2 produce, acks=1": post(f"/topics/{topic}?acks=1", {"records": [{"value": 1}]}, V2_JSON),
        "v3 produce": post(f"{v3}/topics/{topic}/records", record),
        "v2 topics": get("/topics"),
        "v2 topic": get(f"/topics/{topic}"),
        "v2 offsets": get(f"/topics/{topic}/partitions/0/offsets"),
        "v2 brokers": get("/brokers"),
        "v3 cluster": get(v3),
        "v3 topics": get(f"{v3}/topics"),
        "v3 configs": get(f"{v3}/topics/{topic}/configs"),
        "v3 groups": get(f"{v3}/consumer-groups"),
        "v3 group": get(f"{v3}/consumer-groups/none"),
        "v3 lag": get(f"{v3}/consumer-groups/none/lag-summary"),
        "v2 page": get(f"/topics/{topic}/partitions/0/records?offset=0&timeout=100", V2_JSON),
        "v3 page": get(f"{v3}/topics/{topic}/partitions/0/records?timeout=100"),
        "stream": get(f"/topics/{topic}/records?until=end", "application/x-ndjson"),
    }


@pytest.mark.parametrize("silence", [False, True], ids=["killed", "silent"])
def test_without_a_broker_every_request_is_answered_503_with_its_address(
    world: World, topic: str, *, silence: bool
) -> None:
    requests = requests_of(world, topic)
    with world.client() as client:
        instance = client.post("/consumers/faults", json={"format": "json"}, headers={"Content-Type": V2}).json()
        poll = f"/consumers/faults/instances/{instance['instance_id']}"
        client.post(f"{poll}/subscription", json={"topics": [topic]}, headers={"Content-Type": V2})
        requests["poll"] = lambda client: client.get(f"{poll}/records", headers={"Accept": V2_JSON})
        os.kill(world.broker.pid, signal.SIGSTOP) if silence else world.broker.kill()
        try:
            # Until the proxy has noticed, a poll that finds nothing is a success.
            eventually(partial(_status, _health, client), partial(eq, HTTPStatus.SERVICE_UNAVAILABLE))
            answers = {kind: request(client) for kind, request in requests.items()}
        finally:
            os.kill(world.broker.pid, signal.SIGCONT) if silence else world.broker.start()
        payload = {kind: (answer.status_code, answer.headers.get("retry-after")) for kind, answer in answers.items()}
        assert payload == dict.fromkeys(requests, (503, "1"))
        assert [
            kind for kind, answer in answers.items() if world.broker.bootstrap not in answer.json()["message"]
        ] == []
        late = [request for kind, request in requests.items() if kind not in ("v3 group", "v3 lag")]
        for request in late:
            eventually(partial(_status, request, client), partial(eq, HTTPStatus.OK))
        assert client.delete(poll, headers={"Content-Type": V2}).status_code == 204


def _health(client: httpx2.Client) -> httpx2.Response:
    return client.get("/health")


def _status(request: Callable[[httpx2.Client], httpx2.Response], client: httpx2.Client) -> int:
    return request(client).status_code


def test_a_stream_of_records_tells_each_of_them_that_the_broker_is_gone(world: World, topic: str) -> None:
    with world.load(topic, "v3 stream") as load:
        load.wait_for_acknowledgements()
        world.broker.kill()
        eventually(lambda: load.notes.refusals)
        world.broker.start()
        load.wait_for_acknowledgements()
    assert {type(outcome) for outcome in load.notes.outcomes.values()} == {Acknowledged, Refused}
    assert {refused.status for refused in load.notes.refusals} == {503}
    assert all(world.broker.bootstrap in refused.reason for refused in load.notes.refusals)
