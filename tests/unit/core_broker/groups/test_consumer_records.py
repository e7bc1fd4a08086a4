"""The records of a KIP-848 group: Kafka's bytes, and the way back."""

import msgspec

from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_member import ConsumerMember, MemberState
from core_broker.groups.consumer_records import Changes, records_of, replay_into, tombstones_of
from core_broker.groups.group import StoredRecord
from core_broker.groups.records import decode_record
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.stored import groups as stored
from tests.support.consumer_group_world import Client, topic_id, topics

LIMITS = ConsumerGroupLimits()
FOUR = topics(t=4)


def written(group: ConsumerGroup) -> list[tuple[Message, Message | None]]:
    """What the group has to store now, decoded."""
    changes, group.changes = group.changes, Changes()
    return decoded(records_of(group, changes, 1234))


def decoded(records: list[StoredRecord]) -> list[tuple[Message, Message | None]]:
    found = [decode_record(key, value) for key, value in records]
    assert None not in found
    return [record for record in found if record is not None]


def kinds(records: list[tuple[Message, Message | None]]) -> list[tuple[int | None, bool]]:
    """Key types, and whether the record deletes."""
    return [(key.API_KEY, value is None) for key, value in records]


def test_first_join_stores_member_epoch_target_and_assignment_in_the_order_kafka_replays_them() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m").join(group, FOUR, client_id="c", client_host="h")
    records = written(group)
    assert kinds(records) == [(5, False), (3, False), (7, False), (6, False), (8, False)]
    member, epoch, target, target_epoch, current = (value for _, value in records)
    assert isinstance(member, stored.ConsumerGroupMemberMetadataValue)
    assert (member.client_id, member.client_host, member.subscribed_topic_names) == ("c", "h", ["t"])
    assert (member.instance_id, member.rebalance_timeout_ms, member.server_assignor) == (None, 60_000, None)
    assert epoch == stored.ConsumerGroupMetadataValue(epoch=1, metadata_hash=group.metadata_hash)
    assert target == stored.ConsumerGroupTargetAssignmentMemberValue(
        [stored.TopicPartition(topic_id("t"), [0, 1, 2, 3])]
    )
    assert target_epoch == stored.ConsumerGroupTargetAssignmentMetadataValue(1, assignment_timestamp=1234)
    assert isinstance(current, stored.ConsumerGroupCurrentMemberAssignmentValue)
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (1, 0, 0)
    assert [(t.topic_id, t.partitions) for t in current.assigned_partitions] == [(topic_id("t"), [0, 1, 2, 3])]


def test_keys_are_those_of_kafka() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m").join(group, FOUR)
    keys = [key for key, _ in records_of(group, group.changes, 0)]
    assert keys == [
        b"\x00\x05\x00\x01g\x00\x01m",
        b"\x00\x03\x00\x01g",
        b"\x00\x07\x00\x01g\x00\x01m",
        b"\x00\x06\x00\x01g",
        b"\x00\x08\x00\x01g\x00\x01m",
    ]


def test_heartbeat_without_news_stores_nothing() -> None:
    group = ConsumerGroup("g", LIMITS)
    client = Client("m")
    client.join(group, FOUR)
    written(group)
    client.beat(group, FOUR)
    assert written(group) == []


def test_member_that_leaves_is_deleted_after_what_belongs_to_it() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m").join(group, FOUR)
    written(group)
    group.leave("m", None, -1)
    assert kinds(written(group)) == [(8, True), (7, True), (5, True), (3, False)]


def test_static_leave_stores_epoch_minus_two() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m", instance_id="i").join(group, FOUR)
    written(group)
    group.leave("m", "i", -2)
    ((_, value),) = written(group)
    assert isinstance(value, stored.ConsumerGroupCurrentMemberAssignmentValue)
    assert value.member_epoch == -2


def test_expression_is_stored_with_its_topics_and_deleted_with_its_last_reader() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m", names=frozenset(), expression="t.*").join(group, topics(t=1, tt=1, x=1))
    stored_expressions = [record for record in written(group) if record[0].API_KEY == 16]
    assert stored_expressions == [
        (
            stored.ConsumerGroupRegularExpressionKey("g", "t.*"),
            stored.ConsumerGroupRegularExpressionValue(["t", "tt"], timestamp=1234),
        )
    ]
    group.leave("m", None, -1)
    assert (stored.ConsumerGroupRegularExpressionKey("g", "t.*"), None) in written(group)


def test_tombstones_of_an_empty_group_end_with_the_group_itself() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m").join(group, FOUR)
    group.leave("m", None, -1)
    assert kinds(decoded(tombstones_of(group, Changes()))) == [(6, True), (3, True)]


def test_tombstones_of_a_group_with_members_delete_them_first() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m", expression=".*").join(group, FOUR)
    assert kinds(decoded(group.tombstones())) == [(8, True), (7, True), (5, True), (16, True), (6, True), (3, True)]


