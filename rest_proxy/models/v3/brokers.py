"""Brokers in API v3."""

from typing import Self

from pydantic import Field

from core_broker.client.models import Broker
from rest_proxy.models.v3.resources import Links, Relationship, Resource, ResourceCollection


class BrokerData(Resource):
    """A broker and its address."""

    kind: str = Field(default="KafkaBroker", description="What this is.")
    cluster_id: str = Field(description="The cluster it belongs to.")
    broker_id: int = Field(description="Its id.", examples=[1])
    host: str | None = Field(description="The host that it advertises.", examples=["kafka-1.example.com"])
    port: int | None = Field(description="The port that it advertises.", examples=[9092])
    rack: str | None = Field(description="Where it stands, if it was told.", examples=["rack-1"])
    configs: Relationship = Field(description="Its configs.")
    partition_replicas: Relationship = Field(description="The replicas that it holds.")

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

    kind: str = Field(default="KafkaBrokerList", description="What this is.")
    data: list[BrokerData] = Field(description="The brokers.")
