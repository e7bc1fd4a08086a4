"""Partitions move between two folders of log.dirs under load, and the broker is killed while they do."""

import random
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaAdminClient

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import read_to_end
from tests.support.clients.model import TIMEOUT_S
from tests.support.load import PARTITIONS, IdempotentLoad
from tests.support.log_check import PartitionReport, check_data_directory

KILLS = 12
SEED = 20_27
TOPIC = "plain"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SLOW, FAST = "200000", "1000000000"
SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.index.interval.bytes": "512",
    RATE: SLOW,
    "log.segment.delete.delay.ms": "0",
}
"""Slow enough for kills to hit moves at all stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What the producers were promised, what a reader found, and what stands in the files."""

    loads: list[IdempotentLoad]
    values: dict[int, list[tuple[int, bytes]]]
    places: dict[str, list[str]]
    reports: list[PartitionReport]
    moved_under_load: int
    interrupted: int


def request_moves(broker: BrokerProcess, folder: Path) -> None:
    """Ask for all partitions to go to one of the folders."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        wanted = {(TOPIC, partition, 1): str(folder) for partition in range(PARTITIONS)}
        admin.alter_replica_log_dirs(wanted)
    finally:
        admin.close()


def set_rate(broker: BrokerProcess, bytes_per_second: str) -> None:
    """Change how fast partitions are copied."""
    change = ConfigEntry(RATE, bytes_per_second, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[change])
    (done,) = admin_client(broker).incremental_alter_configs([resource]).values()
    done.result(TIMEOUT_S)


def places(folders: list[Path]) -> dict[str, list[str]]:
    """The folders of the topic's partitions, copies included, in each folder of log.dirs."""
    return {
        folder.name: sorted(
            path.name for path in folder.glob(f"{TOPIC}-*") if path.is_dir() and not path.name.endswith("-delete")
        )
        for folder in folders
    }


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    directory = tmp_path_factory.mktemp("moves")
    folders = [directory / "a", directory / "b"]
    broker = BrokerProcess(directory, settings={**SETTINGS, "log.dirs": ",".join(map(str, folders))}).start()
    everything = [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
    chance = random.Random(SEED)
    try:
        create_topic(broker, TOPIC, partitions=PARTITIONS)
        loads = [IdempotentLoad(broker.bootstrap, TOPIC, f"load-{n}") for n in range(2)]
        moved = interrupted = 0
        with ExitStack() as stack:
            for load in loads:
                stack.enter_context(load)
            for kill in range(KILLS):
                before = [load.progress for load in loads]
                eventually(
                    lambda: [load.progress for load in loads],
                    lambda now: all(new > old + 100 for new, old in zip(now, before, strict=True)),  # noqa: B023
                    pause_s=0.01,
                )
                request_moves(broker, folders[kill % 2])
                if kill % 4 == 3:
                    set_rate(broker, FAST)
                    there = folders[kill % 2]
                    eventually(lambda: places(folders)[there.name], lambda names: names == everything)  # noqa: B023
                    set_rate(broker, SLOW)
                    moved += 1
                else:
                    time.sleep(chance.uniform(0, 0.3))
                broker.kill()
                interrupted += any(name.endswith("-future") for names in places(folders).values() for name in names)
                broker.start()
            set_rate(broker, FAST)
            request_moves(broker, folders[1])
            eventually(lambda: places(folders), lambda found: found == {"a": [], "b": everything})
        values: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for record in read_to_end(broker.bootstrap, TOPIC):
            values[record.partition].append((record.offset, record.value or b""))
        broker.stop()
        yield Aftermath(
            loads=loads,
            values=values,
            places=places(folders),
            reports=[report for folder in folders for report in check_data_directory(folder)],
            moved_under_load=moved,
            interrupted=interrupted,
        )
    finally:
        broker.kill()


@pytest.mark.timeout(300)
def test_every_load_got_on_and_partitions_were_moved_under_it(aftermath: Aftermath) -> None:
    assert [failure for load in aftermath.loads for failure in load.failures] == []
    assert aftermath.moved_under_load == KILLS // 4
    assert aftermath.interrupted > 0


def test_no_acknowledged_record_is_lost_doubled_or_out_of_order(aftermath: Aftermath) -> None:
    for load in aftermath.loads:
        for partition in range(PARTITIONS):
            texts = (value.split(b":") for _, value in aftermath.values[partition])
            found = [int(parts[1]) for parts in texts if parts[0] == load.label.encode()]
            assert found == list(range(load.sent[partition]))


def test_offsets_have_no_gap(aftermath: Aftermath) -> None:
    for found in aftermath.values.values():
        assert [offset for offset, _ in found] == list(range(len(found)))


def test_every_partition_is_in_one_folder_and_sound(aftermath: Aftermath) -> None:
    assert aftermath.places == {"a": [], "b": [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]}
    assert [problem for report in aftermath.reports for problem in report.problems] == []
