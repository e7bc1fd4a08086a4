"""Three sinks of every mode on one engine, under load, while something of it is killed; and a judge who counts."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
from confluent_kafka import KafkaException

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_letters import letter_places, letters, raw_records
from tests.support.spark_load import SPOILINGS, Load
from tests.support.spark_records import Oracle, Place
from tests.support.spark_tables import differences, places, table_rows
from tests.support.spark_worker import AVRO, SparkWorker, committed, sink

TOPIC: Final = "load"
PARTITIONS: Final = 3
MODES: Final[Mapping[str, Mapping[str, str]]] = {
    "parquet_append": {"table.format": "parquet"},
    "delta_append": {"table.format": "delta"},
    "delta_upsert": {"table.format": "delta", "write.mode": "upsert", "pk.mode": "record_key"},
}
_PLACES: Final = [(TOPIC, partition) for partition in range(PARTITIONS)]
_PATIENCE_S: Final = 240.0
_MOMENT_S: Final = 2.0


@dataclass(slots=True)
class Kill:
    """What was killed, and how long which sink stood still after it."""

    what: str
    was_there: bool
    stood_still: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        slowest = max(self.stood_still.values(), default=0.0)
        return f"{self.what} {slowest:.1f} s" if self.was_there else f"{self.what} (nothing to kill)"


@dataclass(slots=True)
class Verdict:
    """What became of the records of one sink."""

    sent: int
    written: int
    letters: int
    lost: int
    doubled: int
    problems: list[str]


class Siege:
    """Broker, worker, engine and load, and the ways to kill each."""

    def __init__(self, broker: BrokerProcess, registry: RegistryProcess, worker: SparkWorker, *, folder: Path) -> None:
        self.broker = broker
        self.registry = registry
        self.worker = worker
        self.kills: list[Kill] = []
        self.load = Load(bootstrap=broker.bootstrap, registry=registry.url, topic=TOPIC, folder=folder, rate=500)

    def create(self) -> None:
        """Make the topic and the sinks, and wait until they run."""
        create_topic(self.broker, TOPIC, partitions=PARTITIONS)
        for name, mode in MODES.items():
            config: dict[str, Any] = sink(self.registry.url, key_converter=AVRO, value_converter=AVRO, topics=TOPIC)
            config |= {"table": name, "errors.deadletterqueue.topic.name": f"{name}-dead", **mode}
            self.worker.create(name, config)
        for name in MODES:
            self.worker.wait_until_running(name)

    def weapons(self, chooser: random.Random) -> dict[str, Callable[[], bool]]:
        """What can be killed, by name; False when there was nothing to kill."""
        return {
            "driver JVM": lambda: _kill(self.worker.java()),
            "engine": lambda: _kill(self.worker.engine()),
            "Python worker": lambda: _kill(_one_of(self.worker.python_workers(), chooser)),
            "Connect worker": self._kill_connect,
            "broker": self._kill_broker,
        }

    def strike(self, what: str, weapon: Callable[[], bool], *, chooser: random.Random, wait: bool = True) -> None:
        """Kill something at some moment, and wait until every sink gets on again."""
        self._wait_for_moment(chooser)
        kill = Kill(what, weapon())
        self.kills.append(kill)
        if wait:
            began = time.monotonic()
            before = {name: self._progress(name) for name in MODES}
            for name in MODES:
                self._wait_for_progress(name, before[name], what)
                kill.stood_still[name] = time.monotonic() - began

    def _wait_for_moment(self, chooser: random.Random) -> None:
        """Any moment, or one of those when a sink has just decided on a batch, or begun to change a table."""
        time.sleep(chooser.uniform(0.1, 1.5))
        name = chooser.choice(list(MODES))
        table, state = self.worker.table(name), self.worker.table("_caudal") / "sinks" / name
        watched = chooser.choice([None, state / "manifest.json", state / "staging", table, table / "_delta_log"])
        if watched is None:
            return
        before, deadline = _changed(watched), time.monotonic() + _MOMENT_S
        while _changed(watched) == before and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chooser.uniform(0.0, 0.03))

    def _kill_connect(self) -> bool:
        self.worker.restart(kill=True)
        return True

    def _kill_broker(self) -> bool:
        self.broker.restart(kill=True)
        return True

    def _progress(self, name: str) -> int:
        with suppress(KafkaException):
            return sum(committed(self.broker, f"connect-{name}", _PLACES).values())
        return -1

    def _wait_for_progress(self, name: str, before: int, what: str) -> None:
        try:
            eventually(lambda: self._progress(name) > before, timeout_s=_PATIENCE_S, pause_s=0.1)
        except AssertionError:
            raise AssertionError(
                f"{name} stands still since a kill of the {what} (kills: {list(map(str, self.kills))}): "
                f"{self.worker.trouble(name)}"
            ) from None

    # --- the judge ---

    def judge(self) -> dict[str, Verdict]:
        """Wait until nothing is left to do, and count what is where."""
        oracle = self.load.oracle()
        assert set(raw_records(self.broker.bootstrap, TOPIC)) == set(oracle.records), "the broker itself lost records"
        for name in MODES:
            self.worker.wait_until_drained(self.broker, name, [TOPIC], timeout_s=_PATIENCE_S)
        return {name: self._judged(name, oracle) for name in MODES}

    def _judged(self, name: str, oracle: Oracle) -> Verdict:
        rows = table_rows(self.worker.table(name))
        found = letters(self.broker.bootstrap, f"{name}-dead")
        in_letters, in_table = letter_places(found), places(rows)
        bad = set(oracle.bad(TOPIC, ways=SPOILINGS))
        if name == "delta_upsert":
            latest = oracle.latest(TOPIC, ways=SPOILINGS)
            wanted = {place: {**one.row, **_struct(one.key)} for place, one in latest.items()}
        else:
            wanted = oracle.rows(TOPIC, ways=SPOILINGS)
        problems = differences(rows, wanted)
        problems += [f"a letter of a good record: {place}" for place in in_letters if place not in bad]
        problems += [f"a bad record without letter: {place}" for place in bad if place not in in_letters]
        problems += [f"{count} letters of {place}" for place, count in in_letters.items() if count > 1]
        return Verdict(
            sent=len(oracle.records),
            written=len(rows),
            letters=len(found),
            lost=len(wanted.keys() - in_table.keys()) + len(bad - in_letters.keys()),
            doubled=_beyond_one(in_table) + _beyond_one(in_letters) + len(in_table.keys() & in_letters.keys()),
            problems=problems,
        )

    def summary(self, verdicts: Mapping[str, Verdict]) -> str:
        """For people."""
        kinds = Counter(kill.what for kill in self.kills if kill.was_there)
        lines = [f"{sum(kinds.values())} kills: " + ", ".join(f"{count} x {what}" for what, count in kinds.items())]
        lines += [
            f"{name}: {one.sent} sent, {one.written} rows, {one.letters} letters, {one.lost} lost, {one.doubled} twice"
            for name, one in verdicts.items()
        ]
        return "\n".join([*lines, "stood still: " + ", ".join(map(str, self.kills))])


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _struct(key: object) -> dict[str, Any]:
    assert isinstance(key, dict)
    return key


def _beyond_one(counts: "Counter[Place]") -> int:
    return sum(count - 1 for count in counts.values())


def _one_of(processes: list[psutil.Process], chooser: random.Random) -> psutil.Process | None:
    return chooser.choice(processes) if processes else None


def _kill(process: psutil.Process | None) -> bool:
    if process is None:
        return False
    with suppress(psutil.NoSuchProcess):
        process.kill()
        return True
    return False
