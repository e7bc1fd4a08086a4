"""Partitions, their replicas and offsets in API v3."""

from typing import Self

from pydantic import Field

from core_broker.client.models import Partition, Reassignment
from rest_proxy.models.v3.resources import Links, Relationship, Resource, ResourceCollection


class PartitionData(Resource):
    """A partition."""

    kind: str = Field(default="KafkaPartition", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster it is in.")
    topic_name: str = Field(description="The topic it belongs to.", examples=["orders"])
    partition_id: int = Field(description="Its number.", examples=[0])
    leader: Relationship | None = Field(description="The leader, if there is one.")
    replicas: Relationship = Field(description="Its replicas.")
    reassignment: Relationship = Field(description="Its reassignment.")

    @classmethod
    def of(cls, topic: str, partition: Partition, links: Links) -> Self:
        """A partition of a topic."""
        path = ("topics", topic, "partitions", partition.index)
        return cls(
            metadata=links.resource(path, ("topic", topic, "partition", partition.index)),
            cluster_id=links.cluster_id,
            topic_name=topic,
            partition_id=partition.index,
            leader=links.related(*path, "replicas", partition.leader) if partition.leader >= 0 else None,
            replicas=links.related(*path, "replicas"),
            reassignment=links.related(*path, "reassignment"),
        )


class PartitionDataList(ResourceCollection):
    """The partitions of a topic, by number."""

    kind: str = Field(default="KafkaPartitionList", description="The kind of this object.")
    data: list[PartitionData] = Field(description="The partitions.")


class ReplicaData(Resource):
    """A replica of a partition."""

    kind: str = Field(default="KafkaReplica", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster it is in.")
    topic_name: str = Field(description="The topic it belongs to.", examples=["orders"])
    partition_id: int = Field(description="The partition's number.", examples=[0])
    broker_id: int = Field(description="The broker that holds it.", examples=[1])
    is_leader: bool = Field(description="Whether it is the leader.")
    is_in_sync: bool = Field(description="Whether it is in sync with the leader.")
    broker: Relationship = Field(description="The broker that holds it.")

    @classmethod
    def of(cls, topic: str, partition: Partition, broker_id: int, links: Links) -> Self:
        """The replica of a partition on a broker."""
        return cls(
            metadata=links.resource(
                ("topics", topic, "partitions", partition.index, "replicas", broker_id),
                ("topic", topic, "partition", partition.index, "replica", broker_id),
            ),
            cluster_id=links.cluster_id,
            topic_name=topic,
            partition_id=partition.index,
            broker_id=broker_id,
            is_leader=broker_id == partition.leader,
            is_in_sync=broker_id in partition.in_sync,
            broker=links.related("brokers", broker_id),
        )


class ReplicaDataList(ResourceCollection):
    """Replicas."""

    kind: str = Field(default="KafkaReplicaList", description="The kind of this object.")
    data: list[ReplicaData] = Field(description="The replicas.")


class PartitionOffsetsData(Resource):
    """The offsets of a partition."""

    kind: str = Field(default="KafkaPartitionWithOffsets", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster it is in.")
    topic_name: str = Field(description="The topic it belongs to.", examples=["orders"])
    partition_id: int = Field(description="Its number.", examples=[0])
    earliest_offset: int = Field(description="The first offset.", examples=[0])
    latest_offset: int = Field(description="The offset of the next record.", examples=[42])


class ReassignmentData(Resource):
    """A partition that is being reassigned."""

    kind: str = Field(default="KafkaReassignment", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster it is in.")
    topic_name: str = Field(description="The topic it belongs to.", examples=["orders"])
    partition_id: int = Field(description="Its number.", examples=[0])
    adding_replicas: list[int] = Field(description="Brokers that get a replica.", examples=[[4]])
    removing_replicas: list[int] = Field(description="Brokers that lose their replica.", examples=[[1]])
    replicas: Relationship = Field(description="Its replicas.")

    @classmethod
    def of(cls, moving: Reassignment, links: Links) -> Self:
        """A reassignment in the form of the response."""
        path = ("topics", moving.topic, "partitions", moving.partition)
        name = ("topic", moving.topic, "partition", moving.partition, "reassignment", "")
        return cls(
            metadata=links.resource((*path, "reassignment"), name),
            cluster_id=links.cluster_id,
            topic_name=moving.topic,
            partition_id=moving.partition,
            adding_replicas=list(moving.adding),
            removing_replicas=list(moving.removing),
            replicas=links.related(*path, "replicas"),
        )


class ReassignmentDataList(ResourceCollection):
    """Partitions that are being reassigned."""

    kind: str = Field(default="KafkaReassignmentList", description="The kind of this object.")
    data: list[ReassignmentData] = Field(description="The partitions.")
