"""Clusters and their brokers in API v3."""

from typing import Self

from pydantic import Field

from core_broker.client.models import Broker
from rest_proxy.models.v3.resources import Links, Relationship, Resource, ResourceCollection


class ClusterData(Resource):
    """A Kafka cluster."""

    kind: str = Field(default="KafkaCluster", description="The kind of this object.")
    cluster_id: str = Field(description="Its id.", examples=["lkc-4PcEjkzRTm6pKpF5NVxqKw"])
    controller: Relationship | None = Field(description="The controller, if there is one.")
    acls: Relationship = Field(description="Its ACLs.")
    brokers: Relationship = Field(description="Its brokers.")
    broker_configs: Relationship = Field(description="Configs of all brokers.")
    consumer_groups: Relationship = Field(description="Its consumer groups.")
    topics: Relationship = Field(description="Its topics.")
    partition_reassignments: Relationship = Field(description="Partitions that are being reassigned.")

    @classmethod
    def of(cls, controller_id: int, links: Links) -> Self:
        """The cluster of these links."""
        return cls(
            metadata=links.resource((), ()),
            cluster_id=links.cluster_id,
            controller=links.related("brokers", controller_id) if controller_id >= 0 else None,
            acls=links.related("acls"),
            brokers=links.related("brokers"),
            broker_configs=links.related("broker-configs"),
            consumer_groups=links.related("consumer-groups"),
            topics=links.related("topics"),
            partition_reassignments=links.related("topics", "-", "partitions", "-", "reassignment"),
        )


class ClusterDataList(ResourceCollection):
    """The clusters behind this proxy: one."""

    kind: str = Field(default="KafkaClusterList", description="The kind of this object.")
    data: list[ClusterData] = Field(description="The clusters.")


class BrokerData(Resource):
    """A broker and its address."""

    kind: str = Field(default="KafkaBroker", description="The kind of this object.")
    cluster_id: str = Field(description="The cluster it belongs to.")
    broker_id: int = Field(description="Its id.", examples=[1])
    host: str | None = Field(description="The advertised host.", examples=["kafka-1.example.com"])
    port: int | None = Field(description="The advertised port.", examples=[9092])
    rack: str | None = Field(description="The rack, if it is configured.", examples=["rack-1"])
    configs: Relationship = Field(description="Its configs.")
    partition_replicas: Relationship = Field(description="Its replicas.")

    @classmethod
    def of(cls, broker: Broker, links: Links) -> Self:
        """A broker of the cluster."""
        return cls(
            metadata=links.resource(("brokers", broker.id), ("broker", broker.id)),
            cluster_id=links.cluster_id,
            broker_id=broker.id,
            host=broker.host,
            port=broker.port,
            rack=broker.rack,
            configs=links.related("brokers", broker.id, "configs"),
            partition_replicas=links.related("brokers", broker.id, "partition-replicas"),
        )


class BrokerDataList(ResourceCollection):
    """The brokers of a cluster, by id."""

    kind: str = Field(default="KafkaBrokerList", description="The kind of this object.")
    data: list[BrokerData] = Field(description="The brokers.")
