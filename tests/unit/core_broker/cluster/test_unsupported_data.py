"""Data that this broker does not support is refused before a file is changed."""

from pathlib import Path

import pytest

from core_broker.broker import broker
from core_broker.cluster import snapshots
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.metadata_log import METADATA_DIRECTORY
from core_broker.cluster.metadata_records import encode_record
from core_broker.cluster.unsupported_data import refuse_unsupported_data
from core_broker.errors import BrokerError
from core_broker.protocol.fields import Message
from core_broker.protocol.records import Record, build_batch
from core_broker.protocol.stored import metadata as stored
from core_broker.protocol.stored.control import KRaftVersionRecord
from core_broker.settings import BrokerSettings

LEVEL = stored.FeatureLevelRecord("metadata.version", 25)
SHARE = stored.FeatureLevelRecord("share.version", 1)
TIERED = [
    stored.TopicRecord("old", b"t" * 16),
    stored.PartitionRecord(0, b"t" * 16, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0),
    stored.ConfigRecord(resource_type=2, resource_name="old", name="remote.storage.enable", value="true"),
]


def settings_of(path: Path, **more: str) -> BrokerSettings:
    return BrokerSettings.parse({"log.dirs": str(path), "node.id": "1", **more})


def write_log(path: Path, *values: bytes, offset: int = 0) -> None:
    """A metadata log with these records, as a folder of Kafka has it."""
    directory = path / METADATA_DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    batch = build_batch([Record(value=value) for value in values], base_offset=offset, leader_epoch=1)
    (directory / f"{offset:020}.log").write_bytes(batch)
    (path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAaQ\n")
    (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')


def encoded(*records: Message) -> list[bytes]:
    return [encode_record(record, 30) for record in records]


def content(path: Path) -> dict[Path, bytes]:
    return {found: found.read_bytes() for found in path.rglob("*") if found.is_file()}


@pytest.mark.parametrize(
    "values, message",
    [
        (encoded(LEVEL, SHARE), r"share.version=1.*downgrade --feature share.version=0"),
        (
            encoded(stored.FeatureLevelRecord("metadata.version", 31)),
            r"metadata.version=31.*downgrade --feature metadata.version=30",
        ),
        (encoded(stored.FeatureLevelRecord("metadata.version", 6)), r"upgrade --feature metadata.version=30"),
        (encoded(LEVEL, *TIERED), r"tiered storage is not supported, but remote.storage.enable=true for old"),
        ([b"\x01\x7f\x00"], r"type 127 are not supported"),
        ([b"\x01\x02\x09\x00"], r"TopicRecord has version 9"),
    ],
)
async def test_broker_refuses_unsupported_metadata_and_changes_nothing(
    tmp_path: Path, values: list[bytes], message: str
) -> None:
    write_log(tmp_path, *values)
    before = content(tmp_path)
    with pytest.raises(BrokerError, match=message):
        async with broker(settings_of(tmp_path)):
            pass
    assert content(tmp_path) == before


def test_feature_that_was_disabled_again_is_no_obstacle(tmp_path: Path) -> None:
    write_log(tmp_path, *encoded(LEVEL, SHARE, stored.FeatureLevelRecord("share.version", 0)))
    refuse_unsupported_data(settings_of(tmp_path))


def test_record_below_the_newest_snapshot_is_no_obstacle(tmp_path: Path) -> None:
    write_log(tmp_path, b"\x01\x7f\x00")
    image = MetadataDraft(MetadataImage(cluster_id="abc")).finish(offset=0, epoch=1)
    snapshots.write_snapshot(tmp_path / METADATA_DIRECTORY, image, voters=None, timestamp_ms=0)
    refuse_unsupported_data(settings_of(tmp_path))


def test_snapshot_of_newer_software_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path, *encoded(LEVEL))
    draft = MetadataDraft(MetadataImage(cluster_id="abc"))
    draft.apply(SHARE)
    image = draft.finish(offset=7, epoch=1)
    snapshots.write_snapshot(tmp_path / METADATA_DIRECTORY, image, voters=None, timestamp_ms=0)
    with pytest.raises(BrokerError, match="share.version=1"):
        refuse_unsupported_data(settings_of(tmp_path))


def test_damage_is_left_to_the_start(tmp_path: Path) -> None:
    write_log(tmp_path, *encoded(LEVEL, SHARE))
    path = tmp_path / METADATA_DIRECTORY / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    (path.parent / "quorum-state").write_text("{")
    (path.parent / f"{1:020}-{1:010}.checkpoint").write_bytes(b"torn")
    refuse_unsupported_data(settings_of(tmp_path))


def test_tiered_topic_of_other_brokers_is_no_obstacle_for_a_broker(tmp_path: Path) -> None:
    write_log(tmp_path, *encoded(LEVEL, *TIERED))
    (tmp_path / "meta.properties").unlink()
    more = {"node.id": "4", "process.roles": "broker", "controller.quorum.bootstrap.servers": "localhost:9093"}
    refuse_unsupported_data(settings_of(tmp_path, **more))


def test_quorum_of_newer_software_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path, *encoded(LEVEL))
    (tmp_path / METADATA_DIRECTORY / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":3,"data_version":2}')
    with pytest.raises(BrokerError, match="data_version 2"):
        refuse_unsupported_data(settings_of(tmp_path))


def test_kraft_version_of_newer_software_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path, *encoded(LEVEL))
    body = snapshots.control_record(snapshots.CONTROL_KRAFT_VERSION, KRaftVersionRecord(0, 2), timestamp_ms=0)
    path = tmp_path / METADATA_DIRECTORY / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + build_batch([body], base_offset=1, is_control=True))
    with pytest.raises(BrokerError, match=r"kraft.version above 1"):
        refuse_unsupported_data(settings_of(tmp_path))


def test_records_from_before_kafka_0_11_are_refused_instead_of_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "ancient-3" / f"{0:020}.log"
    log.parent.mkdir()
    log.write_bytes((0).to_bytes(8, "big") + (14).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(9))
    (tmp_path / "new-0").mkdir()
    (tmp_path / "new-0" / f"{0:020}.log").write_bytes(build_batch([Record(value=b"v")]))
    with pytest.raises(BrokerError, match=r"before Kafka 0.11.*ancient-3;"):
        refuse_unsupported_data(settings_of(tmp_path))
