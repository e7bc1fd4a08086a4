"""Consumer groups of API v3: groups, their members, what these read, and how far they are behind."""

from typing import Any

from pydantic import ConfigDict, Field

from rest_proxy.models.v3.resources import Relationship, Resource, ResourceCollection

_CLUSTER = "http://localhost:8082/v3/clusters/c-1"
_GROUP = f"{_CLUSTER}/consumer-groups/billing"
_CONSUMER = "billing-1-9f0a"


def _example(kind: str, path: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"self": path, "resource_name": f"crn:///kafka=c-1/consumer-group=billing{name}"}
    return {
        "kind": kind,
        "metadata": metadata,
        "cluster_id": "c-1",
        "consumer_group_id": "billing",
        **fields,
    }


def _examples(kind: str, path: str, one: dict[str, Any]) -> ConfigDict:
    return ConfigDict(
        json_schema_extra={"examples": [{"kind": kind, "metadata": {"self": path, "next": None}, "data": [one]}]}
    )


_A_GROUP = _example(
    "KafkaConsumerGroup",
    _GROUP,
    "",
    is_simple=False,
    partition_assignor="range",
    state="STABLE",
    type="CLASSIC",
    is_mixed_consumer_group=False,
    coordinator={"related": f"{_CLUSTER}/brokers/1"},
    consumers={"related": f"{_GROUP}/consumers"},
    lag_summary={"related": f"{_GROUP}/lag-summary"},
)
_A_CONSUMER = _example(
    "KafkaConsumer",
    f"{_GROUP}/consumers/{_CONSUMER}",
    f"/consumer={_CONSUMER}",
    consumer_id=_CONSUMER,
    instance_id=None,
    client_id="billing-1",
    assignments={"related": f"{_GROUP}/consumers/{_CONSUMER}/assignments"},
)
_AN_ASSIGNMENT = _example(
    "KafkaConsumerAssignment",
    f"{_GROUP}/consumers/{_CONSUMER}/assignments/orders/partitions/0",
    f"/consumer={_CONSUMER}/assignment=orders/partition=0",
    consumer_id=_CONSUMER,
    topic_name="orders",
    partition_id=0,
    partition={"related": f"{_CLUSTER}/topics/orders/partitions/0"},
    lag={"related": f"{_GROUP}/lags/orders/partitions/0"},
)
_A_LAG = _example(
    "KafkaConsumerLag",
    f"{_GROUP}/lags/orders/partitions/0",
    "/lag=orders/partition=0",
    topic_name="orders",
    partition_id=0,
    consumer_id=_CONSUMER,
    instance_id=None,
    client_id="billing-1",
    current_offset=40,
    log_end_offset=42,
    lag=2,
)
_A_SUMMARY = _example(
    "KafkaConsumerGroupLagSummary",
    f"{_GROUP}/lag-summary",
    "/lag-summary",
    max_lag_consumer_id=_CONSUMER,
    max_lag_consumer={"related": f"{_GROUP}/consumers/{_CONSUMER}"},
    max_lag_instance_id=None,
    max_lag_client_id="billing-1",
    max_lag_topic_name="orders",
    max_lag_partition_id=0,
    max_lag_partition={"related": f"{_CLUSTER}/topics/orders/partitions/0"},
    max_lag=2,
    total_lag=3,
)


class _OfGroup(Resource):
    """What everything about a group tells."""

    cluster_id: str = Field(description="The cluster.")
    consumer_group_id: str = Field(description="The group.")


