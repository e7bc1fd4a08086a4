"""A single broker becomes a cluster of three while clients write and read."""

import sys
import threading
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.admin import eventually
from tests.support.cluster import BrokerCluster
from tests.support.cluster_load import ClusterLoad, read_all
from tests.support.command import Caudal

pytestmark = pytest.mark.timeout(300)

ONE_COPY = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class Reader:
    """A consumer group that reads until it is stopped, and remembers what it got."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: set[bytes] = set()
        self.errors: list[str] = []
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        )
        self._consumer.subscribe([topic])
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is not None:
                self.errors.append(str(error))
            else:
                self.values.add(message.value() or b"")


def test_growing_from_one_broker_to_three_under_load_costs_no_client_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = BrokerCluster(tmp_path, settings=ONE_COPY)
    first = cluster[1]
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", f"127.0.0.1:{first.port}")
    caudal = Caudal(monkeypatch)
    try:
        cluster.start([1])
        admin = AdminClient({"bootstrap.servers": first.bootstrap})
        admin.create_topics([NewTopic("orders", 3, 1)])["orders"].result(60)
        with ClusterLoad(first.bootstrap, "orders") as load, Reader(first.bootstrap, "orders") as reader:
            load.wait_for_more()
            eventually(lambda: bool(reader.values))
            cluster.start([2, 3])
            caudal("cluster", "grow", "--all")
            load.wait_for_more()
            first.stop()
            load.wait_for_more()
            first.start()
        found = eventually(lambda: caudal.json("cluster"), lambda now: not now["under_replicated"])
        assert {item["replicas"] for item in found["brokers"]} == {found["partitions"]}
        assert load.failed == reader.errors == []
        assert dict(read_all(cluster.bootstrap, "orders", 3)) == load.acknowledged
        with capsys.disabled():
            said = f"{len(load.acknowledged)} records, longest stall {load.longest_stall_s:.2f} s"
            sys.stdout.write(f"\ngrowing under load: {said}\n")
    finally:
        cluster.__exit__()
