"""Copies of tables follow real topics: what they hold is what the topic says, through restarts, kills and damage."""

import json
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from core_broker.service.clock import Clock, ManualClock
from streams.materialized.copies import Copies
from streams.materialized.errors import CopyMissing, CopyUnavailable
from streams.model.pull import Filter, Lookup, Output
from streams.model.sources import Column, Source, WindowInfo
from tests.support.admin import admin_client, create_topic
from tests.support.broker import BrokerProcess
from tests.support.materialized_tables import NO_REGISTRY, SESSION, TUMBLING, table
from tests.support.patience import eventually
from tests.support.service import REPOSITORY

KeyAndValue = tuple[str | bytes | None, dict[str, Any] | bytes | None]
COMPACTED = {"cleanup.policy": "compact"}


def produce(
    broker: BrokerProcess,
    topic: str,
    records: Sequence[KeyAndValue],
    *,
    partition: int = 0,
    time_ms: int = 1000,
) -> int:
    """The offset behind the last one of them."""
    offsets: list[int] = []

    def delivered(error: object, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for key, value in records:
        data = json.dumps(value).encode() if isinstance(value, dict) else value
        producer.produce(topic, data, key, partition=partition, timestamp=time_ms, on_delivery=delivered)
        producer.poll(0)
    producer.flush(30)
    return max(offsets) + 1


def all_of(source: Source, *names: str, keys: Sequence[str] | None = None) -> Lookup:
    outputs = names or tuple(column.name for column in source.columns)
    return Lookup(
        source=source.name,
        keys=None if keys is None else tuple((msgspec.Raw(msgspec.json.encode(key)),) for key in keys),
        filters=(),
        outputs=tuple(Output(name=name, path=(name,)) for name in outputs),
    )


@contextmanager
def opened(
    folder: Path, broker: BrokerProcess | str, *sources: Source, clock: Clock | None = None, wait_seconds: float = 10.0
) -> Iterator[Copies]:
    bootstrap = broker if isinstance(broker, str) else broker.bootstrap
    copies = Copies(folder, {"bootstrap.servers": bootstrap}, NO_REGISTRY, clock=clock, wait_seconds=wait_seconds)
    try:
        for source in sources:
            copies.follow(source)
        yield copies
    finally:
        copies.close()


def rows(copies: Copies, source: Source, *names: str, keys: Sequence[str] | None = None) -> list[tuple[object, ...]]:
    return sorted(copies.lookup(all_of(source, *names, keys=keys)))


def test_a_copy_has_the_last_value_of_each_key(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, partitions=2, configs=COMPACTED)
    source = table(name)
    ends = {0: produce(broker, name, [("a", {"N": 1}), ("b", {"N": 2}), ("a", {"N": 3})])}
    ends[1] = produce(broker, name, [("c", {"N": 4}), ("d", {"N": 5}), ("d", None)], partition=1)

    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("a", 3), ("b", 2), ("c", 4)]
        assert rows(copies, source, "N", "ROWTIME", keys=["b", "d"]) == [(2, 1000)]
        assert copies.wait_until(source.name, ends, 10)
        assert (copies.rows(source.name), copies.lag(source.name), copies.problem(source.name)) == (3, 0, None)

        end = produce(broker, name, [("a", None), ("b", {"N": 9})])
        assert copies.wait_until(source.name, {0: end}, 10)
        assert rows(copies, source) == [("b", 9), ("c", 4)]
        assert not copies.wait_until(source.name, {0: end + 1}, 0.1)


