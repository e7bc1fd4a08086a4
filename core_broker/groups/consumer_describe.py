"""Describes a KIP-848 group for ConsumerGroupDescribe."""

from collections.abc import Mapping

from core_broker.groups.assignors import NOTHING, Assignment
from core_broker.groups.consumer_group import ConsumerGroup
from core_broker.groups.subscriptions import Topics
from core_broker.protocol.messages import consumer_group_describe as wire

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def describe(group: ConsumerGroup, topics: Topics) -> wire.DescribedGroup:
    """The group and its members; partitions of deleted topics are left out, since they have no name."""
    names = {topics[name].topic_id: name for name in group.subscriptions.topic_names() if name in topics}
    # Topics without subscribers may still be owned until they are revoked.
    owned = {topic_id for member in group.members.values() for topic_id in member.assigned}
    if owned - names.keys():
        names.update((topic.topic_id, name) for name, topic in topics.items() if topic.topic_id in owned)
    return wire.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=[
            wire.Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=sorted(member.subscribed_topic_names),
                subscribed_topic_regex=member.subscribed_topic_regex or None,
                assignment=_assignment(member.assigned, names),
                target_assignment=_assignment(group.targets.get(member_id, NOTHING), names),
                member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
            )
            for member_id, member in sorted(group.members.items())
        ],
    )


def _assignment(assignment: Assignment, names: Mapping[bytes, str]) -> wire.Assignment:
    return wire.Assignment(
        [
            wire.TopicPartitions(topic_id, names[topic_id], sorted(partitions))
            for topic_id, partitions in assignment.items()
            if topic_id in names
        ]
    )
