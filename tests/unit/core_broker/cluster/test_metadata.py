import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.cluster.metadata import MetadataDraft, MetadataImage, ResourceType
from core_broker.cluster.metadata_records import records_of
from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

EMPTY = MetadataImage(cluster_id="c")
TOPIC_ID = b"t" * 16


def replay(image: MetadataImage, *records: Message) -> MetadataImage:
    draft = MetadataDraft(image)
    draft.replay(records)
    return draft.finish(offset=image.offset + len(records), epoch=1)


def with_topic() -> MetadataImage:
    partition = PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=3, partition_epoch=7
    )
    return replay(EMPTY, TopicRecord(name="t", topic_id=TOPIC_ID), partition)


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = with_topic()
    assert image.topics["t"] is image.topics_by_id[TOPIC_ID]
    assert image.topics["t"].partitions[0].replicas == (1, 2)


def test_a_published_image_never_changes() -> None:
    before = with_topic()
    replay(before, PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1]), RemoveTopicRecord(TOPIC_ID))
    replay(before, ConfigRecord(2, "t", "retention.ms", "1"))
    assert before.topics["t"].partitions[0].isr == (1, 2)
    assert before.topics_by_id.keys() == {TOPIC_ID}
    assert before.configs == {}


def test_what_records_do_not_touch_is_shared_with_the_image_before() -> None:
    before = with_topic()
    after = replay(before, ProducerIdsRecord(1, 1, 1000))
    assert after.topics is before.topics
    assert after.next_producer_id == 1000


def test_naming_a_leader_raises_both_epochs() -> None:
    image = replay(with_topic(), PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=2))
    partition = image.topics["t"].partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.partition_epoch) == (2, 4, 8)


def test_a_smaller_isr_keeps_the_leader_epoch() -> None:
    image = replay(with_topic(), PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1]))
    partition = image.topics["t"].partitions[0]
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1,), 3, 8)


def test_removing_a_topic_removes_its_configs() -> None:
    image = replay(with_topic(), ConfigRecord(ResourceType.TOPIC, "t", "retention.ms", "1"))
    image = replay(image, RemoveTopicRecord(TOPIC_ID))
    assert (image.topics, image.topics_by_id, image.configs) == ({}, {}, {})


def test_a_null_config_goes_back_to_the_default() -> None:
    image = replay(
        EMPTY, ConfigRecord(2, "t", "a", "1"), ConfigRecord(2, "t", "b", "2"), ConfigRecord(2, "t", "a", None)
    )
    assert image.config_of(2, "t") == {"b": "2"}
    assert replay(image, ConfigRecord(2, "t", "b", None)).configs == {}


def test_clearing_elr_of_a_topic_empties_its_eligible_replicas() -> None:
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1], eligible_leader_replicas=[2])
    image = replay(with_topic(), change)
    assert image.topics["t"].partitions[0].elr == (2,)
    assert replay(image, ClearElrRecord("t")).topics["t"].partitions[0].elr == ()


def test_records_of_an_unknown_topic_are_passed_over() -> None:
    stranger = b"x" * 16
    records = [PartitionRecord(0, stranger), PartitionChangeRecord(0, stranger), RemoveTopicRecord(stranger)]
    assert replay(with_topic(), *records).topics == with_topic().topics


def test_a_broker_is_live_once_it_is_unfenced_and_until_it_is_fenced() -> None:
    endpoint = BrokerEndpoint("PLAINTEXT", "h", 9092)
    image = replay(EMPTY, RegisterBrokerRecord(broker_id=1, broker_epoch=5, end_points=[endpoint], rack=None))
    assert image.live_brokers() == []
    image = replay(image, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1))
    assert [broker.broker_id for broker in image.live_brokers()] == [1]
    found = image.brokers[1].endpoint("PLAINTEXT")
    assert found is not None
    assert (found.host, found.port) == ("h", 9092)
    assert replay(image, FenceBrokerRecord(id=1, epoch=5)).live_brokers() == []
    assert replay(image, UnregisterBrokerRecord(1, 5)).brokers == {}


topics = st.sampled_from([bytes([n]) * 16 for n in range(1, 5)])
records = st.one_of(
    st.builds(lambda i: TopicRecord(f"topic-{i[0]}", i), topics),
    st.builds(RemoveTopicRecord, topics),
    st.builds(
        lambda index, topic, replicas, epoch: PartitionRecord(
            index, topic, replicas, replicas, leader=replicas[0], leader_epoch=epoch, partition_epoch=epoch
        ),
        st.integers(0, 3),
        topics,
        st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True),
        st.integers(0, 9),
    ),
    st.builds(
        PartitionChangeRecord,
        st.integers(0, 3),
        topics,
        isr=st.none() | st.lists(st.integers(1, 3)),
        leader=st.sampled_from([-2, -1, 1]),
        eligible_leader_replicas=st.none() | st.lists(st.integers(1, 3)),
    ),
    st.builds(
        ConfigRecord,
        st.sampled_from([2, 4]),
        st.sampled_from(["topic-1", "1", ""]),
        st.sampled_from(["a", "b"]),
        st.none() | st.sampled_from(["1", "2"]),
    ),
    st.builds(FeatureLevelRecord, st.sampled_from(["group.version", "metadata.version"]), st.integers(0, 3)),
    st.builds(
        RegisterBrokerRecord,
        broker_id=st.integers(1, 3),
        broker_epoch=st.integers(0, 99),
        rack=st.none() | st.just("r"),
        fenced=st.booleans(),
    ),
    st.builds(ProducerIdsRecord, st.just(1), st.just(1), st.integers(0, 10_000)),
)


@given(st.lists(records, max_size=40))
def test_an_image_written_as_records_replays_to_itself(history: list[Message]) -> None:
    image = replay(EMPTY, *history)
    again = MetadataDraft(EMPTY)
    again.replay(records_of(image))
    assert again.finish(offset=image.offset, epoch=image.epoch) == image


@pytest.mark.parametrize("value", ["2", None])
def test_a_topic_deleted_and_made_again_with_configs_can_be_replayed(value: str | None) -> None:
    first, second = bytes([1] * 16), bytes([2] * 16)
    image = replay(
        EMPTY,
        TopicRecord("orders", first),
        ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1"),
        RemoveTopicRecord(first),
        TopicRecord("orders", second),
        ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", value),
    )
    assert image.config_of(ResourceType.TOPIC, "orders") == ({"retention.ms": value} if value else {})
    assert image.topics["orders"].topic_id == second


@given(st.lists(records, max_size=40), st.integers(0, 40))
def test_replaying_in_two_batches_gives_the_same_as_in_one(history: list[Message], cut: int) -> None:
    assert replay(replay(EMPTY, *history[:cut]), *history[cut:]) == replay(EMPTY, *history)
