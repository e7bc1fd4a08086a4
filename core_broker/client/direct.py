"""Requests that the library cannot send (cluster-wide configs, the configs of a topic to be created, removal of
members), and DescribeAcls, whose errors the library drops.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from core_broker.client.config_entries import SOURCES
from core_broker.client.connection import Connection, can_log_in
from core_broker.client.errors import from_code
from core_broker.client.group_consumer import Commit
from core_broker.client.models import Broker, Config, Synonym
from core_broker.client.settings import ClientSettings
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from core_broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from core_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from core_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from core_broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from core_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from core_broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

R = TypeVar("R", bound=Message)
_BROKER, _EVERY_BROKER = 4, ""
_SET, _DELETE = 0, 1
_ANY = 1
_OFFSET_FETCH_VERSION = 5
_LIBRARY_END = "\0"
"""librdkafka commits metadata with the end of its text in C."""
_DEFAULT_CONFIG = 5


class DirectAdmin:
    """Sends requests to one broker over a connection of its own."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    @property
    def can_connect(self) -> bool:
        """Whether these connections can log in, if the cluster asks for that."""
        protocol = str(self._settings.properties.get("security.protocol", "plaintext")).upper()
        return not protocol.startswith("SASL") or can_log_in(self._settings)

    def cluster_configs(self, broker: Broker) -> list[Config]:
        """The dynamic configs set for the whole cluster, by key."""
        resource = DescribeConfigsResource(_BROKER, _EVERY_BROKER, configuration_keys=None)
        request = DescribeConfigsRequest([resource], include_synonyms=True)
        response = self._send(broker, request, 1, DescribeConfigsResponse)
        configs = []
        for result in response.results:
            _raise_error(result.error_code, result.error_message)
            configs += [_config(entry) for entry in result.configs]
        return sorted(configs, key=lambda config: config.key)

    def alter_cluster_configs(
        self, broker: Broker, *, put: Mapping[str, str], remove: Iterable[str] = (), validate_only: bool = False
    ) -> None:
        """Set some dynamic configs for the whole cluster and remove others; the rest is unchanged."""
        changes = [AlterableConfig(key, _SET, value) for key, value in put.items()]
        changes += [AlterableConfig(key, _DELETE, None) for key in remove]
        resource = AlterConfigsResource(_BROKER, _EVERY_BROKER, changes)
        request = IncrementalAlterConfigsRequest([resource], validate_only=validate_only)
        response = self._send(broker, request, 0, IncrementalAlterConfigsResponse)
        for result in response.responses:
            _raise_error(result.error_code, result.error_message)

    def new_topic_configs(self, broker: Broker, name: str) -> list[Config]:
        """The configs that a topic would get if it were created now, by key; raises what creating it would raise."""
        topic = CreatableTopic(name, num_partitions=-1, replication_factor=-1)
        request = CreateTopicsRequest([topic], timeout_ms=self._settings.timeout_ms, validate_only=True)
        response = self._send(broker, request, 5, CreateTopicsResponse)
        configs = []
        for result in response.topics:
            _raise_error(result.error_code, result.error_message)
            configs += [_config(entry) for entry in result.configs or ()]
        return sorted(configs, key=lambda config: config.key)

    def remove_member(self, coordinator: Broker, group_id: str, instance_id: str) -> None:
        """Remove a static member from its group; does nothing when it is not a member."""
        request = LeaveGroupRequest(group_id, members=[MemberIdentity(group_instance_id=instance_id)])
        response = self._send(coordinator, request, 3, LeaveGroupResponse)
        _raise_error(response.error_code, None)

    def delete_offsets(self, coordinator: Broker, group_id: str, places: Iterable[tuple[str, int]]) -> None:
        """Delete committed offsets of a group; partitions without one are ignored."""
        numbers: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for topic, partition in places:
            numbers.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition))
        topics = [OffsetDeleteRequestTopic(topic, partitions) for topic, partitions in numbers.items()]
        response = self._send(coordinator, OffsetDeleteRequest(group_id, topics), 0, OffsetDeleteResponse)
        _raise_error(response.error_code, None)
        for result in (partition for found in response.topics for partition in found.partitions):
            _raise_error(result.error_code, None)

    def commits(self, coordinator: Broker, group_id: str) -> dict[tuple[str, int], Commit]:
        """The committed offsets of a group, with their metadata."""
        request = OffsetFetchRequest(group_id, None)
        response = self._send(coordinator, request, _OFFSET_FETCH_VERSION, OffsetFetchResponse)
        _raise_error(response.error_code, None)
        found = {}
        for topic in response.topics:
            for partition in topic.partitions:
                _raise_error(partition.error_code, None)
                metadata = (partition.metadata or "").removesuffix(_LIBRARY_END)
                commit = Commit(partition.committed_offset, metadata)
                found[topic.name, partition.partition_index] = commit
        return found

    def check_acls(self, broker: Broker) -> None:
        """Raise the error of DescribeAcls, if any. The filter matches nothing, so the response is short."""
        request = DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter="no such resource",
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        response = self._send(broker, request, 1, DescribeAclsResponse)
        _raise_error(response.error_code, response.error_message)

    def _send(self, broker: Broker, request: Message, version: int, response: type[R]) -> R:
        with Connection(self._settings, broker.host, broker.port) as connection:
            return connection.send(request, version, response)


def _raise_error(code: int, message: str | None) -> None:
    if code:
        raise from_code(code, message)


def _config(entry: DescribeConfigsResourceResult | CreatableTopicConfigs) -> Config:
    synonyms = entry.synonyms if isinstance(entry, DescribeConfigsResourceResult) else ()
    return Config(
        key=entry.name,
        value=entry.value,
        is_default=entry.config_source == _DEFAULT_CONFIG,
        is_read_only=entry.read_only,
        is_sensitive=entry.is_sensitive,
        source=_source(entry.config_source),
        synonyms=tuple(Synonym(key=item.name, value=item.value, source=_source(item.source)) for item in synonyms),
    )


def _source(number: int) -> str:
    return SOURCES.get(number, "UNKNOWN")
