"""Every API that this broker supports: the list behind dispatch and the response to ApiVersions."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, get_type_hints

import msgspec

from core_broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from core_broker.handlers.context import RequestContext
from core_broker.handlers.fetch_response import Chunk
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from core_broker.protocol.messages.produce import ProduceRequest, ProduceResponse

Answer: TypeAlias = bytearray | list[Chunk] | None
"""A complete response: bytes, or bytes and parts of files, or nothing at all (`acks=0`)."""

RawHandler: TypeAlias = Callable[[memoryview, int, RequestContext], Answer | Awaitable[Answer]]
"""Decodes the request from its frame and encodes the response itself: the hot path."""

MessageHandler: TypeAlias = Callable[[Any, RequestContext], Message | Awaitable[Message]]
"""Takes a decoded request and returns a response, which dispatch encodes."""


class Api(msgspec.Struct, frozen=True):
    """One API: its handler and its versions."""

    key: int
    name: str
    first_version: int
    last_version: int
    flexible_since: int
    request: type[Message]
    response: type[Message]
    handler: MessageHandler | None = None
    raw_handler: RawHandler | None = None

    def has_flexible_response_header(self, version: int) -> bool:
        """Whether response headers have tagged fields; never for ApiVersions, read before any version is agreed on."""
        return version >= self.flexible_since and self.key != ApiVersionsRequest.API_KEY


def _api(handler: MessageHandler, first_version: int, last_version: int) -> Api:
    """A row for a handler; its annotations say which API it is."""
    hints = get_type_hints(handler)
    return _row(hints["request"], hints["return"], first_version, last_version, handler=handler)


def _row(request: type[Message], response: type[Message], first_version: int, last_version: int, **how: Any) -> Api:
    if request.API_KEY is None:
        raise TypeError(f"{request.__name__} has no API key")
    name = request.__name__.removesuffix("Request")
    return Api(request.API_KEY, name, first_version, last_version, request.FLEXIBLE_SINCE, request, response, **how)


APIS: Final = (
    _row(ProduceRequest, ProduceResponse, 0, 13, raw_handler=produce.handle),
    _row(FetchRequest, FetchResponse, 4, 18, raw_handler=fetch.handle),
    _api(list_offsets.handle, 1, 11),
    _row(MetadataRequest, MetadataResponse, 0, 13, raw_handler=metadata.handle),
    _api(offset_commit.handle, 2, 10),
    _api(offset_fetch.handle, 1, 10),
    _api(find_coordinator.handle, 0, 6),
    _api(join_group.handle, 0, 9),
    _api(heartbeat.handle, 0, 4),
    _api(leave_group.handle, 0, 5),
    _api(sync_group.handle, 0, 5),
    _api(describe_groups.handle, 0, 6),
    _api(list_groups.handle, 0, 5),
    _api(sasl_handshake.handle, 0, 1),
    _api(api_versions.handle, 0, 4),
    _api(create_topics.handle, 2, 7),
    _api(delete_topics.handle, 1, 6),
    _api(delete_records.handle, 0, 2),
    _api(init_producer_id.handle, 0, 5),
    _api(offset_for_leader_epoch.handle, 2, 4),
    _api(add_partitions_to_txn.handle, 0, 5),
    _api(add_offsets_to_txn.handle, 0, 4),
    _api(end_txn.handle, 0, 5),
    _api(write_txn_markers.handle, 1, 2),
    _api(txn_offset_commit.handle, 0, 5),
    _api(describe_acls.handle, 1, 3),
    _api(create_acls.handle, 1, 3),
    _api(delete_acls.handle, 1, 3),
    _api(describe_configs.handle, 1, 4),
    _api(alter_configs.handle, 0, 2),
    _api(alter_replica_log_dirs.handle, 1, 2),
    _api(describe_log_dirs.handle, 1, 5),
    _api(sasl_authenticate.handle, 0, 2),
    _api(create_partitions.handle, 0, 3),
    _api(delete_groups.handle, 0, 2),
    _api(elect_leaders.handle, 0, 2),
    _api(incremental_alter_configs.handle, 0, 1),
    _api(alter_partition_reassignments.handle, 0, 1),
    _api(list_partition_reassignments.handle, 0, 0),
    _api(offset_delete.handle, 0, 0),
    _api(describe_quorum.handle, 0, 2),
    _api(update_features.handle, 0, 2),
    _api(describe_cluster.handle, 0, 2),
    _api(describe_producers.handle, 0, 0),
    _api(unregister_broker.handle, 0, 0),
    _api(describe_transactions.handle, 0, 0),
    _api(list_transactions.handle, 0, 2),
    _api(consumer_group_heartbeat.handle, 0, 1),
    _api(consumer_group_describe.handle, 0, 1),
    _api(list_config_resources.handle, 0, 1),
    _api(describe_topic_partitions.handle, 0, 0),
)

BY_KEY: Final = {api.key: api for api in APIS}


def advertised_versions() -> tuple[tuple[int, int, int], ...]:
    """Key, lowest and highest version of every API, as in the response to ApiVersions."""
    return tuple(sorted((api.key, api.first_version, api.last_version) for api in APIS))
