"""A sink whose records another engine carries: a thread that reads with a plain consumer and writes lines to a file.

What tests want of it stands in files beside the one that is written, since it runs in other processes.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from connect.api.config import STRING, Config, option
from connect.api.engine import EngineContext, EngineFacts, EngineSinkConnector, EngineTask
from connect.api.errors import ConnectError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import TopicPartition
from connect.remote.pipeline import RemotePipeline
from core_broker.client.admin import Admin
from core_broker.client.consumer import Consumer
from core_broker.client.records import IncomingRecord
from core_broker.client.settings import ClientSettings
from core_broker.client.transactional_producer import TransactionalProducer

REFUSED = "refuse me"
_LOOK_EVERY = 10


class LineConfig(Config):
    """Where to write."""

    file: str = option(STRING)
    """Lines go there; `<file>.trouble` holds `fail` or `away` to make the engine fail, `<file>.calls` its
    calls."""


class LineEngine(threading.Thread):
    """Reads, converts, appends lines, then commits letters and offsets in one transaction."""

    def __init__(self, context: EngineContext, file: Path) -> None:
        super().__init__(name="line-engine", daemon=True)
        self.error: Exception | None = None
        self.counted: dict[str, float] = {"sink_record_read": 0, "sink_record_send": 0}
        self.seen: set[str] = set()
        self.is_paused = threading.Event()
        self.rests = threading.Event()
        self._ending = threading.Event()
        self._context = context
        self._file = file
        self._positions: dict[TopicPartition, int] = {}

    def end(self) -> None:
        """End soon."""
        self._ending.set()
        self.join(10)

    @override
    def run(self) -> None:
        try:
            with RemotePipeline.open(self._context.steps, patience_seconds=5) as pipeline:
                self._carry(pipeline)
        except Exception as error:  # noqa: BLE001 - the task reports it
            self.error = error

    def _carry(self, pipeline: RemotePipeline) -> None:
        context, group = self._context, self._context.group
        producer = TransactionalProducer(_client(context.producer_properties), transactional_id=f"{group}-engine")
        producer.init()
        admin = Admin(_client(context.admin_properties))
        self._positions = admin.group_offsets(group)
        with Consumer(_client(context.consumer_properties), group_id=group) as consumer:
            turns = 0
            while not self._ending.is_set():
                if self.is_paused.is_set():
                    self.rests.set()
                    self._ending.wait(0.05)
                    continue
                if turns % _LOOK_EVERY == 0:
                    self._assign(consumer, admin.topic_names())
                turns += 1
                if batch := consumer.read(100, timeout_ms=100):
                    self._write(pipeline, batch)
                    self._commit(pipeline, producer, batch)
        producer.close()

    def _assign(self, consumer: Consumer, known: Mapping[str, int]) -> None:
        chosen = [topic for topic in self._context.topics.chosen(known) if topic in known]
        places = [(topic, partition) for topic in chosen for partition in range(known[topic])]
        wanted = {place: self._positions.get(place, 0) for place in places}
        if set(consumer.assigned()) != set(wanted):
            consumer.assign(wanted)

    def _write(self, pipeline: RemotePipeline, batch: Sequence[IncomingRecord]) -> None:
        raw_of = {(raw.topic, raw.partition, raw.offset): raw for raw in batch}
        good: list[SinkRecord] = []
        for record in pipeline.records(batch):
            if record.value == REFUSED:
                raw = raw_of[record.original_topic, record.original_partition, record.original_offset]
                pipeline.refused(raw, DataError("the engine does not want it"))
            else:
                good.append(record)
        with self._file.open("a") as file:
            file.writelines(f"{record.value}\n" for record in good)
        self.counted["sink_record_send"] += len(good)

    def _commit(
        self, pipeline: RemotePipeline, producer: TransactionalProducer, batch: Sequence[IncomingRecord]
    ) -> None:
        if self._context.is_cancelled:
            raise ConnectError("somebody else has the task")
        for raw in batch:
            self._positions[raw.topic, raw.partition] = raw.offset + 1
        producer.begin()
        for letter in pipeline.taken_letters():
            producer.send(letter)
        producer.send_offsets(self._context.group, self._positions)
        producer.commit()
        self.seen |= {raw.topic for raw in batch}
        self.counted["sink_record_read"] += len(batch)
        for name, count in pipeline.taken_counters().items():
            self.counted[name] = self.counted.get(name, 0) + count


class LineEngineTask(EngineTask):
    config: LineConfig

    def __init__(self, config: Config, context: EngineContext) -> None:
        super().__init__(config, context)
        self._engine: LineEngine | None = None
        self._told: dict[str, float] = {}

    @override
    def start(self) -> None:
        check_trouble(self.config)
        note(self.config, "start", run=self.context.run, **self.context.engine_properties)
        self._engine = LineEngine(self.context, Path(self.config.file))
        self._engine.start()

    @override
    def turn(self) -> None:
        engine = self._running
        self.context.wait(0.1)
        check_trouble(self.config)
        if engine.error is not None:
            raise ConnectError("The engine has failed") from engine.error
        counted = dict(engine.counted)
        self.context.count({name: counted[name] - self._told.get(name, 0) for name in counted})
        self._told = counted
        self.context.used(set(engine.seen))

    @override
    def rest(self) -> None:
        check_trouble(self.config)
        self._running.is_paused.set()
        assert self._running.rests.wait(10)
        note(self.config, "rest")

    @override
    def resume(self) -> None:
        check_trouble(self.config)
        note(self.config, "resume")
        self._running.rests.clear()
        self._running.is_paused.clear()

    @override
    def stop(self) -> None:
        if self._engine is not None:
            self._engine.end()
            note(self.config, "stop")

    @property
    def _running(self) -> LineEngine:
        assert self._engine is not None, "start comes first"
        return self._engine


class LineEngineSinkConnector(EngineSinkConnector):
    config_class: ClassVar[type[Config]] = LineConfig
    task_class: ClassVar[type[EngineTask]] = LineEngineTask
    aliases = ("org.example.LineEngineSinkConnector",)
    config: LineConfig

    @override
    def alter_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int | None]) -> bool:
        if any(partition > 0 for _, partition in offsets):
            raise ConnectError("there is one partition alone")
        check_trouble(self.config)
        changes = {f"{topic}-{partition}": offset for (topic, partition), offset in offsets.items()}
        note(self.config, "alter", group=facts.group, offsets=changes, **facts.engine_properties)
        return True

    @override
    def removed(self, facts: EngineFacts) -> None:
        note(self.config, "removed", connector=facts.connector)


def check_trouble(config: LineConfig) -> None:
    """Fail as the test wants it."""
    trouble = Path(f"{config.file}.trouble")
    match trouble.read_text() if trouble.exists() else "":
        case "fail":
            raise ConnectError("The engine is broken")
        case "away":
            raise RetriableError("The engine is away")
        case _:
            pass


def note(config: LineConfig, what: str, **more: object) -> None:
    """Write down what was called."""
    with Path(f"{config.file}.calls").open("a") as file:
        file.write(json.dumps({"call": what, **more}) + "\n")


def install(folder: Path) -> None:
    """Make a package of it, as `pip install` does: workers with this folder in PYTHONPATH know the connector."""
    information = folder / "line_engine-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: line-engine\nVersion: 1.0\n")
    point = f"LineEngineSink = {__name__}:{LineEngineSinkConnector.__name__}"
    (information / "entry_points.txt").write_text(f"[caudal.connectors]\n{point}\n")


def _client(properties: Mapping[str, str]) -> ClientSettings:
    return ClientSettings(bootstrap_servers=properties["bootstrap.servers"], properties=properties)
