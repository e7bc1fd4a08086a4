"""Queries of every kind under load while something of the SQL service is killed; and a judge who computes them anew."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psutil
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import read_to_end
from tests.support.clients.model import Received
from tests.support.streams_service import StreamsService

PARTITIONS: Final = 2
USERS: Final = 20
PAGES: Final = 7
_BASE_MS: Final = 1_700_000_000_000
_STEP_MS: Final = 40
"""So much stream time passes from one record to the next."""
_WINDOW_MS: Final = 10_000
_WITHIN_MS: Final = 1_000
_ORDER_EVERY: Final = 5
_JUNK_EVERY: Final = 97
_RATE: Final = 100
_PATIENCE_S: Final = 300.0
_CITIES: Final = ("Kiel", "Lübeck", "Husum")

STATEMENTS: Final = f"""
CREATE STREAM CLICKS (USER_ID STRING KEY, ID BIGINT, PAGE STRING, AMOUNT BIGINT)
    WITH (KAFKA_TOPIC = 'clicks', VALUE_FORMAT = 'JSON');
CREATE STREAM ORDERS (USER_ID STRING KEY, ID BIGINT) WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');
CREATE TABLE USERS (USER_ID STRING PRIMARY KEY, CITY STRING) WITH (KAFKA_TOPIC = 'users', VALUE_FORMAT = 'JSON');
CREATE STREAM BIG AS SELECT USER_ID, ID, AMOUNT FROM CLICKS WHERE AMOUNT >= 50 EMIT CHANGES;
CREATE TABLE TOTALS AS
    SELECT USER_ID, COUNT(*) AS N, SUM(AMOUNT) AS TOTAL FROM CLICKS GROUP BY USER_ID EMIT CHANGES;
