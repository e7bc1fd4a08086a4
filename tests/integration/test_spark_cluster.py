"""The same connector on the embedded Spark and on a cluster of one master and two workers: the same tables."""

import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from streams.errors import EngineUnavailable
from streams.spark.engine.client import Engine
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_engine import QUICK, running_engine
from tests.support.spark_java import needs_java
from tests.support.spark_letters import Letter, letters
from tests.support.spark_orders import VERSIONS
from tests.support.spark_records import Making, Oracle, Spoiling, made
from tests.support.spark_senders import ConfluentSender
from tests.support.spark_tables import Row, delta_rows, differences, parquet_rows, place_of
from tests.support.spark_worker import AVRO, SparkWorker, sink

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.timeout(1200)]

_SPOILED: Final[tuple[Spoiling, ...]] = ("no magic byte", "truncated", "unknown schema id")
_TOPIC: Final = "cluster-orders"


def _configs(registry: str) -> dict[str, dict[str, Any]]:
    orders = sink(registry, key_converter=AVRO, value_converter=AVRO, topics=_TOPIC)
    dead = "errors.deadletterqueue.topic.name"
    upsert = {"table.format": "delta", "write.mode": "upsert", "pk.mode": "record_key"}
    return {
        "appended": {**orders, "table": "appended", dead: "cluster-appended-dead"},
        "latest": {**orders, "table": "latest", dead: "cluster-latest-dead", **upsert},
    }


class Written(NamedTuple):
    """What a worker's sinks have made of the topic."""

    appended: list[Row]
    latest: list[Row]
    letters: list[Letter]


def _written(broker: BrokerProcess, registry: RegistryProcess, worker: SparkWorker) -> Written:
    """Run the sinks until everything is written."""
    configs = _configs(registry.url)
    for name, config in configs.items():
        worker.create(name, config)
    for name in configs:
        worker.wait_until_drained(broker, name, [_TOPIC], timeout_s=300)
    return Written(
        sorted(parquet_rows(worker.table("appended")), key=place_of),
        sorted(delta_rows(worker.table("latest")), key=place_of),
        sorted(letters(broker.bootstrap, "cluster-appended-dead"), key=lambda letter: letter.place),
    )


@pytest.fixture
def sent(tmp_path: Path, registry: RegistryProcess) -> Oracle:
    """Records in the folder of a broker that has been stopped, to be copied."""
    oracle = Oracle()
    with BrokerProcess(tmp_path / "original") as broker:
        create_topic(broker, _TOPIC, partitions=2)
        with ConfluentSender(broker.bootstrap, registry.url) as sender:
            for version in VERSIONS:
                making = Making(format="avro", version=version, spoilings=_SPOILED)
                oracle.learn(sender.send(_TOPIC, made(making, seed=3, first=version * 1000, count=300)))
    return oracle


def _run(folder: Path, registry: RegistryProcess, settings: Mapping[str, str]) -> Written:
    """The sinks with settings of the worker, on a copy of the records."""
    shutil.copytree(folder.parent / "original" / "data", folder / "broker" / "data")
    with (
        BrokerProcess(folder / "broker") as broker,
        SparkWorker(folder / "connect", bootstrap=broker.bootstrap, settings=settings) as worker,
    ):
        return _written(broker, registry, worker)


def test_a_cluster_writes_what_the_embedded_spark_writes(
    tmp_path: Path, registry: RegistryProcess, sent: Oracle
) -> None:
    embedded = _run(tmp_path / "embedded", registry, {})
    with SparkCluster(tmp_path / "cluster") as cluster:
        settings = {
            "spark.master": cluster.master,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.pyspark.python": str(cluster.python),  # As on other machines: without our code.
        }
        clustered = _run(tmp_path / "clustered", registry, settings)
        assert all(cluster.executors(name) for name in ("worker-1", "worker-2")), cluster.log("master")

    assert differences(embedded.appended, sent.rows(_TOPIC, ways=_SPOILED)) == []
    assert {letter.place for letter in embedded.letters} == set(sent.bad(_TOPIC, ways=_SPOILED))
    assert clustered.appended == embedded.appended
    assert clustered.latest == embedded.latest
    assert _told(clustered.letters) == _told(embedded.letters)


def test_an_engine_that_its_cluster_has_forgotten_ends_and_the_next_one_works(tmp_path: Path) -> None:
    with SparkCluster(tmp_path / "cluster", workers=1) as cluster:
        settings = {
            "spark.master": cluster.master,
            "spark.executor.memory": "512m",
            "spark.pyspark.python": str(cluster.python),
            "spark.caudal.start.timeout.ms": "120000",
            **QUICK,
        }
        with running_engine(tmp_path / "engine", settings) as engine:
            assert _counted(engine) == 1000
            cluster.replace_master()
            with pytest.raises(EngineUnavailable):
                while _counted(engine) == 1000:  # as long as the executors of before are there
                    time.sleep(1)
        with running_engine(tmp_path / "engine", settings) as engine:
            assert _counted(engine) == 1000


def _counted(engine: Engine) -> int:
    answer = engine.call("sql", statement="SELECT count(*) FROM range(0, 1000, 1, 2)", limit=1)
    count: int = answer["rows"][0][0]
    return count


def _told(found: list[Letter]) -> list[tuple[object, ...]]:
    """What letters tell, without the stack traces, which name the places of code, and addresses in memory."""
    return [
        (
            one.received.key,
            one.received.value,
            {name: re.sub(r" at 0x[0-9a-f]+", "", text) for name, text in one.told.items() if "stacktrace" not in name},
            one.own_headers,
        )
        for one in found
    ]
