"""Consumer groups in API v3: groups, members, assignments and lag."""

from typing import Any

from pydantic import ConfigDict, Field

from rest_proxy.models.v3.resources import Relationship, Resource, ResourceCollection

_CLUSTER = "http://localhost:8082/v3/clusters/c-1"
_GROUP = f"{_CLUSTER}/consumer-groups/billing"
_CONSUMER = "billing-1-9f0a"


def _example(kind: str, path: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"self": path, "resource_name": f"crn:///kafka=c-1/consumer-group=billing{name}"}
    return {"kind": kind, "metadata": metadata, "cluster_id": "c-1", "consumer_group_id": "billing", **fields}


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
    """The fields of all resources of a group."""

    cluster_id: str = Field(description="The cluster.")
    consumer_group_id: str = Field(description="The group.")


class GroupData(_OfGroup):
    """A consumer group."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_GROUP]})

    kind: str = Field(default="KafkaConsumerGroup", description="The kind of this object.")
    is_simple: bool = Field(description="Whether it has only commits and never had members.")
    partition_assignor: str = Field(description="The assignor; empty while there are no members.")
    state: str = Field(
        description="UNKNOWN, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD or EMPTY; UNKNOWN also for "
        "groups of the new protocol that are assigning or reconciling."
    )
    type: str = Field(description="CLASSIC, CONSUMER (KIP-848) or UNKNOWN.")
    is_mixed_consumer_group: bool = Field(
        description="Whether a group of the new protocol has members of the classic one; false if that is not known."
    )
    coordinator: Relationship = Field(description="The coordinator of the group.")
    consumers: Relationship = Field(description="Its members.")
    lag_summary: Relationship = Field(description="Its lag.")


class GroupDataList(ResourceCollection):
    """Consumer groups."""

    model_config = _examples("KafkaConsumerGroupList", f"{_CLUSTER}/consumer-groups", _A_GROUP)

    kind: str = Field(default="KafkaConsumerGroupList", description="The kind of this object.")
    data: list[GroupData] = Field(description="The groups, by name.")


class ConsumerData(_OfGroup):
    """A member of a consumer group."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_CONSUMER]})

    kind: str = Field(default="KafkaConsumer", description="The kind of this object.")
    consumer_id: str = Field(description="The member id.")
    instance_id: str | None = Field(default=None, description="Its `group.instance.id`, if it is a static member.")
    client_id: str = Field(description="Its `client.id`.")
    assignments: Relationship = Field(description="Its assigned partitions.")


class ConsumerDataList(ResourceCollection):
    """Members of a consumer group."""

    model_config = _examples("KafkaConsumerList", f"{_GROUP}/consumers", _A_CONSUMER)

    kind: str = Field(default="KafkaConsumerList", description="The kind of this object.")
    data: list[ConsumerData] = Field(description="The members, by id.")


class AssignmentData(_OfGroup):
    """A partition that a member reads."""

    model_config = ConfigDict(json_schema_extra={"examples": [_AN_ASSIGNMENT]})

    kind: str = Field(default="KafkaConsumerAssignment", description="The kind of this object.")
    consumer_id: str = Field(description="The member.")
    topic_name: str = Field(description="The topic.")
    partition_id: int = Field(description="The partition.")
    partition: Relationship = Field(description="The link to the partition.")
    lag: Relationship = Field(description="The lag of the group in this partition.")


class AssignmentDataList(ResourceCollection):
    """The assigned partitions of a member."""

    model_config = _examples(
        "KafkaConsumerAssignmentList", f"{_GROUP}/consumers/{_CONSUMER}/assignments", _AN_ASSIGNMENT
    )

    kind: str = Field(default="KafkaConsumerAssignmentList", description="The kind of this object.")
    data: list[AssignmentData] = Field(description="The partitions, by topic and number.")


class LagData(_OfGroup):
    """The lag of a group in one partition."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_LAG]})

    kind: str = Field(default="KafkaConsumerLag", description="The kind of this object.")
    topic_name: str = Field(description="The topic.")
    partition_id: int = Field(description="The partition.")
    consumer_id: str = Field(description="The member that reads it; empty if none does.")
    instance_id: str | None = Field(default=None, description="Its `group.instance.id`, if it is a static member.")
    client_id: str = Field(description="Its `client.id`; empty if none reads it.")
    current_offset: int = Field(description="The committed offset: the next record that the group will read.")
    log_end_offset: int = Field(description="The end of the partition, for read_committed.")
    lag: int = Field(description="The number of offsets in between, at least 0.")


class LagDataList(ResourceCollection):
    """The lag of a group, by partition."""

    model_config = _examples("KafkaConsumerLagList", f"{_GROUP}/lags", _A_LAG)

    kind: str = Field(default="KafkaConsumerLagList", description="The kind of this object.")
    data: list[LagData] = Field(description="The partitions, greatest lag first.")


class LagSummaryData(_OfGroup):
    """The total lag of a group, and where it is greatest."""

    model_config = ConfigDict(json_schema_extra={"examples": [_A_SUMMARY]})

    kind: str = Field(default="KafkaConsumerGroupLagSummary", description="The kind of this object.")
    max_lag_consumer_id: str = Field(description="The member with the greatest lag; empty if none reads the partition.")
    max_lag_consumer: Relationship = Field(description="The link to the member.")
    max_lag_instance_id: str | None = Field(default=None, description="Its `group.instance.id`, if it has one.")
    max_lag_client_id: str = Field(description="Its `client.id`.")
    max_lag_topic_name: str = Field(description="The topic with the greatest lag.")
    max_lag_partition_id: int = Field(description="The partition.")
    max_lag_partition: Relationship = Field(description="The link to the partition.")
    max_lag: int = Field(description="The lag in this partition.")
    total_lag: int = Field(description="The lag in all partitions.")
