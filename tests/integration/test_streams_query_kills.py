"""Kill -9 of the engine and of its Java while queries run under load: every record is written exactly once."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import psutil
import pytest
from confluent_kafka import Producer

from streams.errors import EngineError, EngineUnavailable
from streams.model.plan import QueryPlan, SqlStep
from streams.spark.engine.client import Engine
from streams.spark.queries.spec import QuerySpec
from tests.support.broker import BrokerProcess
from tests.support.patience import eventually
from tests.support.spark_engine import QUICK, end_engine, engine_process, engine_settings, family_of, java_of
from tests.support.spark_java import needs_java
from tests.support.streams_queries import Bench, fresh, read_from_start, source

pytestmark = [needs_java, pytest.mark.slow]

_KEYS: Final = 7
_KILLS: Final = ("engine", "java", "engine", "java")
_PATIENCE_S: Final = 180.0


class _Load:
    """Sends numbered records until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent = 0
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert self._producer.flush(30) == 0

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            self._producer.produce(self._topic, b'{"N":%d}' % number, b"k%d" % (number % _KEYS))
            self._producer.poll(0)
            self.sent = number + 1
            time.sleep(0.002)


class _Keeper:
    """Keeps queries running, as the service does: connects again, and starts what does not run."""

    def __init__(self, directory: Path, specs: list[QuerySpec]) -> None:
        self.settings = engine_settings(directory, QUICK)
        self._specs = specs
        self.engine = Engine.connect(self.settings)

    def keep(self) -> None:
        try:
            for spec in self._specs:
                state = "none"
                with suppress(EngineError):
                    status = self.engine.status(spec.plan.name)
                    assert status.state != "failed", status.error
                    state = status.state
                if state == "none":
                    self.engine.run(spec.plan.name, "streams-query", msgspec.to_builtins(spec))
        except EngineUnavailable:
            self.engine.close()
            self.engine = Engine.connect(self.settings)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_engine(engine_settings(tmp_path / "engine", QUICK))


@pytest.mark.timeout(900)
def test_every_record_is_written_once_though_engine_and_java_are_killed(broker: BrokerProcess, folder: Path) -> None:
    bench = Bench(broker, None, folder / "state")  # type: ignore[arg-type]  # it has its own engines
    given = source(bench.topic("load", partitions=2), key={"ID": "STRING"}, value={"N": "BIGINT"})
    copied = source(bench.topic("copied", partitions=2), key={"ID": "STRING"}, value={"N": "BIGINT"})
    counted = source(bench.topic("counted"), "TABLE", key={"ID": "STRING"}, value={"COUNT": "BIGINT"})
    copy = QueryPlan(
        name=fresh("CSAS"),
        inputs=(read_from_start(given),),
        steps=(SqlStep(view="OUT", text=f"SELECT ID, N, ROWTIME FROM `{given.name}`"),),
        sink=copied,
        group=fresh("_streams-kills"),
    )
    count = QueryPlan(
        name=fresh("CTAS"),
        inputs=(read_from_start(given),),
        steps=(
            SqlStep(
                view="OUT",
                text="SELECT ID, count(*) AS COUNT, max(ROWTIME) AS ROWTIME, false AS __deleted"
                f" FROM `{given.name}` GROUP BY ID",
            ),
        ),
        mode="update",
        sink=counted,
        has_state=True,
        state_partitions=2,
        group=fresh("_streams-kills"),
    )
    keeper = _Keeper(folder / "engine", [bench.spec(copy), bench.spec(count)])
    load = _Load(broker.bootstrap, given.topic)
    for kind in _KILLS:
        _wait_for_progress(keeper, bench, (counted.topic, copied.topic))
        time.sleep((time.monotonic() * 1000 % 700) / 1000)  # at any moment of a batch
        _kill(keeper, kind)
    load.stop()
    _until(keeper, lambda: sum(_last_counts(bench, counted.topic).values()) >= load.sent)
    _until(keeper, lambda: len(bench.written(copied.topic)) >= load.sent)
    found = Counter(record.value["N"] for record in bench.written(copied.topic))
    assert found == Counter(range(load.sent))
    assert sum(_last_counts(bench, counted.topic).values()) == load.sent
    updates = Counter((record.key, record.value["COUNT"]) for record in bench.written(counted.topic))
    assert {update: times for update, times in updates.items() if times > 1} == {}
    keeper.engine.close()


def _wait_for_progress(keeper: _Keeper, bench: Bench, topics: tuple[str, ...]) -> None:
    before = {topic: len(bench.written(topic)) for topic in topics}
    _until(keeper, lambda: all(len(bench.written(topic)) > count for topic, count in before.items()))


def _until(keeper: _Keeper, accept: Callable[[], bool]) -> None:
    def ask() -> bool:
        keeper.keep()
        return accept()

    eventually(ask, timeout_s=_PATIENCE_S, pause_s=0.3)


def _kill(keeper: _Keeper, kind: str) -> None:
    process = engine_process(keeper.settings)
    assert process is not None
    family = family_of(process)
    victim = process if kind == "engine" else java_of(keeper.engine)
    victim.kill()
    psutil.wait_procs(family, timeout=60)


def _last_counts(bench: Bench, topic: str) -> dict[bytes | None, int]:
    return {record.key: record.value["COUNT"] for record in bench.written(topic)}
