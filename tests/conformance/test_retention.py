"""What becomes of old records: deleted by age and size, compacted by key."""

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType

from core_broker.service.clock import SystemClock
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import TIMEOUT_S, Sent

client = ConfluentClient()


def earliest(broker: BrokerProcess, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    (found,) = admin_client(broker).list_offsets({partition: OffsetSpec.earliest()}).values()
    offset: int = found.result(TIMEOUT_S).offset
    return offset


def test_records_older_than_the_retention_time_go(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.ms": "60000", "segment.ms": "300000"})
    hour_ago = SystemClock().now_ms() - 3_600_000
    old = [Sent(value=b"old", timestamp_ms=hour_ago, partition=0) for _ in range(3)]
    client.produce(broker.bootstrap, name, old)
    client.produce(broker.bootstrap, name, [Sent(value=b"new", partition=0)])
    eventually(lambda: earliest(broker, name), lambda offset: offset == 3)
    (record,) = client.consume(broker.bootstrap, name, 1)
    assert (record.offset, record.value) == (3, b"new")


def test_segments_over_the_retention_size_go(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs={"retention.bytes": "2097152", "segment.bytes": "1048576"})
    value = b"x" * 100_000
    for _ in range(6):
        client.produce(broker.bootstrap, name, [Sent(value=value, partition=0) for _ in range(10)])
    kept = eventually(lambda: earliest(broker, name), lambda offset: offset > 20)
    assert client.consume(broker.bootstrap, name, 60 - kept)[0].offset == kept


def compacting(**extra: str) -> dict[str, str]:
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    }
    return {**configs, **{key.replace("_", "."): value for key, value in extra.items()}}


def keep_rolling(broker: BrokerProcess, topic: str) -> None:
    """The active segment is never compacted: write something so that it rolls."""
    client.produce(broker.bootstrap, topic, [Sent(key=b"roll", value=b"roll", partition=0)])


def values_by_key(broker: BrokerProcess, topic: str) -> dict[bytes | None, list[bytes | None]]:
    keep_rolling(broker, topic)
    found: dict[bytes | None, list[bytes | None]] = {}
    for record in read_to_end(broker.bootstrap, topic):
        found.setdefault(record.key, []).append(record.value)
    return found


def test_compaction_keeps_the_last_value_of_each_key(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=compacting())
    for round_number in range(5):
        records = [Sent(key=b"k%d" % n, value=b"%d" % round_number, partition=0) for n in range(10)]
        client.produce(broker.bootstrap, name, records, codec="lz4" if round_number % 2 else "none")
    found = eventually(
        lambda: values_by_key(broker, name), lambda found: all(len(found[b"k%d" % n]) == 1 for n in range(10))
    )
    assert {key: found[key] for key in found if key and key.startswith(b"k")} == {b"k%d" % n: [b"4"] for n in range(10)}


def test_compaction_never_changes_offsets(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=compacting())
    for number in range(20):
        client.produce(broker.bootstrap, name, [Sent(key=b"k%d" % (number % 4), value=b"%d" % number, partition=0)])
    eventually(lambda: values_by_key(broker, name), lambda found: all(len(found[b"k%d" % n]) == 1 for n in range(4)))
    for record in read_to_end(broker.bootstrap, name):
        if record.offset < 20:
            assert record.value == b"%d" % record.offset


def test_a_tombstone_removes_its_key_and_then_itself(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=compacting())
    client.produce(broker.bootstrap, name, [Sent(key=b"gone", value=b"v", partition=0)])
    client.produce(broker.bootstrap, name, [Sent(key=b"stays", value=b"v", partition=0)])
    client.produce(broker.bootstrap, name, [Sent(key=b"gone", value=None, partition=0)])
    found = eventually(lambda: values_by_key(broker, name), lambda found: b"gone" not in found)
    assert found[b"stays"] == [b"v"]


def test_a_tombstone_is_kept_for_its_retention_time(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, configs=compacting(delete_retention_ms="3600000"))
    client.produce(broker.bootstrap, name, [Sent(key=b"gone", value=b"v", partition=0)])
    client.produce(broker.bootstrap, name, [Sent(key=b"gone", value=None, partition=0)])
    eventually(lambda: values_by_key(broker, name), lambda found: found[b"gone"] == [None])


def test_both_policies_together(broker: BrokerProcess, name: str) -> None:
    uncompacted_at_first = {"cleanup_policy": "compact,delete", "retention_ms": "600000"}
    create_topic(broker, name, configs=compacting(**uncompacted_at_first, min_cleanable_dirty_ratio="1"))
    hour_ago = SystemClock().now_ms() - 3_600_000
    client.produce(broker.bootstrap, name, [Sent(key=b"old", value=b"v", timestamp_ms=hour_ago, partition=0)])
    for number in range(3):
        client.produce(broker.bootstrap, name, [Sent(key=b"k", value=b"%d" % number, partition=0)])
    eventually(lambda: values_by_key(broker, name), lambda found: b"old" not in found)
    alter(broker, name, {"min.cleanable.dirty.ratio": "0.01"})
    eventually(lambda: values_by_key(broker, name), lambda found: found.get(b"k") == [b"2"])


def test_a_topic_can_be_turned_into_a_compacted_one(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    for number in range(5):
        client.produce(broker.bootstrap, name, [Sent(key=b"k", value=b"%d" % number, partition=0)])
    alter(broker, name, compacting())
    eventually(lambda: values_by_key(broker, name), lambda found: found[b"k"] == [b"4"])


def alter(broker: BrokerProcess, topic: str, configs: dict[str, str]) -> None:
    changes = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    (done,) = admin_client(broker).incremental_alter_configs([resource]).values()
    done.result(TIMEOUT_S)
