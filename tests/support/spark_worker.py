"""A Connect worker with an engine of its own, and the processes of that engine as an operator finds them."""

import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from typing_extensions import override

from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from tests.support.admin import admin_client, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess

AVRO: Final = "io.confluent.connect.avro.AvroConverter"
PROTOBUF: Final = "io.confluent.connect.protobuf.ProtobufConverter"
JSON_SCHEMA: Final = "io.confluent.connect.json.JsonSchemaConverter"
TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
_SMALL: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "700m",
    "spark.caudal.connect.port": "0",
    "spark.caudal.idle.timeout.ms": "20000",
    "spark.caudal.start.timeout.ms": "600000",
    "spark.sql.shuffle.partitions": "2",
}
_PATIENCE_S: Final = 300.0
_CALL_S: Final = 60.0


class SparkWorker(ConnectProcess):
    """One worker; the engine that it starts keeps everything in the worker's directory."""

    def __init__(
        self, directory: Path, *, bootstrap: str, group: str = "connect", settings: Mapping[str, str] | None = None
    ) -> None:
        self.data = directory / "spark"
        own = {**_SMALL, "spark.caudal.data.dir": str(self.data)}
        super().__init__(directory, bootstrap=bootstrap, group=group, settings={**own, **(settings or {})})

    @property
    def notebook(self) -> tuple[str, str]:
        """Where notebooks connect, and the token that they show."""
        with Engine.connect(SparkSettings.among(self.settings)) as engine:
            assert engine.info.connect_url is not None
            return engine.info.connect_url, (self.data / "connect.token").read_text().strip()

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return self.data / "warehouse" / name

    @override
    def stop(self) -> None:
        """End the worker, and the engine with everything that belongs to it."""
        try:
            super().stop()
        finally:
            self.end_engine()

    def end_engine(self) -> None:
        """Kill whatever is left of the engine, by its process ids."""
        if (engine := self.engine()) is None:
            return
        left = [engine, *_descendants(engine)]
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(left, timeout=_CALL_S)

    def engine(self) -> psutil.Process | None:
        """The process of the engine; None when there is none now."""
        with suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
            process = psutil.Process(int((self.data / "engine.lock").read_text().split()[0]))
            if any("streams.spark.engine" in word for word in process.cmdline()):
                return process
        return None

    def java(self) -> psutil.Process | None:
        """Spark's Java process, the driver."""
        return next((process for process in self._below() if _name(process).startswith("java")), None)

    def python_workers(self) -> list[psutil.Process]:
        """Python processes that Spark has started: those that read data and those that plan reading."""
        return [process for process in self._below() if "python" in _name(process) and "pyspark" in _command(process)]

    def _below(self) -> list[psutil.Process]:
        engine = self.engine()
        return _descendants(engine) if engine is not None else []

    def engine_log(self, lines: int = 40) -> str:
        """The end of what engine and Spark have written."""
        told = ""
        for file in sorted(self.data.glob("*.log")):
            told += f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-lines:]) + "\n"
        return told

    def trouble(self, connector: str) -> str:
        """What is known about a connector that does not get on."""
        with suppress(AssertionError, OSError):
            return f"{self.status(connector)}\n{self.engine_log()}\n{self.log_tail(20)}"
        return f"{self.engine_log()}\n{self.log_tail(20)}"

    def wait_until_running(self, connector: str) -> None:
        """Wait until a sink runs; the first one waits for Spark."""

        def is_running() -> bool:
            with suppress(OSError):
                answer = self.ask("GET", f"/connectors/{connector}/status")
                states = [task["state"] for task in answer.json()["tasks"]] if answer.is_success else []
                return bool(states) and set(states) == {"RUNNING"}
            return False

        try:
            eventually(is_running, timeout_s=_PATIENCE_S, pause_s=0.2)
        except AssertionError as error:
            raise AssertionError(f"{connector} does not run: {self.trouble(connector)}") from error

    def wait_until_drained(
        self, broker: BrokerProcess, connector: str, topics: Iterable[str], *, timeout_s: float = _PATIENCE_S
    ) -> None:
        """Wait until a sink's group has no lag."""
        names = list(topics)
        ends = end_offsets(broker, names)
        wanted = {place: offset for place, offset in ends.items() if offset}
        try:
            eventually(
                lambda: committed(broker, f"connect-{connector}", wanted),
                lambda found: all(found.get(place, -1) >= offset for place, offset in wanted.items()),
                timeout_s=timeout_s,
                pause_s=0.2,
            )
        except AssertionError as error:
            raise AssertionError(f"{connector}: {error}, of {wanted}; {self.trouble(connector)}") from None


def sink(registry: str, **more: str) -> dict[str, Any]:
    """The configuration of a Spark sink with dead letters, underscores in keys are dots."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    converters = {
        f"{side}.schema.registry.url": registry
        for side in ("key.converter", "value.converter")
        if given.get(side, TEXT) != TEXT
    }
    return {
        "connector.class": "io.caudal.connect.spark.SparkSinkConnector",
        "tasks.max": "1",
        "trigger.interval.ms": "1000",
        "errors.tolerance": "all",
        "errors.deadletterqueue.context.headers.enable": "true",
        **converters,
        **given,
    }


def end_offsets(broker: BrokerProcess, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """The end of each partition."""
    admin = admin_client(broker)
    known = admin.list_topics(timeout=_CALL_S).topics
    asked = {
        TopicPartition(topic, partition): OffsetSpec.latest()
        for topic in topics
        if topic in known
        for partition in known[topic].partitions
    }
    if not asked:
        return {}
    told = admin.list_offsets(asked, request_timeout=_CALL_S)
    return {(place.topic, place.partition): future.result().offset for place, future in told.items()}


def committed(broker: BrokerProcess, group: str, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """What a group has committed; nothing for what it has not. A broker that was killed needs another client."""
    asked = [TopicPartition(topic, partition) for topic, partition in places]
    request = ConsumerGroupTopicPartitions(group, asked)
    client = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    (future,) = client.list_consumer_group_offsets([request], request_timeout=_CALL_S).values()
    found = future.result().topic_partitions or []
    return {(place.topic, place.partition): place.offset for place in found if place.offset >= 0}


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