def test_only_committed_records_are_followed(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == []
        producer.begin_transaction()
        producer.produce(name, b'{"N": 1}', "a")
        producer.flush(30)
        assert not copies.wait_until(source.name, {0: 1}, 0.5)
        assert rows(copies, source) == []
        producer.abort_transaction(30)
        producer.begin_transaction()
        producer.produce(name, b'{"N": 2}', "b")
        producer.commit_transaction(30)

        assert copies.wait_until(source.name, {0: 4}, 10)
        assert rows(copies, source) == [("b", 2)]


def test_it_goes_on_where_it_was(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name)
    source = table(name)
    produce(broker, name, [("a", {"N": 1}), ("b", b"no JSON"), (None, {"N": 3}), ("b", {"N": 2}), ("b", b"{")])
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("a", 1), ("b", 2)]
        assert copies.skipped(source.name) == 2

    produce(broker, name, [("a", None), ("c", {"N": 3})])
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("b", 2), ("c", 3)]
        assert copies.skipped(source.name) == 0, "it read the records from the beginning"


def test_other_columns_make_it_anew(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    produce(broker, name, [("a", {"N": 1, "M": "x"})])
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("a", 1)]
        wider = msgspec.structs.replace(source, value=(*source.value, Column("M", "STRING")))
        copies.follow(wider)
        assert rows(copies, wider) == [("a", 1, "x")]
        copies.follow(wider)
        assert rows(copies, wider) == [("a", 1, "x")]
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("a", 1)]


def test_a_topic_that_was_made_again_makes_it_anew(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    produce(broker, name, [("a", {"N": 1}), ("b", {"N": 2})])
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("a", 1), ("b", 2)]

        admin_client(broker).delete_topics([name])[name].result(30)
        create_topic(broker, name, configs=COMPACTED)
        produce(broker, name, [("z", {"N": 9})])
        eventually(lambda: rows(copies, source) == [("z", 9)], timeout_s=60)

    admin_client(broker).delete_topics([name])[name].result(30)
    create_topic(broker, name, configs=COMPACTED)
    produce(broker, name, [("y", {"N": 1}), ("x", {"N": 2})])
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source) == [("x", 2), ("y", 1)]


def test_new_partitions_are_followed(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    from confluent_kafka.admin import NewPartitions

    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    clock = ManualClock()
    with opened(tmp_path, broker, source, clock=clock) as copies:
        assert rows(copies, source) == []
        admin_client(broker).create_partitions([NewPartitions(name, 2)])[name].result(30)
        produce(broker, name, [("a", {"N": 1})], partition=1)
        clock.advance(60_000)
        eventually(lambda: rows(copies, source) == [("a", 1)])


def test_it_is_made_anew_when_deletions_may_have_been_missed(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs={**COMPACTED, "delete.retention.ms": "60000"})
    source = table(name)
    produce(broker, name, [("a", {"N": 1}), ("b", b"no JSON")])
    clock = ManualClock(now_ms=1_000_000)
    for skipped in (1, 0):
        with opened(tmp_path, broker, source, clock=clock) as copies:
            assert rows(copies, source) == [("a", 1)]
            assert copies.skipped(source.name) == skipped
        clock.advance(20_000)
    clock.advance(60_000)
    with opened(tmp_path, broker, source, clock=clock) as copies:
        assert rows(copies, source) == [("a", 1)]
        assert copies.skipped(source.name) == 1, "it did not read the topic from its beginning"


@pytest.mark.parametrize("begin", [0, 4096 * 3])
def test_a_damaged_file_is_made_anew(broker: BrokerProcess, name: str, tmp_path: Path, begin: int) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    produce(broker, name, [(f"{number:04}", {"N": number}) for number in range(2000)])
    with opened(tmp_path, broker, source) as copies:
        assert len(rows(copies, source)) == 2000
    (file,) = tmp_path.glob("*/rows.db")
    content = bytearray(file.read_bytes())
    content[begin:] = random.Random(1).randbytes(len(content) - begin)
    file.write_bytes(content)

    with opened(tmp_path, broker, source) as copies:
        assert len(rows(copies, source)) == 2000
        assert rows(copies, source, "N", keys=["0007"]) == [(7,)]
    with opened(tmp_path, broker, source) as copies:
        assert len(rows(copies, source)) == 2000


def test_old_windows_are_removed(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs={"cleanup.policy": "compact,delete", "retention.ms": "-1"})
    window = WindowInfo(kind="TUMBLING", size_ms=1000, retention_ms=5000)
    source = table(name, window=window)

    def windowed(word: str, start: int) -> bytes:
        return word.encode() + struct.pack(">q", start)

    with opened(tmp_path, broker, source) as copies:
        ends = [
            produce(broker, name, [(windowed("a", start), {"N": start})], time_ms=start)
            for start in range(10_000, 18_000, 1000)
        ]
        assert copies.wait_until(source.name, {0: ends[-1]}, 10)
        plan = msgspec.structs.replace(
            all_of(source, "WINDOWSTART", "WINDOWEND", keys=["a"]),
            filters=(Filter(column="WINDOWSTART", operator="<", literal=msgspec.Raw(b"16000")),),
        )
        assert list(copies.lookup(plan)) == [(13000, 14000), (14000, 15000), (15000, 16000)]
        end = produce(broker, name, [(windowed("a", 15_000), None)], time_ms=19_000)
        assert copies.wait_until(source.name, {0: end}, 10)
        assert list(copies.lookup(plan)) == []


def test_sessions_end_inclusively_and_are_deleted_by_their_bounds(
    broker: BrokerProcess, name: str, tmp_path: Path
) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name, window=SESSION)

    def session(word: str, start: int, end: int) -> bytes:
        return word.encode() + struct.pack(">qq", end, start)

    records: list[KeyAndValue] = [
        (session("a", 0, 0), {"N": 1}),
        (session("a", 0, 0), None),
        (session("a", 0, 10), {"N": 2}),
        (session("a", 99, 99), {"N": 1}),
    ]
    produce(broker, name, records)
    with opened(tmp_path, broker, source) as copies:
        assert rows(copies, source, "WINDOWSTART", "WINDOWEND", "N", keys=["a"]) == [(0, 10, 2), (99, 99, 1)]