CREATE TABLE VISITS WITH (KEY_FORMAT = 'JSON') AS
    SELECT PAGE, COUNT(*) AS N FROM CLICKS
    WINDOW TUMBLING (SIZE {_WINDOW_MS // 1000} SECONDS, GRACE PERIOD 5 MINUTES) GROUP BY PAGE EMIT CHANGES;
CREATE STREAM PLACED AS
    SELECT C.USER_ID AS USER_ID, C.ID AS ID, U.CITY AS CITY
    FROM CLICKS C LEFT JOIN USERS U ON C.USER_ID = U.USER_ID EMIT CHANGES;
CREATE STREAM PAIRS AS
    SELECT C.USER_ID AS USER_ID, C.ID AS CLICK, O.ID AS ORDERED
    FROM CLICKS C JOIN ORDERS O WITHIN {_WITHIN_MS // 1000} SECONDS GRACE PERIOD 5 MINUTES ON C.USER_ID = O.USER_ID
    EMIT CHANGES;
"""
SINKS: Final = ("BIG", "TOTALS", "VISITS", "PLACED", "PAIRS")


@dataclass(frozen=True, slots=True)
class Click:
    """One record of the load, made from its number alone."""

    number: int

    @property
    def user(self) -> str:
        return f"u{self.number * 7 % USERS}"

    @property
    def time_ms(self) -> int:
        return _BASE_MS + self.number * _STEP_MS

    @property
    def page(self) -> str:
        return f"p{self.number % PAGES}"

    @property
    def amount(self) -> int:
        return self.number * 13 % 100

    @property
    def is_junk(self) -> bool:
        return self.number % _JUNK_EVERY == 0

    @property
    def value(self) -> bytes:
        if self.is_junk:
            return b"{broken"
        return json.dumps({"ID": self.number, "PAGE": self.page, "AMOUNT": self.amount}).encode()


@dataclass(slots=True)
class Kill:
    """What was killed, and how long it took until every query got on."""

    what: str
    was_there: bool
    stood_still_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.what} {self.stood_still_s:.1f} s" if self.was_there else f"{self.what} (nothing to kill)"


@dataclass(slots=True)
class Load:
    """Sends clicks and orders at a steady rate until it is stopped."""

    bootstrap: str
    sent: int = 0
    _failures: list[KafkaError] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """How many clicks were acknowledged: all that were sent."""
        self._stopping.set()
        assert self._thread is not None
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()
        assert not self._failures, self._failures[:3]
        return self.sent

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "partitioner": "murmur2_random",
                "delivery.timeout.ms": 230_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        began = time.monotonic()
        while not self._stopping.wait(0.02):
            while self.sent < (time.monotonic() - began) * _RATE and len(producer) < 5_000:
                self._send(producer, Click(self.sent))
                self.sent += 1
            producer.poll(0)
        assert producer.flush(_PATIENCE_S) == 0

    def _send(self, producer: Producer, click: Click) -> None:
        self._produce(producer, "clicks", click, click.value)
        if click.number % _ORDER_EVERY == 0:
            self._produce(producer, "orders", click, json.dumps({"ID": click.number}).encode())

    def _produce(self, producer: Producer, topic: str, click: Click, value: bytes) -> None:
        producer.produce(topic, key=click.user, value=value, timestamp=click.time_ms, on_delivery=self._report)

    def _report(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)


class Siege:
    """Broker, server, engine and load, and the ways to kill each."""

    def __init__(self, broker: BrokerProcess, server: StreamsService) -> None:
        self.broker = broker
        self.server = server
        self.kills: list[Kill] = []
        self.load = Load(broker.bootstrap)
        self._groups: dict[str, str] = {}

    def create(self) -> None:
        """Make the topics, fill the table, and start the queries."""
        for topic in ("clicks", "orders", "users"):
            create_topic(self.broker, topic, partitions=PARTITIONS)
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "partitioner": "murmur2_random"})
        for number in range(0, USERS, 2):
            value = json.dumps({"CITY": _CITIES[number % 3]})
            producer.produce("users", key=f"u{number}", value=value, timestamp=_BASE_MS)
        assert producer.flush(30) == 0
        self.server.ksql(STATEMENTS)
        queries = self.server.ksql("SHOW QUERIES;")[0]["queries"]
        self._groups = {query["sinks"][0]: f"_streams-default_{query['id']}" for query in queries}
        assert set(self._groups) == set(SINKS)

    def weapons(self, chooser: random.Random) -> dict[str, Callable[[], bool]]:
        """What can be killed, by name; False when there was nothing to kill."""
        return {
            "driver JVM": lambda: _kill(self.server.java()),
            "engine": lambda: _kill(self.server.engine()),
            "Python worker": lambda: _kill(_one_of(self.server.python_workers(), chooser)),
            "server": lambda: self._restart(self.server),
            "server and engine": self._kill_both,
            "broker": lambda: self._restart(self.broker),
        }

    def strike(self, what: str, weapon: Callable[[], bool], *, chooser: random.Random, wait: bool = True) -> None:
        """Kill something at some moment, and wait until every query gets on again."""
        time.sleep(chooser.uniform(0.1, 2.5))
        kill = Kill(what, weapon())
        self.kills.append(kill)
        if wait:
            began, before = time.monotonic(), self._all_progress()
            for name in SINKS:
                self._wait_for_progress(name, before[name], what)
            kill.stood_still_s = time.monotonic() - began

    def _kill_both(self) -> bool:
        there = _kill(self.server.engine())
        self._restart(self.server)
        return there

    @staticmethod
    def _restart(service: BrokerProcess | StreamsService) -> bool:
        service.restart(kill=True)
        return True

    def _all_progress(self) -> dict[str, int]:
        return {name: self._progress(name) for name in SINKS}

    def _progress(self, name: str) -> int:
        with suppress(KafkaException, TimeoutError):
            return self._committed(name).get("clicks", 0)
        return -1

    def _committed(self, name: str) -> dict[str, int]:
        group = self._groups[name]
        asked = [ConsumerGroupTopicPartitions(group)]
        # A client of its own: one that waits for a broker that was killed would go on waiting.
        client = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        found = client.list_consumer_group_offsets(asked, request_timeout=5)[group].result(10)
        sums: Counter[str] = Counter()
        for place in found.topic_partitions:
            sums[place.topic] += max(0, place.offset)
        return dict(sums)

    def _wait_for_progress(self, name: str, before: int, what: str) -> None:
        try:
            eventually(lambda: self._progress(name) > before, timeout_s=_PATIENCE_S, pause_s=0.1)
        except AssertionError:
            raise AssertionError(
                f"{name} stands still since a kill of the {what} (kills: {list(map(str, self.kills))}): "
                f"{self._trouble()}"
            ) from None

    def _trouble(self) -> str:
        return f"{self.server.engine_log()}\n{self.server.log_tail(40)}"

    # --- the judge ---

    def judge(self) -> dict[str, list[str]]:
        """Wait until nothing is left to do, and compare each topic with what it must hold; problems by sink."""
        sent = self.load.stop()
        self._wait_until_drained()
        clicks = [Click(number) for number in range(sent)]
        good = [click for click in clicks if not click.is_junk]
        junk = {click.number for click in clicks if click.is_junk}
        problems = {
            "BIG": _unequal(self._ids("BIG", "ID"), Counter(one.number for one in good if one.amount >= 50)),
            "PLACED": _unequal(self._ids("PLACED", "ID", "CITY"), Counter((one.number, _city(one)) for one in good)),
            "PAIRS": _unequal(self._ids("PAIRS", "CLICK", "ORDERED"), Counter(_pairs(good, sent))),
            "TOTALS": self._totals(good),
            "VISITS": self._visits(good),
        }
        for name in SINKS:
            letters = Counter(_number(record) for record in self._committed_records(f"{name}-dlq"))
            problems[name] += [f"dead letters: {line}" for line in _unequal(letters, Counter(junk))]
        return problems

    def _wait_until_drained(self) -> None:
        places = [TopicPartition("clicks", partition) for partition in range(PARTITIONS)]
        asked = {place: OffsetSpec.latest() for place in places}
        ends = sum(found.result(30).offset for found in admin_client(self.broker).list_offsets(asked).values())
        for name in SINKS:
            self._wait_for_end(name, ends)

    def _wait_for_end(self, name: str, end: int) -> None:
        try:
            eventually(lambda: self._progress(name) == end, timeout_s=_PATIENCE_S, pause_s=0.2)
        except AssertionError:
            raise AssertionError(f"{name} does not come to the end: {self._trouble()}") from None

    def _ids(self, topic: str, *names: str) -> Counter[Any]:
        rows = [json.loads(record.value) for record in self._committed_records(topic) if record.value]
        return Counter(row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in rows)

    def _committed_records(self, topic: str) -> list[Received]:
        return read_to_end(self.broker.bootstrap, topic, isolation="read_committed")

    def _totals(self, good: list[Click]) -> list[str]:
        counts: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        for click in good:
            counts[click.user] += 1
            sums[click.user] += click.amount
        last: dict[str, dict[str, int]] = {}
        problems = []
        for record in self._committed_records("TOTALS"):
            assert record.key is not None
            assert record.value is not None
            user, row = record.key.decode(), json.loads(record.value)
            if row["N"] <= last.get(user, {"N": 0})["N"]:
                problems.append(f"{user}: {row['N']} follows {last[user]['N']}")
            last[user] = row
        wanted = {user: {"N": counts[user], "TOTAL": sums[user]} for user in counts}
        return problems + ([] if last == wanted else [f"{last} is not {wanted}"])

    def _visits(self, good: list[Click]) -> list[str]:
        counts = Counter((click.page, click.time_ms // _WINDOW_MS * _WINDOW_MS) for click in good)
        last: dict[tuple[str, int], int] = {}
        problems = []
        for record in self._committed_records("VISITS"):
            assert record.key is not None
            assert record.value is not None
            place = json.loads(record.key[:-8]), int.from_bytes(record.key[-8:], "big")
            count = json.loads(record.value)["N"]
            if count <= last.get(place, 0):
                problems.append(f"{place}: {count} follows {last[place]}")
            last[place] = count
        return problems + _unequal(Counter(last), counts)

    def summary(self) -> str:
        """For people."""
        kinds = Counter(kill.what for kill in self.kills if kill.was_there)
        told = f"{sum(kinds.values())} kills: " + ", ".join(f"{count} x {what}" for what, count in kinds.items())
        return f"{told}; {self.load.sent} clicks\nstood still: " + ", ".join(map(str, self.kills))


def _city(click: Click) -> str | None:
    number = int(click.user[1:])
    return _CITIES[number % 3] if number % 2 == 0 else None


def _pairs(good: list[Click], sent: int) -> Iterator[tuple[int, int]]:
    orders = [Click(number) for number in range(0, sent, _ORDER_EVERY)]
    near = _WITHIN_MS // _STEP_MS
    by_number = {order.number: order for order in orders}
    for click in good:
        for number in range(click.number - near, click.number + near + 1):
            order = by_number.get(number)
            if order is not None and order.user == click.user:
                yield click.number, number


def _number(record: Received) -> int:
    return (record.timestamp_ms - _BASE_MS) // _STEP_MS


def _unequal(found: "Counter[Any]", wanted: "Counter[Any]") -> list[str]:
    lost, surplus = wanted - found, found - wanted
    told = [f"lost {sum(lost.values())}: {list(lost)[:5]}"] if lost else []
    return told + ([f"too many {sum(surplus.values())}: {list(surplus)[:5]}"] if surplus else [])


def _one_of(processes: list[psutil.Process], chooser: random.Random) -> psutil.Process | None:
    return chooser.choice(processes) if processes else None


def _kill(process: psutil.Process | None) -> bool:
    if process is None:
        return False
    with suppress(psutil.NoSuchProcess):
        process.kill()
        return True
    return False
