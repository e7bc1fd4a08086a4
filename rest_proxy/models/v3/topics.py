"""Topics in API v3."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from core_broker.client.models import Topic
from rest_proxy.models.v3.resources import Links, Relationship, Resource, ResourceCollection

INT32_MAX = 2**31 - 1
Count = Annotated[int, Field(ge=-1, le=INT32_MAX)]
"""A number; -1 for the default."""
BrokerNumber = Annotated[int, Field(ge=0, le=INT32_MAX)]


class TopicData(Resource):
    """A topic."""

    kind: str = Field(default="KafkaTopic", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster it is in.")
    topic_name: str = Field(description="Its name.", examples=["orders"])
    is_internal: bool = Field(description="Whether it is an internal topic of Kafka.")
    replication_factor: int = Field(description="The number of replicas of each partition.", examples=[3])
    partitions_count: int = Field(description="The number of partitions.", examples=[6])
    partitions: Relationship = Field(description="Its partitions.")
    configs: Relationship = Field(description="Its configs.")
    partition_reassignments: Relationship = Field(description="Its partitions that are being reassigned.")
    authorized_operations: list[str] = Field(
        description="What the proxy's user may do with it; empty unless requested.", examples=[["READ", "WRITE"]]
    )

    @classmethod
    def of(cls, topic: Topic, links: Links) -> Self:
        """A topic of the cluster."""
        replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
        return cls.create(
            topic.name,
            links,
            partitions_count=len(topic.partitions),
            replication_factor=replicas,
            is_internal=topic.is_internal,
            authorized_operations=topic.authorized_operations,
        )

    @classmethod
    def create(
        cls,
        name: str,
        links: Links,
        *,
        partitions_count: int,
        replication_factor: int,
        is_internal: bool = False,
        authorized_operations: tuple[str, ...] = (),
    ) -> Self:
        """A topic with this name and these numbers, whether it exists or not."""
        return cls(
            metadata=links.resource(("topics", name), ("topic", name)),
            cluster_id=links.cluster_id,
            topic_name=name,
            is_internal=is_internal,
            replication_factor=replication_factor,
            partitions_count=partitions_count,
            partitions=links.related("topics", name, "partitions"),
            configs=links.related("topics", name, "configs"),
            partition_reassignments=links.related("topics", name, "partitions", "-", "reassignment"),
            authorized_operations=list(authorized_operations),
        )


class TopicDataList(ResourceCollection):
    """The topics of a cluster, by name, except internal ones."""

    kind: str = Field(default="KafkaTopicList", description="The kind of this object.")
    data: list[TopicData] = Field(description="The topics.")


class TopicConfigBody(BaseModel):
    """A config of a new topic."""

    name: str = Field(description="The name of the config.", examples=["cleanup.policy"], min_length=1)
    value: str | None = Field(default=None, description="Its value.", examples=["compact"])


class CreateTopicBody(BaseModel):
    """A topic to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "topic_name": "orders",
                    "partitions_count": 6,
                    "configs": [{"name": "cleanup.policy", "value": "compact"}],
                },
                {"topic_name": "payments", "replicas_assignments": {"0": [1], "1": [1]}, "validate_only": True},
            ]
        }
    )

    topic_name: str = Field(description="Its name.", examples=["orders"])
    partitions_count: Count | None = Field(default=None, description="The number of partitions; null for the default.")
    replication_factor: Annotated[int, Field(ge=-1, le=32767)] | None = Field(
        default=None, description="The number of replicas of each partition; null for the default."
    )
    replicas_assignments: dict[BrokerNumber, list[BrokerNumber]] | None = Field(
        default=None, description="The brokers of each partition, instead of the two numbers."
    )
    configs: list[TopicConfigBody] | None = Field(default=None, description="Its configs.")
    validate_only: bool | None = Field(default=None, description="Whether to only check the request.")


class UpdatePartitionsBody(BaseModel):
    """The new number of partitions of a topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"partitions_count": 12}]})

    partitions_count: int = Field(description="Must be more than it has.", ge=-INT32_MAX, le=INT32_MAX, examples=[12])