def test_snapshots_have_what_the_topic_has(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name, window=TUMBLING)
    key = b"a" + struct.pack(">q", 5000)
    produce(broker, name, [(key, {"N": 1})], time_ms=5001)
    with opened(tmp_path, broker, source) as copies:
        path = copies.snapshot(source.name)
        with pa.OSFile(str(path)) as file:
            assert pa.ipc.open_file(file).read_all().to_pylist() == [
                {"WORD": "a", "N": 1, "ROWTIME": 5001, "WINDOWSTART": 5000, "WINDOWEND": 6000}
            ]
        assert copies.snapshot(source.name) == path
        end = produce(broker, name, [(key, {"N": 2})])
        assert copies.wait_until(source.name, {0: end}, 10)
        assert copies.snapshot(source.name) != path


def test_look_ups_go_on_while_the_topic_is_written(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    produce(broker, name, [(f"k{number}", {"N": 0}) for number in range(100)])
    failures: list[Exception] = []
    slowest: list[float] = []
    is_over = threading.Event()
    with opened(tmp_path, broker, source) as copies:
        assert len(rows(copies, source)) == 100

        def look() -> None:
            last = [0] * 100
            try:
                while not is_over.is_set():
                    number = random.randrange(100)
                    began = time.perf_counter()
                    ((found,),) = copies.lookup(all_of(source, "N", keys=[f"k{number}"]))
                    slowest.append(time.perf_counter() - began)
                    assert isinstance(found, int)
                    assert found >= last[number], "it went back"
                    last[number] = found
            except Exception as error:  # noqa: BLE001 - reported by the test
                failures.append(error)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        end = 0
        for turn in range(1, 30):
            end = produce(broker, name, [(f"k{number}", {"N": turn}) for number in range(100)])
        assert copies.wait_until(source.name, {0: end}, 30)
        is_over.set()
        for thread in threads:
            thread.join()
        assert rows(copies, source, "N", keys=["k5"]) == [(29,)]
    assert not failures
    assert len(slowest) > 100


FOLLOWING = """
import sys, time
from pathlib import Path
from streams.materialized.copies import Copies
from tests.support.materialized_tables import NO_REGISTRY, table

copies = Copies(Path(sys.argv[1]), {"bootstrap.servers": sys.argv[2]}, NO_REGISTRY)
copies.follow(table(sys.argv[3]))
print("following", flush=True)
time.sleep(60)
"""


def test_killed_at_any_time_it_has_every_change_exactly_once(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    """The values tell their offsets: a row of an earlier offset than another change of its key would be a lost one."""
    create_topic(broker, name, configs=COMPACTED)
    source = table(name)
    chance = random.Random(7)
    expected: dict[str, int] = {}
    records: list[KeyAndValue] = []
    for offset in range(60_000):
        key = f"k{chance.randrange(3000)}"
        if chance.random() < 0.2:
            records.append((key, None))
            expected.pop(key, None)
        else:
            records.append((key, {"N": offset}))
            expected[key] = offset
    produce(broker, name, records)

    positions = []
    for pause in (0.15, 0.3, 0.1, 0.4):
        command = [sys.executable, "-c", FOLLOWING, str(tmp_path), broker.bootstrap, name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"following\n"
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        positions.append(position(tmp_path))

    with opened(tmp_path, broker, source) as copies:
        assert dict(copies.lookup(all_of(source))) == expected  # type: ignore[arg-type]  # of two outputs each
    assert positions == sorted(positions)


def position(folder: Path) -> int:
    import sqlite3

    for file in folder.glob("*/rows.db"):
        connection = sqlite3.connect(file)
        try:
            found = connection.execute("SELECT sum(next) FROM positions").fetchone()[0]
        finally:
            connection.close()
        return found or 0
    return 0


def test_without_a_broker_a_copy_that_was_complete_is_still_read(name: str, tmp_path: Path) -> None:
    source, other = table(name), table(f"{name}-other", name="OTHER")
    with ExitStack() as stack:
        with BrokerProcess(tmp_path / "broker") as broker:
            create_topic(broker, name, configs=COMPACTED)
            produce(broker, name, [("a", {"N": 1})])
            copies = stack.enter_context(opened(tmp_path / "copies", broker, source))
            assert rows(copies, source) == [("a", 1)]
            bootstrap = broker.bootstrap
        assert rows(copies, source) == [("a", 1)]
        stack.close()
        with opened(tmp_path / "copies", bootstrap, source, wait_seconds=0.5) as copies:
            assert rows(copies, source) == [("a", 1)]
            assert copies.lag(source.name) == -1
        with (
            opened(tmp_path / "copies", bootstrap, other, wait_seconds=0.2) as copies,
            pytest.raises(CopyUnavailable, match="OTHER cannot be read yet"),
        ):
            copies.lookup(all_of(other))


def test_a_missing_topic_is_the_reason_why_it_cannot_be_read(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    source = table(name)
    with opened(tmp_path, broker, source, wait_seconds=1) as copies:
        with pytest.raises(CopyUnavailable, match=name):
            copies.lookup(all_of(source))
        create_topic(broker, name, configs=COMPACTED)
        produce(broker, name, [("a", {"N": 1})])
        eventually(lambda: copies.problem(source.name) is None)
        assert rows(copies, source) == [("a", 1)]


def test_what_is_forgotten_leaves_nothing(broker: BrokerProcess, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, configs=COMPACTED)
    source, odd = table(name), table(name, name="../ödd/" + "x" * 200)
    with opened(tmp_path, broker, source, odd) as copies:
        assert rows(copies, source) == rows(copies, odd) == []
        copies.snapshot(odd.name)
        copies.forget(odd.name)
        copies.forget("NOTHING")
        with pytest.raises(CopyMissing):
            copies.lookup(all_of(odd))
        assert (copies.rows(odd.name), copies.lag(odd.name)) == (0, -1)
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["COUNTS.table"]
        with pytest.raises(CopyUnavailable, match=r"ksql\.streams\.state\.dir"):
            Copies(tmp_path, {"bootstrap.servers": broker.bootstrap}, NO_REGISTRY)
    with opened(tmp_path, broker) as copies:
        copies.keep_only(["OTHER"])
        assert not any(path.is_dir() for path in tmp_path.iterdir())
