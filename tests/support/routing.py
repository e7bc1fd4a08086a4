"""Which broker of a cluster a raw request belongs to, found out as clients do."""

from contextlib import suppress
from typing import Final

from core_broker.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from core_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from core_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from tests.support.patience import eventually
from tests.support.wire import WireConnection

GROUP: Final = 0
TRANSACTION: Final = 1


def live_brokers(address: str) -> list[int]:
    """The ids of the brokers in a broker's metadata; none while it does not answer."""
    with suppress(OSError):
        return [broker.node_id for broker in _metadata(address).brokers]
    return []


def await_topic(addresses: list[str], topic: str, partitions: int) -> None:
    """Return once each of these brokers knows all partitions of a topic and their leaders.

    As in Kafka, the response to CreateTopics does not wait for brokers other than the controller.
    """
    for address in addresses:
        eventually(lambda: len(_led(address, topic)), lambda count: count >= partitions)  # noqa: B023


def leader_of(bootstrap: str, topic: str, partition: int = 0) -> str:
    """The address of a partition's leader, once that accepts requests for it."""
    return eventually(lambda: _ready_leader(bootstrap.partition(",")[0], topic, partition))


def coordinator_of(bootstrap: str, key: str, kind: int) -> str:
    """The address of the coordinator of a group or a transactional id."""

    def ask() -> Coordinator:
        with WireConnection(bootstrap) as connection:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            return connection.request(request, 6, FindCoordinatorResponse).coordinators[0]

    found = eventually(ask, lambda coordinator: coordinator.error_code == 0)
    return f"{found.host}:{found.port}"


def _ready_leader(address: str, topic: str, partition: int) -> str:
    """The address of the leader, or "" while there is none or it does not know yet that it leads."""
    addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in _metadata(address).brokers}
    led = {found.partition_index: addresses.get(found.leader_id, "") for found in _led(address, topic)}
    leader = led.get(partition, "")
    return leader if leader and _answers(leader, topic, partition) else ""


def _answers(address: str, topic: str, partition: int) -> bool:
    latest = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)])
    with WireConnection(address) as connection:
        answer = connection.request(ListOffsetsRequest(replica_id=-1, topics=[latest]), 5, ListOffsetsResponse)
    return answer.topics[0].partitions[0].error_code == 0


def _led(address: str, topic: str) -> list[MetadataResponsePartition]:
    """The partitions of a topic that have a leader."""
    (found,) = _metadata(address, topic).topics
    return [partition for partition in found.partitions if partition.error_code == 0 and partition.leader_id >= 0]


def _metadata(address: str, *topics: str) -> MetadataResponse:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=False
    )
    with WireConnection(address) as connection:
        return connection.request(request, 8, MetadataResponse)
