"""Brokers, topics and partitions in API v2."""

from pydantic import BaseModel, ConfigDict, Field

from core_broker.client.models import Config, Partition, Topic


class BrokerList(BaseModel):
    """The brokers of the cluster."""

    brokers: list[int] = Field(description="Their ids.", examples=[[1, 2, 3]])


class ReplicaDetails(BaseModel):
    """A partition as one broker holds it."""

    broker: int = Field(description="The broker that holds it.", examples=[1])
    leader: bool = Field(description="Whether it is the leader.")
    in_sync: bool = Field(description="Whether it is in sync with the leader.")


class PartitionDetails(BaseModel):
    """A partition."""

    partition: int = Field(description="Its number.", examples=[0])
    leader: int = Field(description="The broker that leads it; -1 if there is none.", examples=[1])
    replicas: list[ReplicaDetails] = Field(description="The brokers that hold it, the preferred leader first.")


class TopicDetails(BaseModel):
    """A topic."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "orders",
                    "configs": {"cleanup.policy": "compact"},
                    "partitions": [
                        {"partition": 0, "leader": 1, "replicas": [{"broker": 1, "leader": True, "in_sync": True}]}
                    ],
                }
            ]
        }
    )

    name: str = Field(description="Its name.", examples=["orders"])
    configs: dict[str, str | None] = Field(description="Its configs.", examples=[{"cleanup.policy": "compact"}])
    partitions: list[PartitionDetails] = Field(description="Its partitions.")


class PartitionOffsets(BaseModel):
    """The offsets of a partition."""

    beginning_offset: int = Field(description="The first offset.", examples=[0])
    end_offset: int = Field(description="The offset of the next record.", examples=[42])


def partition_details(partition: Partition) -> PartitionDetails:
    """A partition in the form of API v2."""
    replicas = [
        ReplicaDetails(broker=broker, leader=broker == partition.leader, in_sync=broker in partition.in_sync)
        for broker in partition.replicas
    ]
    return PartitionDetails(partition=partition.index, leader=partition.leader, replicas=replicas)


def topic_details(topic: Topic, configs: list[Config]) -> TopicDetails:
    """A topic in the form of API v2."""
    return TopicDetails(
        name=topic.name,
        configs={config.key: config.value for config in configs},
        partitions=[partition_details(partition) for partition in topic.partitions],
    )