def test_group_is_the_same_after_replay() -> None:
    group = ConsumerGroup("g", LIMITS)
    one, two = Client("one", instance_id="i"), Client("two", expression="t|u")
    one.join(group, FOUR, server_assignor="range", rack_id="r")
    one.confirm(group, FOUR)
    two.join(group, topics(t=4, u=2))
    one.beat(group, topics(t=4, u=2))
    assert group.members["one"].state is MemberState.UNREVOKED_PARTITIONS
    copy = ConsumerGroup("g", LIMITS)
    for key, value in written(group):
        replay_into(copy, key, value)
    assert copy.members == group.members
    assert copy.targets == group.targets
    assert copy.subscriptions.resolved == group.subscriptions.resolved
    assert (copy.epoch, copy.target_epoch, copy.metadata_hash) == (group.epoch, group.target_epoch, group.metadata_hash)
    assert all(copy.owners.owner_of(topic_id("t"), number) == "one" for number in range(4))


def test_deleted_assignment_sets_a_member_back_to_the_beginning() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m").join(group, FOUR)
    replay_into(group, stored.ConsumerGroupCurrentMemberAssignmentKey("g", "m"), None)
    assert (group.members["m"].epoch, group.members["m"].assigned) == (0, {})
    assert group.owners.owner_of(topic_id("t"), 0) is None


def test_replay_may_see_the_assignment_of_a_member_before_its_description() -> None:
    value = stored.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=3)
    group = ConsumerGroup("g", LIMITS)
    replay_into(group, stored.ConsumerGroupCurrentMemberAssignmentKey("g", "m"), value)
    replay_into(
        group,
        stored.ConsumerGroupMemberMetadataKey("g", "m"),
        stored.ConsumerGroupMemberMetadataValue(client_id="c", instance_id=None),
    )
    assert (group.members["m"].epoch, group.members["m"].client_id) == (3, "c")


def test_partition_metadata_of_older_brokers_is_ignored() -> None:
    group = ConsumerGroup("g", LIMITS)
    replay_into(group, stored.ConsumerGroupPartitionMetadataKey("g"), stored.ConsumerGroupPartitionMetadataValue())
    replay_into(group, stored.ConsumerGroupPartitionMetadataKey("g"), None)
    assert group.is_empty


def test_many_changes_are_cut_into_batches_that_together_say_the_same() -> None:
    group = ConsumerGroup("g", LIMITS)
    for number in range(7):
        group.put_member(ConsumerMember(member_id=f"m{number}", epoch=1))
        group.put_target(f"m{number}", {topic_id("t"): frozenset({number})})
    group.changes.epoch = group.changes.target_epoch = True
    whole = dict(records_of(group, group.changes, 0))
    parts = list(group.changes.in_batches(3))
    cut = [records_of(group, part, 0) for part in parts]
    assert {key: value for part in cut for key, value in part} == whole
    assert len(cut) == 5
    assert cut[-1][0][0] == b"\x00\x06\x00\x01g", "the target is whole before its epoch says so"
    assert list(msgspec.structs.replace(group.changes).in_batches(7)) == [group.changes]


def test_tombstones_include_members_whose_end_was_not_stored() -> None:
    group = ConsumerGroup("g", LIMITS)
    Client("m").join(group, FOUR)
    group.leave("m", None, -1)
    ended = [(8, True), (7, True), (5, True), (6, True), (3, True)]
    assert kinds(decoded(group.tombstones())) == ended


def test_classic_group_that_was_replaced_is_deleted_first() -> None:
    group = ConsumerGroup("g", LIMITS)
    records = records_of(group, Changes(epoch=True, classic=True), 0)
    assert kinds(decoded(records)) == [(2, True), (3, False)]


def test_member_without_a_classic_side_is_stored_as_kafka_does_it() -> None:
    """A missing tag stands for classic metadata with its defaults: Kafka would take the member for a classic one."""
    written_by_kafka = bytes.fromhex(
        "000000000872646b61666b610b2f3132372e302e302e31030b636f6465632d677a69700674696d657301000493e00001000100"
    )
    member = stored.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="rdkafka",
        client_host="/127.0.0.1",
        subscribed_topic_names=["codec-gzip", "times"],
        rebalance_timeout_ms=300_000,
        server_assignor=None,
        classic_member_metadata=None,
    )
    assert b"\x00\x00" + encode(member, 0) == written_by_kafka
    assert decode(stored.ConsumerGroupMemberMetadataValue, 0, written_by_kafka, 2) == member


def test_member_of_earlier_releases_without_the_tag_has_no_classic_side() -> None:
    value = stored.ConsumerGroupMemberMetadataValue(client_id="c")
    group = ConsumerGroup("g", LIMITS)
    replay_into(group, stored.ConsumerGroupMemberMetadataKey("g", "m"), value)
    assert group.members["m"].classic is None


def test_unknown_epochs_of_an_assignment_are_stored_as_null() -> None:
    """Kafka takes a missing tag for an empty list, and complains that it is not as long as the partitions."""
    assigned = stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1, assigned_partitions=[stored.TopicPartitions(topic_id("t"), [3], None)]
    )
    assert encode(assigned, 0).endswith(bytes.fromhex("0200000003 01 00 01 00 01 00"))
