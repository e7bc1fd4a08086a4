"""Brokers in API v3."""

from typing import Self

from pydantic import Field

from core_broker.client.models import Broker
from rest_proxy.models.v3.resources import Links, Relationship, Resource, ResourceCollection


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
