"""Every API that this broker supports: the list behind dispatch and the response to ApiVersions."""

from collections.abc import Callable, Iterable
from inspect import iscoroutinefunction
from typing import Any, Final, get_type_hints

from core_broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller_registration,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    expire_delegation_token,
    fetch,
    fetch_metadata,
    fetch_snapshot,
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
    remove_raft_voter,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
    write_txn_markers,
)
from core_broker.handlers.api import Api, MessageHandler, Refusal, Screen
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from core_broker.protocol.messages.produce import ProduceRequest, ProduceResponse


def _api(
    handler: MessageHandler,
    first_version: int,
    last_version: int,
    *,
    is_forwarded: bool = False,
    is_exempt: bool = False,
    check: Callable[[Any], None] | None = None,
    refuse: Refusal | None = None,
    screen: Screen | None = None,
) -> Api:
    """A row for a handler; its annotations say which API it is."""
    hints = get_type_hints(handler)
    return _row(
        hints["request"],
        hints["return"],
        first_version,
        last_version,
        handler=handler,
        is_async=iscoroutinefunction(handler),
        is_forwarded=is_forwarded,
        is_exempt=is_exempt,
        check=check,
        refuse=refuse,
        screen=screen,
    )


def _row(request: type[Message], response: type[Message], first_version: int, last_version: int, **how: Any) -> Api:
    if request.API_KEY is None:
        raise TypeError(f"{request.__name__} has no API key")
    name = request.__name__.removesuffix("Request")
    return Api(request.API_KEY, name, first_version, last_version, request.FLEXIBLE_SINCE, request, response, **how)


_FORWARDED: Final = (
    _api(create_topics.handle, 2, 7, is_forwarded=True),
    _api(delete_topics.handle, 1, 6, is_forwarded=True),
    _api(create_acls.handle, 1, 3, is_forwarded=True, check=create_acls.check),
    _api(delete_acls.handle, 1, 3, is_forwarded=True, check=delete_acls.check),
    _api(alter_configs.handle, 0, 2, is_forwarded=True, screen=alter_configs.screen),
    _api(create_partitions.handle, 0, 3, is_forwarded=True),
    _api(elect_leaders.handle, 0, 2, is_forwarded=True),
    _api(incremental_alter_configs.handle, 0, 1, is_forwarded=True, screen=incremental_alter_configs.screen),
    _api(alter_partition_reassignments.handle, 0, 1, is_forwarded=True),
    _api(list_partition_reassignments.handle, 0, 0, is_forwarded=True),
    _api(alter_client_quotas.handle, 0, 1, is_forwarded=True),
    _api(describe_quorum.handle, 0, 2, is_forwarded=True),
    _api(update_features.handle, 0, 2, is_forwarded=True),
    _api(unregister_broker.handle, 0, 0, is_forwarded=True),
    _api(add_raft_voter.handle, 0, 1, is_forwarded=True),
    _api(remove_raft_voter.handle, 0, 0, is_forwarded=True),
    _api(alter_user_scram_credentials.handle, 0, 0, is_forwarded=True),
    _api(create_delegation_token.handle, 1, 3, is_forwarded=True, refuse=create_delegation_token.refuse),
    _api(renew_delegation_token.handle, 1, 2, is_forwarded=True, refuse=renew_delegation_token.refuse),
    _api(expire_delegation_token.handle, 1, 2, is_forwarded=True, refuse=expire_delegation_token.refuse),
)
"""Changes of the metadata, and what only the active controller knows; on brokers and on controllers."""

_EVERYWHERE: Final = (
    *_FORWARDED,
    _api(sasl_handshake.handle, 0, 1, is_exempt=True),
    _api(api_versions.handle, 0, 4),
    _api(describe_acls.handle, 1, 3, check=describe_acls.check),
    _api(describe_configs.handle, 1, 4),
    _api(sasl_authenticate.handle, 0, 2, is_exempt=True),
    _api(describe_cluster.handle, 0, 2),
)

BROKER_APIS: Final = (
    *_EVERYWHERE,
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
    _api(delete_records.handle, 0, 2),
    _api(init_producer_id.handle, 0, 5),
    _api(offset_for_leader_epoch.handle, 2, 4),
    _api(add_partitions_to_txn.handle, 0, 5),
    _api(add_offsets_to_txn.handle, 0, 4),
    _api(end_txn.handle, 0, 5),
    _api(write_txn_markers.handle, 1, 2, is_exempt=True),
    _api(txn_offset_commit.handle, 0, 5),
    _api(alter_replica_log_dirs.handle, 1, 2),
    _api(describe_log_dirs.handle, 1, 5),
    _api(delete_groups.handle, 0, 2),
    _api(offset_delete.handle, 0, 0),
    _api(describe_producers.handle, 0, 0),
    _api(describe_transactions.handle, 0, 0),
    _api(list_transactions.handle, 0, 2),
    _api(consumer_group_heartbeat.handle, 0, 1),
    _api(consumer_group_describe.handle, 0, 1),
    _api(describe_client_quotas.handle, 0, 1),
    _api(list_config_resources.handle, 0, 1),
    _api(describe_topic_partitions.handle, 0, 0),
    _api(describe_delegation_token.handle, 1, 3),
    _api(describe_user_scram_credentials.handle, 0, 0),
)
"""The APIs of listeners for clients and other brokers."""

CONTROLLER_APIS: Final = (
    *_EVERYWHERE,
    _api(fetch_metadata.handle, 13, 18, is_exempt=True),
    _api(vote.handle, 0, 2, is_exempt=True),
    _api(begin_quorum_epoch.handle, 0, 1, is_exempt=True),
    _api(end_quorum_epoch.handle, 0, 1, is_exempt=True),
    _api(fetch_snapshot.handle, 0, 1, is_exempt=True),
    _api(update_raft_voter.handle, 0, 0, is_exempt=True),
    _api(envelope.handler(BROKER_APIS), 0, 0, is_exempt=True),
    _api(broker_registration.handle, 0, 4, is_exempt=True),
    _api(broker_heartbeat.handle, 0, 2, is_exempt=True),
    _api(controller_registration.handle, 0, 0, is_exempt=True),
    _api(alter_partition.handle, 2, 3, is_exempt=True),
    _api(allocate_producer_ids.handle, 0, 0, is_exempt=True),
    _api(assign_replicas_to_dirs.handle, 0, 0, is_exempt=True),
)
"""The APIs of controller listeners, for brokers and other controllers."""

BROKER_BY_KEY: Final = {api.key: api for api in BROKER_APIS}
CONTROLLER_BY_KEY: Final = {api.key: api for api in CONTROLLER_APIS}
BY_KEY: Final = {**CONTROLLER_BY_KEY, **BROKER_BY_KEY}
"""All APIs, for their names."""


def advertised_versions(apis: Iterable[Api] = BROKER_APIS) -> tuple[tuple[int, int, int], ...]:
    """Key, lowest and highest version of APIs, as in the response to ApiVersions."""
    return tuple(sorted((api.key, api.first_version, api.last_version) for api in apis))
