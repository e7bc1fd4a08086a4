"""Consumer groups and their members, with Confluent's names for states and fields."""

from core_broker.client.admin import Admin
from core_broker.client.errors import NotFound
from core_broker.client.models import Group, Member
from rest_proxy.admin.cluster import TEXT_BYTES_MAX
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.groups import AssignmentData, ConsumerData, GroupData
from rest_proxy.models.v3.resources import Links

_STATES = {
    "preparing rebalancing": "PREPARING_REBALANCE",
    "completing rebalancing": "COMPLETING_REBALANCE",
    "stable": "STABLE",
    "dead": "DEAD",
    "empty": "EMPTY",
}
_KINDS = {"classic": "CLASSIC", "consumer": "CONSUMER"}
_NAME_MAX = 200


# --- requests ---


def list_all(admin: Admin) -> list[Group]:
    """Every group, by name; those that this proxy may not see are left out."""
    return admin.describe_groups([summary.group_id for summary in admin.groups()])


def get(admin: Admin, group_id: str) -> Group:
    """A group, or 404."""
    missing = ProxyError(404, f"Consumer Group {_shorten(group_id)} could not be found.")
    # The client library truncates a name at NUL, and loses its connection over one that is too long for the protocol.
    if "\0" in group_id or len(group_id.encode()) > TEXT_BYTES_MAX:
        raise missing
    try:
        group = admin.group(group_id)
    except NotFound:
        raise missing from None
    if group.is_simple and group.state == "dead":  # This is how Kafka describes a group that does not exist.
        raise missing
    return group


def member(group: Group, consumer_id: str) -> Member:
    """A member of a group, or 404."""
    for one in group.members:
        if one.member_id == consumer_id:
            return one
    raise ProxyError(404, f"Consumer {_shorten(consumer_id)} does not exist.")


def check_assigned(reader: Member, topic: str, partition: int) -> None:
    """404 unless the member reads the partition."""
    if (topic, partition) not in reader.partitions:
        what = f"partition {partition} of topic {_shorten(topic)}"
        raise ProxyError(404, f"Consumer {reader.member_id} does not read {what}.")


def _shorten(name: str) -> str:
    return name if len(name) <= _NAME_MAX else f"{name[:_NAME_MAX]}..."


# --- responses ---


def group_data(group: Group, links: Links) -> GroupData:
    """A group in the form of the response."""
    path = ("consumer-groups", group.group_id)
    return GroupData(
        metadata=links.resource(path, ("consumer-group", group.group_id)),
        cluster_id=links.cluster_id,
        consumer_group_id=group.group_id,
        is_simple=group.is_simple,
        partition_assignor=group.assignor,
        state=_STATES.get(group.state, "UNKNOWN"),
        type=_KINDS.get(group.kind, "UNKNOWN"),
        is_mixed_consumer_group=False,  # The client library does not say which protocol a member uses.
        coordinator=links.related("brokers", group.coordinator.id if group.coordinator else -1),
        consumers=links.related(*path, "consumers"),
        lag_summary=links.related(*path, "lag-summary"),
    )


def consumer_data(group: Group, one: Member, links: Links) -> ConsumerData:
    """A member in the form of the response."""
    path = ("consumer-groups", group.group_id, "consumers", one.member_id)
    return ConsumerData(
        metadata=links.resource(path, ("consumer-group", group.group_id, "consumer", one.member_id)),
        cluster_id=links.cluster_id,
        consumer_group_id=group.group_id,
        consumer_id=one.member_id,
        instance_id=one.instance_id or None,
        client_id=one.client_id,
        assignments=links.related(*path, "assignments"),
    )


def assignment_data(group: Group, reader: Member, topic_partition: tuple[str, int], links: Links) -> AssignmentData:
    """A partition that a member reads, in the form of the response."""
    topic, partition = topic_partition
    consumer = ("consumer-groups", group.group_id, "consumers", reader.member_id)
    name = ("consumer-group", group.group_id, "consumer", reader.member_id, "assignment", topic, "partition", partition)
    return AssignmentData(
        metadata=links.resource((*consumer, "assignments", topic, "partitions", partition), name),
        cluster_id=links.cluster_id,
        consumer_group_id=group.group_id,
        consumer_id=reader.member_id,
        topic_name=topic,
        partition_id=partition,
        partition=links.related("topics", topic, "partitions", partition),
        lag=links.related("consumer-groups", group.group_id, "lags", topic, "partitions", partition),
    )