class GroupData(_OfGroup):
    """A consumer group."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_GROUP]})

    kind: str = Field(default="KafkaConsumerGroup", description="What this is.")
    is_simple: bool = Field(description="Whether it only keeps offsets, without ever having had members.")
    partition_assignor: str = Field(description="How partitions are given to members; empty while there are none.")
    state: str = Field(
        description="UNKNOWN, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD or EMPTY; a group of the newer "
        "protocol that is assigning or reconciling is UNKNOWN."
    )
    type: str = Field(description="CLASSIC, CONSUMER (KIP-848) or UNKNOWN.")
    is_mixed_consumer_group: bool = Field(
        description="Whether members of the older protocol are in a group of the newer one; false where the cluster "
        "does not tell."
    )
    coordinator: Relationship = Field(description="The broker that looks after the group.")
    consumers: Relationship = Field(description="Its members.")
    lag_summary: Relationship = Field(description="How far it is behind.")


class GroupDataList(ResourceCollection):
    """Consumer groups."""

    model_config = _examples("KafkaConsumerGroupList", f"{_CLUSTER}/consumer-groups", _A_GROUP)

    kind: str = Field(default="KafkaConsumerGroupList", description="What this is.")
    data: list[GroupData] = Field(description="The groups, by name.")


class ConsumerData(_OfGroup):
    """A member of a consumer group."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_CONSUMER]})

    kind: str = Field(default="KafkaConsumer", description="What this is.")
    consumer_id: str = Field(description="The member, by the id that the group gave it.")
    instance_id: str | None = Field(default=None, description="Its `group.instance.id`, if it is a static member.")
    client_id: str = Field(description="Its `client.id`.")
    assignments: Relationship = Field(description="What it reads.")


class ConsumerDataList(ResourceCollection):
    """Members of a consumer group."""

    model_config = _examples("KafkaConsumerList", f"{_GROUP}/consumers", _A_CONSUMER)

    kind: str = Field(default="KafkaConsumerList", description="What this is.")
    data: list[ConsumerData] = Field(description="The members, by id.")


class AssignmentData(_OfGroup):
    """A partition that a member reads."""

    model_config = ConfigDict(json_schema_extra={"examples": [_AN_ASSIGNMENT]})

    kind: str = Field(default="KafkaConsumerAssignment", description="What this is.")
    consumer_id: str = Field(description="The member.")
    topic_name: str = Field(description="The topic.")
    partition_id: int = Field(description="The partition.")
    partition: Relationship = Field(description="The partition itself.")
    lag: Relationship = Field(description="How far the group is behind there.")


class AssignmentDataList(ResourceCollection):
    """What a member reads."""

    model_config = _examples(
        "KafkaConsumerAssignmentList", f"{_GROUP}/consumers/{_CONSUMER}/assignments", _AN_ASSIGNMENT
    )

    kind: str = Field(default="KafkaConsumerAssignmentList", description="What this is.")
    data: list[AssignmentData] = Field(description="The partitions, by topic and number.")


class LagData(_OfGroup):
    """How far a group is behind in one partition."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_LAG]})

    kind: str = Field(default="KafkaConsumerLag", description="What this is.")
    topic_name: str = Field(description="The topic.")
    partition_id: int = Field(description="The partition.")
    consumer_id: str = Field(description="The member that reads it; empty if none does.")
    instance_id: str | None = Field(default=None, description="Its `group.instance.id`, if it is a static member.")
    client_id: str = Field(description="Its `client.id`; empty if none reads it.")
    current_offset: int = Field(description="What the group has committed: the next record it will read.")
    log_end_offset: int = Field(description="Where the partition ends, for readers of committed records.")
    lag: int = Field(description="How many offsets lie between, never less than 0.")


class LagDataList(ResourceCollection):
    """How far a group is behind, by partition."""

    model_config = _examples("KafkaConsumerLagList", f"{_GROUP}/lags", _A_LAG)

    kind: str = Field(default="KafkaConsumerLagList", description="What this is.")
    data: list[LagData] = Field(description="The partitions, greatest lag first.")


class LagSummaryData(_OfGroup):
    """How far a group is behind in all."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_SUMMARY]})

    kind: str = Field(default="KafkaConsumerGroupLagSummary", description="What this is.")
    max_lag_consumer_id: str = Field(description="The member that is the farthest behind; empty if none reads there.")
    max_lag_consumer: Relationship = Field(description="The member itself.")
    max_lag_instance_id: str | None = Field(default=None, description="Its `group.instance.id`, if it has one.")
    max_lag_client_id: str = Field(description="Its `client.id`.")
    max_lag_topic_name: str = Field(description="The topic where the group is the farthest behind.")
    max_lag_partition_id: int = Field(description="The partition.")
    max_lag_partition: Relationship = Field(description="The partition itself.")
    max_lag: int = Field(description="How far it is behind there.")
    total_lag: int = Field(description="How far it is behind in all partitions together.")
