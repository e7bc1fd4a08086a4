"""Damaged files of a stopped broker: noticed, told in the log, and survived."""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.support.admin import admin_client, create_topic
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, consumer_config, poll_records, read_to_end
from tests.support.clients.model import TIMEOUT_S, Received, Sent, Transaction
from tests.support.log_check import check_data_directory

RECORDS = 400
TOPIC = "damaged"
SETTINGS = {"log.index.interval.bytes": "256", "log.segment.bytes": "1048576"}
client = ConfluentClient()

Damage = Callable[[Path], None]


def flip_bits(file: Path) -> None:
    """Flip bits in the middle of a file."""
    data = bytearray(file.read_bytes())
    chance = random.Random(3)
    for _ in range(5):
        data[chance.randrange(len(data) // 3, max(len(data) // 3 + 1, 2 * len(data) // 3))] ^= 0x55
    file.write_bytes(data)


def flip_bits_of_text(file: Path) -> None:
    """Flip the highest bit of characters. (A digit that becomes another one leaves no trace in Kafka's formats.)"""
    data = bytearray(file.read_bytes())
    for position in range(len(data) // 2, len(data)):
        data[position] ^= 0x80
    file.write_bytes(data)


def truncate(file: Path) -> None:
    """Cut a file off in its middle."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2 + 1])


def empty(file: Path) -> None:
    """Leave nothing."""
    file.write_bytes(b"")


def overwrite_with_noise(file: Path) -> None:
    """The same length of something else."""
    file.write_bytes(random.Random(4).randbytes(max(file.stat().st_size, 64)))


def append_noise(file: Path) -> None:
    """A torn write at the end."""
    with file.open("ab") as out:
        out.write(random.Random(5).randbytes(777))


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """Data directories of one broker, as a clean stop and as a kill left them."""

    stopped: Path
    killed: Path


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    directory = tmp_path_factory.mktemp("original")
    broker = BrokerProcess(directory / "run", settings=SETTINGS).start()
    create_topic(broker, TOPIC)
    write_records(broker)
    client.transact(
        broker.bootstrap, TOPIC, "id", [Transaction(records=[Sent(value=b"no", partition=0)], commit=False)]
    )
    client.consume_group(broker.bootstrap, TOPIC, "group", RECORDS)
    broker.kill()
    shutil.copytree(broker.data, directory / "killed")
    broker.start()
    broker.stop()
    shutil.copytree(broker.data, directory / "stopped")
    return Original(stopped=directory / "stopped", killed=directory / "killed")


def write_records(broker: BrokerProcess) -> None:
    """Batches of twenty records, so that the offset index has many entries."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d " % number * 60, b"%d" % number, partition=0)
        if number % 20 == 19:
            assert producer.flush(TIMEOUT_S) == 0


def start_on(data: Path, directory: Path, pattern: str, damage: Damage) -> BrokerProcess:
    broker = BrokerProcess(directory, settings=SETTINGS)
    shutil.copytree(data, broker.data)
    files = sorted(path for path in broker.data.glob(pattern) if path.is_file())
    assert files, f"no file matches {pattern}: {sorted(path.name for path in broker.data.rglob('*'))}"
    for file in files:
        damage(file)
    return broker.start()


def complaints(broker: BrokerProcess) -> str:
    """What the log says at WARNING or above."""
    lines = broker.log_text().splitlines()
    return "\n".join(line for line in lines if any(level in line.upper() for level in ("WARN", "ERROR", "CRITICAL")))


def assert_works(broker: BrokerProcess) -> None:
    """New records can be written and read back."""
    partition = TopicPartition(TOPIC, 0)
    (found,) = admin_client(broker).list_offsets({partition: OffsetSpec.latest()}).values()
    end = found.result(TIMEOUT_S).offset
    client.produce(broker.bootstrap, TOPIC, [Sent(value=b"after", partition=0)])
    records = client.consume(broker.bootstrap, TOPIC, count_of(broker, end))
    assert records[-1].value == b"after"


def count_of(broker: BrokerProcess, end: int) -> int:
    """Records a reader gets: every offset but that of the marker."""
    return min(end, RECORDS + 1) + 1 if end else 1


@pytest.mark.parametrize("damage", [flip_bits, truncate, append_noise, overwrite_with_noise])
def test_a_damaged_log_is_cut_at_the_damage(tmp_path: Path, original: Original, damage: Damage) -> None:
    broker = start_on(original.killed, tmp_path, f"{TOPIC}-0/*.log", damage)
    try:
        told = complaints(broker)
        assert TOPIC in told
        (found,) = admin_client(broker).list_offsets({TopicPartition(TOPIC, 0): OffsetSpec.latest()}).values()
        end = found.result(TIMEOUT_S).offset
        expected = min(end, RECORDS)
        if expected:
            records = client.consume(broker.bootstrap, TOPIC, expected)[:expected]
            assert [record.key for record in records] == [b"%d" % n for n in range(expected)]
        assert (damage is append_noise) == (end >= RECORDS)
        assert_works(broker)
    finally:
        broker.stop()
    assert [problem for report in check_data_directory(broker.data) for problem in report.problems] == []


DAMAGE = (flip_bits, truncate, empty, overwrite_with_noise, append_noise)
CASES = [(suffix, "stopped", damage) for suffix in ("index", "timeindex", "txnindex", "snapshot") for damage in DAMAGE]
CASES += [(suffix, "killed", overwrite_with_noise) for suffix in ("index", "timeindex", "txnindex")]


@pytest.mark.parametrize("suffix,state,damage", CASES)
def test_a_damaged_index_or_snapshot_is_built_anew(
    tmp_path: Path, original: Original, suffix: str, state: str, damage: Damage
) -> None:
    data: Path = getattr(original, state)
    broker = start_on(data, tmp_path, f"{TOPIC}-0/*.{suffix}", damage)
    try:
        records = read_to_end(broker.bootstrap, TOPIC)
        assert [record.key for record in records][:RECORDS] == [b"%d" % n for n in range(RECORDS)]
        read_at_many_offsets(broker)
        find_by_many_times(broker, records[:RECORDS])
        client.produce(broker.bootstrap, TOPIC, [Sent(value=b"after", partition=0)], idempotent=True)
        # A broker that was stopped in good order trusts its files until it uses them, and then says what was wrong.
        # (A killed one builds them again without a look. Of a transaction or time index, not all damage can be seen.)
        if state == "stopped" and suffix in {"index", "snapshot"}:
            assert TOPIC in complaints(broker)
    finally:
        broker.stop()
    if suffix != "txnindex":
        assert [problem for report in check_data_directory(broker.data) for problem in report.problems] == []


@pytest.mark.parametrize("damage", [flip_bits, truncate, empty])
def test_a_killed_broker_hides_aborted_records_whatever_its_transaction_index_says(
    tmp_path: Path, original: Original, damage: Damage
) -> None:
    broker = start_on(original.killed, tmp_path, f"{TOPIC}-0/*.txnindex", damage)
    try:
        assert len(read_to_end(broker.bootstrap, TOPIC, isolation="read_committed")) == RECORDS
    finally:
        broker.stop()
    assert [problem for report in check_data_directory(broker.data) for problem in report.problems] == []


def read_at_many_offsets(broker: BrokerProcess) -> None:
    for offset in (0, 7, 133, 251, 399):
        assert read_one(broker, offset) == b"%d" % offset


def find_by_many_times(broker: BrokerProcess, records: list[Received]) -> None:
    """The first record with at least a time is found, though the index may have lied about where it is."""
    consumer = Consumer(consumer_config(broker.bootstrap, "times"))
    try:
        for wanted in records[:: RECORDS // 8]:
            partition = TopicPartition(TOPIC, 0, wanted.timestamp_ms)
            (found,) = consumer.offsets_for_times([partition], timeout=TIMEOUT_S)
            expected = next(record.offset for record in records if record.timestamp_ms >= wanted.timestamp_ms)
            assert found.offset == expected
    finally:
        consumer.close()


def read_one(broker: BrokerProcess, offset: int) -> bytes | None:
    consumer = Consumer(consumer_config(broker.bootstrap, "one"))
    consumer.assign([TopicPartition(TOPIC, 0, offset)])
    try:
        return poll_records(consumer, 1)[0].key
    finally:
        consumer.close()


CHECKPOINTS = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    f"{TOPIC}-0/leader-epoch-checkpoint",
    f"{TOPIC}-0/partition.metadata",
]


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("damage", [flip_bits_of_text, truncate, empty, overwrite_with_noise])
def test_a_damaged_checkpoint_is_told_and_costs_nothing(
    tmp_path: Path, original: Original, name: str, damage: Damage
) -> None:
    broker = start_on(original.stopped, tmp_path, name, damage)
    try:
        records = client.consume(broker.bootstrap, TOPIC, RECORDS)
        assert [record.key for record in records][:RECORDS] == [b"%d" % n for n in range(RECORDS)]
        client.produce(broker.bootstrap, TOPIC, [Sent(value=b"after", partition=0)])
        assert name.rpartition("/")[2] in complaints(broker)
    finally:
        broker.stop()
    assert [problem for report in check_data_directory(broker.data) for problem in report.problems] == []


def test_a_log_damaged_while_stopped_never_serves_a_wrong_record(tmp_path: Path, original: Original) -> None:
    """A clean stop is trusted, so the damage is only met by readers: they are told, and get nothing false."""
    broker = start_on(original.stopped, tmp_path, f"{TOPIC}-0/*.log", flip_bits)
    try:
        client.produce(broker.bootstrap, TOPIC, [Sent(value=b"after", partition=0)])
        assert read_one(broker, 0) == b"0"
    finally:
        broker.stop()


def test_the_last_metadata_record_may_be_torn(tmp_path: Path, original: Original) -> None:
    broker = start_on(original.killed, tmp_path, "__cluster_metadata-0/*.log", append_noise)
    try:
        assert len(client.consume(broker.bootstrap, TOPIC, RECORDS)) >= RECORDS
        assert "__cluster_metadata" in complaints(broker)
    finally:
        broker.stop()
