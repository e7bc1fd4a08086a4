"""Clusters in API v3."""

from typing import Self

from pydantic import Field

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
