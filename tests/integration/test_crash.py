"""Killed again and again under load: nothing acknowledged is lost, doubled or reordered, no transaction is torn.

`make test` kills the broker 20 times at least, `make test-all` 50 times, too.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import read_to_end
from tests.support.clients.model import Received
from tests.support.load import PARTITIONS, CommitLoad, IdempotentLoad, Load, TransactionalLoad
from tests.support.log_check import PartitionReport, check_data_directory

SEED = 20_26
SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.index.interval.bytes": "512",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "300",
}
"""Small segments and eager checkpoints, so that kills hit rolls and half-written files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What the producers were promised, what readers found, and what stands in the files."""

    idempotent: list[IdempotentLoad]
    transactional: list[TransactionalLoad]
    commits: CommitLoad
    committed_offset: int
    plain: dict[int, list[Received]]
    committed: dict[int, list[Received]]
    reports: list[PartitionReport]
    kills_wanted: int
    kills: int


@pytest.fixture(
    scope="module", params=[20, pytest.param(50, marks=pytest.mark.slow)], ids=lambda kills: f"{kills} kills"
)
def aftermath(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    directory = tmp_path_factory.mktemp("crash")
    broker = BrokerProcess(directory, settings=SETTINGS).start()
    try:
        create_topic(broker, "plain", partitions=PARTITIONS)
        create_topic(broker, "transactions", partitions=PARTITIONS)
        idempotent = [IdempotentLoad(broker.bootstrap, "plain", f"idempotent-{n}") for n in range(2)]
        transactional = [
            TransactionalLoad(broker.bootstrap, "transactions", f"transactional-{n}", seed=n) for n in range(2)
        ]
        commits = CommitLoad(broker.bootstrap, "plain", "commits")
        with ExitStack() as stack:
            loads: list[Load] = [*idempotent, *transactional, commits]
            for load in loads:
                stack.enter_context(load)
            kills = kill_repeatedly(broker, loads, request.param)
        committed_offset = commits.committed()
        plain = read(broker, "plain", "read_uncommitted")
        committed = read(broker, "transactions", "read_committed")
        broker.stop()
        yield Aftermath(
            idempotent=idempotent,
            transactional=transactional,
            commits=commits,
            committed_offset=committed_offset,
            plain=plain,
            committed=committed,
            reports=check_data_directory(broker.data),
            kills_wanted=request.param,
            kills=kills,
        )
    finally:
        broker.kill()


def kill_repeatedly(broker: BrokerProcess, loads: list[Load], wanted: int) -> int:
    """Kill the broker at random moments, once in a while also while it starts; every load moves on in between."""
    chance = random.Random(SEED)
    kills = 0
    while kills < wanted:
        before = [load.progress for load in loads]
        eventually(
            lambda: [load.progress for load in loads],
            lambda now: all(new > old for new, old in zip(now, before, strict=True)),  # noqa: B023
            timeout_s=60,
            pause_s=0.01,
        )
        time.sleep(chance.uniform(0, 0.15))
        broker.kill()
        kills += 1
        if chance.random() < 0.2:
            broker.launch()
            time.sleep(chance.uniform(0, 0.4))
            broker.kill()
            kills += 1
        broker.start()
    return kills


def read(broker: BrokerProcess, topic: str, isolation: str) -> dict[int, list[Received]]:
    """All records of each partition."""
    by_partition: dict[int, list[Received]] = defaultdict(list)
    for record in read_to_end(broker.bootstrap, topic, isolation=isolation):
        by_partition[record.partition].append(record)
    return by_partition


def numbers(records: list[Received], label: str) -> list[int]:
    """The numbers a producer wrote, in the order they stand."""
    texts = ((record.value or b"").split(b":") for record in records)
    return [int(parts[1]) for parts in texts if parts[0] == label.encode()]


@pytest.mark.timeout(400)
def test_the_broker_was_killed_often_enough_and_every_load_got_on(aftermath: Aftermath) -> None:
    loads: list[Load] = [*aftermath.idempotent, *aftermath.transactional, aftermath.commits]
    assert aftermath.kills >= aftermath.kills_wanted
    assert [failure for load in loads for failure in load.failures] == []
    assert all(load.progress > aftermath.kills for load in loads)


def test_no_acknowledged_record_is_lost_and_none_is_doubled_or_out_of_order(aftermath: Aftermath) -> None:
    for load in aftermath.idempotent:
        for partition in range(PARTITIONS):
            assert numbers(aftermath.plain[partition], load.label) == list(range(load.sent[partition]))


def test_every_record_stands_at_the_offset_it_was_acknowledged_with(aftermath: Aftermath) -> None:
    for load in aftermath.idempotent:
        for partition, acknowledged in load.acknowledged.items():
            found = {}
            for record in aftermath.plain[partition]:
                parts = (record.value or b"").split(b":")
                if parts[0] == load.label.encode():
                    found[int(parts[1])] = record.offset
            # A retried batch may be acknowledged without its offset (-1001 to librdkafka), but never with a wrong one.
            wrong = {n: o for n, o in acknowledged.items() if o >= 0 and found.get(n) != o}
            assert wrong == {}


def test_committed_transactions_are_whole_and_aborted_ones_invisible(aftermath: Aftermath) -> None:
    for load in aftermath.transactional:
        seen: dict[int, Counter[int]] = defaultdict(Counter)
        for partition in range(PARTITIONS):
            for number in numbers(aftermath.committed[partition], load.label):
                seen[number][partition] += 1
        whole = Counter(dict.fromkeys(range(PARTITIONS), 2))
        assert {number for number in load.outcomes.committed if seen.get(number) != whole} == set()
        assert load.outcomes.aborted & set(seen) == set()
        assert {number for number in seen if seen[number] != whole} == set()


def test_transactions_of_a_producer_keep_their_order(aftermath: Aftermath) -> None:
    for load in aftermath.transactional:
        for partition in range(PARTITIONS):
            found = numbers(aftermath.committed[partition], load.label)
            assert found == sorted(found)


def test_no_acknowledged_commit_of_a_group_is_lost(aftermath: Aftermath) -> None:
    assert aftermath.commits.acknowledged <= aftermath.committed_offset <= aftermath.commits.attempted


def test_every_index_agrees_with_its_log(aftermath: Aftermath) -> None:
    assert [problem for report in aftermath.reports for problem in report.problems] == []
    written = [report for report in aftermath.reports if report.directory.name.startswith(("plain-", "transactions-"))]
    assert len(written) == 2 * PARTITIONS
    assert all(report.index_entries and report.time_entries for report in written)
    assert any(report.segments > 1 for report in written)
    assert any(report.aborted_entries for report in written)


def test_the_internal_topics_survived_too(aftermath: Aftermath) -> None:
    names = {report.directory.name.rpartition("-")[0] for report in aftermath.reports}
    assert {"__transaction_state", "__consumer_offsets", "__cluster_metadata"} <= names


def test_no_part_of_the_data_was_left_half_done(aftermath: Aftermath) -> None:
    left: list[Path] = []
    for report in aftermath.reports:
        left += [path for path in report.directory.iterdir() if path.suffix in {".cleaned", ".swap", ".tmp"}]
    assert left == []
