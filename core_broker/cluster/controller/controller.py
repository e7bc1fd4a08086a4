"""The front of the controller: plans each change against the newest metadata, and writes it to the metadata log.

A change is planned against the image with everything that is proposed already, and proposed without awaiting anything
in between. So changes never conflict, and a caller waits only for the commit. What is proposed but never committed,
because another node leads the quorum now, fails with NOT_CONTROLLER.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from core_broker.cluster.controller.acls import AclCreationPlan, AclDeletionPlan
from core_broker.cluster.controller.activation import plan_activation
from core_broker.cluster.controller.client_quotas import plan_quota_changes
from core_broker.cluster.controller.configs import ConfigChange, plan_increment, plan_replacement
from core_broker.cluster.controller.delegation_tokens import (
    check_supported,
    plan_expiry,
    plan_removals,
    plan_renewal,
    plan_token,
)
from core_broker.cluster.controller.elections import (
    leads_partitions,
    plan_config_effects,
    plan_controlled_shutdown,
    plan_election,
    plan_fencing,
    plan_offline_directories,
    plan_rebalance,
    plan_unfencing,
)
from core_broker.cluster.controller.features import plan_feature_updates
from core_broker.cluster.controller.heartbeats import BrokerState, Sessions, has_caught_up, next_state, state_of
from core_broker.cluster.controller.partition_changes import plan_alter_partition
from core_broker.cluster.controller.reassignments import Reassigner
from core_broker.cluster.controller.registrations import (
    Registration,
    check_broker_epoch,
    plan_controller_registration,
    plan_registration,
    plan_unregistration,
)
from core_broker.cluster.controller.replica_directories import plan_directories
from core_broker.cluster.controller.scram_credentials import plan_scram_changes
from core_broker.cluster.controller.topics import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    TopicPlanner,
    plan_more_partitions,
)
from core_broker.cluster.controller.transitions import RECOVERING, Election, TopicRules
from core_broker.cluster.effective_settings import broker_settings
from core_broker.cluster.features import RELEASES, metadata_version
from core_broker.cluster.metadata import BrokerImage, ConfigResource, MetadataDraft, MetadataImage
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import alter_client_quotas as quotas_wire
from core_broker.protocol.messages import alter_partition_reassignments as reassignments_wire
from core_broker.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from core_broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from core_broker.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest
from core_broker.protocol.messages.controller_registration import ControllerRegistrationRequest
from core_broker.protocol.principals import Principal
from core_broker.protocol.stored import metadata as stored
from core_broker.security.acls import AclEntry, AclFilter
from core_broker.security.quotas import UNLIMITED, MutationQuota
from core_broker.security.tokens import DelegationToken, TokenStore
from core_broker.service.clock import Clock
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

PRODUCER_ID_BLOCK: Final = 1000

_COMMIT_TIMEOUT_SECONDS: Final = 30.0
_PREPARATIONS_MAX: Final = 3

P = ParamSpec("P")
T = TypeVar("T")

Prepare = Callable[[Sequence[Message]], Awaitable[None]]


class LeaderRebalance(NamedTuple):
    """When leadership goes back to preferred replicas; the defaults are Kafka's."""

    interval_seconds: float = 300.0
    imbalance_percentage: int = 10


class Controller:
    """The only writer of the metadata. Every change raises NOT_CONTROLLER unless this node is the active controller."""

    def __init__(
        self,
        quorum: MetadataQuorum,
        settings: BrokerSettings,
        clock: Clock,
        *,
        prepare: Prepare | None = None,
        session_seconds: float = 9.0,
        rebalance: LeaderRebalance | None = None,
        first_records: Sequence[Message] = (),
    ) -> None:
        """`prepare` gets the records of new partitions before they are committed, for slow preparations.

        `session_seconds` is how long a broker may be silent; without `rebalance` leaders stay where they are. If this
        controller forms a cluster, that begins with `first_records`.
        """
        self._quorum = quorum
        self._settings = settings
        self._clock = clock
        self._prepare = prepare
        self._rebalance = rebalance
        self._first_records = first_records
        self._sessions = Sessions(session_seconds)
        self._tokens = TokenStore(
            lambda: self._pending().carried, secret_key=settings.delegation_token_secret_key, clock=clock
        )
        self._preparing = asyncio.Lock()
        self._newest: asyncio.Future[int] | None = None
        self.elections = 0
        """Leaders elected by this controller; `unclean_elections` of them may lack committed records."""
        self.unclean_elections = 0
        quorum.on_leadership.append(self._on_leadership)
        if quorum.is_leader:
            self._on_leadership(True)

    @property
    def image(self) -> MetadataImage:
        """The committed state."""
        return self._quorum.image

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings including dynamic changes."""
        return broker_settings(self.image, self._settings)

    # -- the active controller --

    async def run(self) -> None:
        """While this node is the active controller: fence silent brokers, rebalance leaders, remove expired tokens."""
        checked_at = rebalanced_at = swept_at = self._clock.monotonic()
        sweep_seconds = self._settings.delegation_token_expiry_check_interval_ms / 1000
        while True:
            await asyncio.sleep(min(1.0, self._sessions.session_seconds / 8))
            now = self._clock.monotonic()
            if not self._quorum.is_leader:
                checked_at = rebalanced_at = swept_at = now
                continue
            if now - checked_at > self._sessions.session_seconds / 2:
                log.warning(
                    "controller was suspended; sessions of brokers begin anew", extra={"seconds": now - checked_at}
                )
                self._sessions.restart(now)
            try:
                await self.fence_silent_brokers()
                if self._rebalance is not None and now - rebalanced_at >= self._rebalance.interval_seconds:
                    rebalanced_at = now
                    await self.rebalance_leaders(self._rebalance.imbalance_percentage)
                if now - swept_at >= sweep_seconds:
                    swept_at = now
                    await self.remove_expired_tokens()
            except BrokerError as error:
                log.warning("periodic work of the controller failed", extra={"reason": str(error)})
            checked_at = self._clock.monotonic()

    def _on_leadership(self, is_active: bool) -> None:
        """Give every broker a fresh session, since its heartbeats went to another controller until now.

        The broker of this node has none before its first heartbeat: its last incarnation is certainly over. If the last
        controller has died, so has the broker in the same process: its session began when that controller was last
        heard from. Half of it is left in any case, in which a broker that lives sends a heartbeat.
        """
        self._sessions.clear()
        if not is_active:
            return
        level, release = metadata_version(self.image.features), self._settings.initial_release_version
        if self._settings.is_set("initial.release.version") and self.image.features and level != RELEASES[release]:
            extra = {"initial_release_version": release, "metadata_version": level}
            log.info("initial.release.version is for new clusters; this one keeps its levels", extra=extra)
        now = self._clock.monotonic()
        predecessor, silent_seconds = self._quorum.predecessor or (None, 0.0)
        for broker in self._quorum.pending_image.brokers.values():
            if broker.broker_id == predecessor:
                used = min(silent_seconds, self._sessions.session_seconds / 2)
                self._sessions.touch(broker.broker_id, broker.epoch, now - used)
            elif broker.broker_id != self._settings.node_id:
                self._sessions.touch(broker.broker_id, broker.epoch, now)
            if broker.in_controlled_shutdown:
                self._sessions.begin_shutdown(broker.broker_id, self._quorum.end_offset - 1)
        for batch in plan_activation(
            self._quorum.pending_image,
            self._settings,
            has_open_transaction=self._quorum.has_open_transaction,
            first_records=self._first_records,
        ):
            self._propose(batch)

    def _pending(self) -> MetadataImage:
        """The image that a change is planned against; nothing may be awaited from here to `_commit`."""
        if not self._quorum.is_leader:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")
        return self._quorum.pending_image

    async def _commit(self, records: Sequence[Message]) -> None:
        """Propose records and wait until they are committed; with none, until all that was proposed before is."""
        if records:
            self._propose(records)
        newest = self._newest
        if newest is None or newest.done():
            return
        # A caller that is cancelled does not cancel the change.
        await asyncio.wait([newest], timeout=_COMMIT_TIMEOUT_SECONDS)
        if not newest.done():
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the change was not committed in time")
        newest.result()

    def _propose(self, records: Sequence[Message]) -> None:
        elected = _elected(records, self._quorum.pending_image)
        self._newest = self._quorum.propose(records)
        self._newest.add_done_callback(lambda committed: self._count(committed, elected))

    def _count(self, committed: asyncio.Future[int], elected: Sequence[stored.PartitionChangeRecord]) -> None:
        """Count elections, unless they were not committed. That marks the error as seen: its caller may be gone."""
        if not committed.cancelled() and committed.exception() is None:
            self.elections += len(elected)
            for record in elected:
                if record.leader_recovery_state == RECOVERING:
                    self.unclean_elections += 1
                    topic = self.image.topics_by_id.get(record.topic_id)
                    extra = {"topic": topic and topic.name, "partition": record.partition_id, "leader": record.leader}
                    log.warning("unclean leader elected; acknowledged records may be lost", extra=extra)

    # -- brokers --

    async def register_broker(self, request: BrokerRegistrationRequest, *, unfence: bool = False) -> int:
        """Register a broker; returns its epoch. Raises BrokerError.

        `unfence` is for a node that is its own controller and knows that the broker has all metadata: the broker is
        unfenced in the same batch, and partitions for which that makes no difference are left alone.
        """
        image = self._pending()
        existing = image.brokers.get(request.broker_id)
        now = self._clock.monotonic()
        plan = plan_registration(
            request,
            image,
            self._settings,
            next_offset=self._quorum.end_offset,
            has_session=existing is not None and self._sessions.is_valid(existing.broker_id, existing.epoch, now),
        )
        if unfence:
            records = self._with_unfencing(request.broker_id, plan, image)
            self._sessions.remove(request.broker_id)
        else:
            records = plan.records
            self._sessions.touch(request.broker_id, plan.epoch, now)
        await self._commit(records)
        log.info(
            "broker registered",
            extra={"broker_id": request.broker_id, "broker_epoch": plan.epoch, "is_clean": plan.is_clean},
        )
        return plan.epoch

    def _with_unfencing(self, broker_id: int, plan: Registration, image: MetadataImage) -> list[Message]:
        registered = _replayed(image, plan.records)
        unfencing = plan_unfencing(registered.brokers[broker_id], registered, self._settings)
        records = [*plan.records, *unfencing]
        if plan.is_clean:
            final = _replayed(registered, unfencing)
            return [record for record in records if not _is_undone(record, image, final)]
        if image.next_producer_id:
            # The last allocation may be lost in a damaged log; its ids must not be handed out again.
            records.append(_producer_ids(None, image.next_producer_id + PRODUCER_ID_BLOCK))
        return records

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        """Note that a broker is alive and move it to its next state. Raises STALE_BROKER_EPOCH.

        Almost every heartbeat changes nothing and is answered without waiting.
        """
        image = self._pending()
        broker = check_broker_epoch(request.broker_id, request.broker_epoch, image)
        now, offset = self._clock.monotonic(), request.current_metadata_offset
        self._sessions.touch(broker.broker_id, broker.epoch, now, metadata_offset=offset)
        state = next_state(
            broker,
            request,
            leads=lambda: leads_partitions(broker.broker_id, image),
            is_handover_known=lambda: self._is_handover_known(broker.broker_id, image),
        )
        records = self._transition(broker, state, image)
        if request.offline_log_dirs:
            changed = _replayed(image, records)
            offline = request.offline_log_dirs
            records += plan_offline_directories(changed.brokers[broker.broker_id], offline, changed, self._settings)
        if records:
            if state is BrokerState.CONTROLLED_SHUTDOWN:
                last_offset = self._quorum.end_offset + len(records) - 1
                self._sessions.begin_shutdown(broker.broker_id, last_offset)
            await self._commit(records)
        elif self._quorum.image.brokers.get(broker.broker_id) is not broker:
            await self._commit([])
        return BrokerHeartbeatResponse(
            is_caught_up=has_caught_up(broker, request),
            is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
            should_shut_down=state is BrokerState.SHUTDOWN_NOW,
        )

    def _transition(self, broker: BrokerImage, state: BrokerState, image: MetadataImage) -> list[Message]:
        """The records that bring a broker into a state; a broker that may stop now is fenced."""
        before = state_of(broker)
        if state is before or (state is BrokerState.SHUTDOWN_NOW and before is BrokerState.FENCED):
            return []
        log.info("broker changes its state", extra={"broker_id": broker.broker_id, "state": state.value})
        match state:
            case BrokerState.UNFENCED:
                return plan_unfencing(broker, image, self._settings)
            case BrokerState.CONTROLLED_SHUTDOWN:
                return plan_controlled_shutdown(broker, image, self._settings)
            case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
                return plan_fencing(broker, image, self._settings)

    def _is_handover_known(self, broker_id: int, image: MetadataImage) -> bool:
        active = [b.broker_id for b in image.brokers.values() if not b.is_fenced and not b.in_controlled_shutdown]
        return self._sessions.lowest_active_offset(active) >= self._sessions.shutdown_offset(broker_id)

    async def fence_silent_brokers(self) -> None:
        """Fence every broker whose session is over."""
        for broker_id in self._sessions.expired(self._clock.monotonic()):
            image = self._pending()
            broker = image.brokers.get(broker_id)
            self._sessions.remove(broker_id)
            if broker is not None and not broker.is_fenced:
                log.warning("broker was silent for too long and is fenced", extra={"broker_id": broker_id})
                await self._commit(plan_fencing(broker, image, self._settings))

    async def unregister_broker(self, broker_id: int) -> None:
        """Remove a broker that will not return. Raises BrokerError if it is unknown or runs on this node."""
        image = self._pending()
        records = plan_unregistration(broker_id, image, self._settings)
        if broker_id == self._settings.node_id and not image.brokers[broker_id].is_fenced:
            text = f"broker {broker_id} is running; stop it before unregistering it"
            raise BrokerError(ErrorCode.INVALID_REQUEST, text)
        self._sessions.remove(broker_id)
        await self._commit(records)
        log.info("broker unregistered", extra={"broker_id": broker_id})

    async def register_controller(self, request: ControllerRegistrationRequest) -> None:
        """Register a controller, active or not. Raises BrokerError."""
        await self._commit(plan_controller_registration(request, self._pending()))
        log.info("controller registered", extra={"controller_id": request.controller_id})

    # -- partitions --

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Change ISRs as their leaders propose. Raises STALE_BROKER_EPOCH."""
        records, response = plan_alter_partition(request, self._pending(), self._settings)
        await self._commit(records)
        return response

    async def elect_leaders(
        self, election: Election, partitions: Iterable[tuple[str, int]] | None
    ) -> dict[tuple[str, int], BrokerError | None]:
        """Elect leaders; returns a result for each partition. For all (None), only those that need an election."""
        image = self._pending()
        rules = TopicRules(image, self._settings)
        everywhere = ((name, index) for name, topic in image.topics.items() for index in topic.partitions)
        plans = {
            (topic, index): _attempt(plan_election, topic, index, election, image, rules)
            for topic, index in (everywhere if partitions is None else partitions)
        }
        await self._commit([plan for plan in plans.values() if not isinstance(plan, BrokerError)])
        results = {key: plan if isinstance(plan, BrokerError) else None for key, plan in plans.items()}
        if partitions is None:
            not_needed = ErrorCode.ELECTION_NOT_NEEDED
            return {key: error for key, error in results.items() if error is None or error.code is not not_needed}
        return results

    async def rebalance_leaders(self, imbalance_percentage: int) -> int:
        """Give leadership back to preferred replicas; returns how many partitions got another leader."""
        records = plan_rebalance(self._pending(), self._settings, imbalance_percentage=imbalance_percentage)
        await self._commit(records)
        if records:
            log.info("leaders rebalanced", extra={"partitions": len(records)})
        return len(records)

    async def reassign(
        self, request: reassignments_wire.AlterPartitionReassignmentsRequest
    ) -> reassignments_wire.AlterPartitionReassignmentsResponse:
        """Start, replace and cancel reassignments; the response has a result for each partition."""
        image = self._pending()
        rules = TopicRules(image, self._settings)
        reassigner = Reassigner(image, rules, allow_factor_change=request.allow_replication_factor_change)
        records: dict[tuple[str, int], Message] = {}
        response = reassignments_wire.AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
        )
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                index = partition.partition_index
                plan = _attempt(reassigner.plan, topic.name, index, partition.replicas)
                code, text = (plan.code, plan.message) if isinstance(plan, BrokerError) else (ErrorCode.NONE, None)
                partitions.append(reassignments_wire.ReassignablePartitionResponse(index, code, text))
                if isinstance(plan, stored.PartitionChangeRecord):
                    records[topic.name, index] = plan
            response.responses.append(reassignments_wire.ReassignableTopicResponse(topic.name, partitions))
        await self._commit(list(records.values()))
        return response

    async def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        """Note the log directories of replicas. Raises BrokerError."""
        records, response = plan_directories(request, self._pending(), self._settings)
        await self._commit(records)
        return response

    # -- topics --

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, quota: MutationQuota = UNLIMITED
    ) -> list[CreatedTopic | BrokerError]:
        """Create all valid topics in one atomic change; returns a result for each topic, in order."""
        topic_ids: dict[str, bytes] = {}

        def plan(image: MetadataImage) -> tuple[list[CreatedTopic | BrokerError], Sequence[Message]]:
            current = broker_settings(image, self._settings)
            planner = TopicPlanner(image, current, topic_ids=topic_ids, quota=quota)
            return [_attempt(planner.plan, topic) for topic in topics], planner.records

        results = await self._add_partitions(plan, validate_only=validate_only)
        for result in results:
            if isinstance(result, CreatedTopic) and not validate_only:
                log.info("topic created", extra={"topic": result.name, "partitions": result.partition_count})
        return results

    async def delete_topics(
        self, topic_ids: Sequence[bytes], *, quota: MutationQuota = UNLIMITED
    ) -> list[BrokerError | None]:
        """Delete topics by id; returns a result for each, in order."""
        if not self._settings.delete_topic_enable:
            text = "topics cannot be deleted because of delete.topic.enable=false"
            return [BrokerError(ErrorCode.TOPIC_DELETION_DISABLED, text) for _ in topic_ids]
        image = self._pending()
        plans = {topic_id: _attempt(_plan_deletion, topic_id, image, quota) for topic_id in topic_ids}
        deleted = [topic_id for topic_id, plan in plans.items() if not isinstance(plan, BrokerError)]
        await self._commit([plan for plan in plans.values() if not isinstance(plan, BrokerError)])
        for topic_id in deleted:
            log.info("topic deleted", extra={"topic": image.topics_by_id[topic_id].name})
        return [plan if isinstance(plan := plans[topic_id], BrokerError) else None for topic_id in topic_ids]

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False, quota: MutationQuota = UNLIMITED
    ) -> list[BrokerError | None]:
        """Add partitions to topics; returns a result for each topic, in order."""

        def plan(image: MetadataImage) -> tuple[list[BrokerError | None], Sequence[Message]]:
            plans = [_attempt(plan_more_partitions, topic, image, quota) for topic in topics]
            records = [record for plan in plans if not isinstance(plan, BrokerError) for record in plan]
            return [plan if isinstance(plan, BrokerError) else None for plan in plans], records

        return await self._add_partitions(plan, validate_only=validate_only)

    async def _add_partitions(
        self, plan: Callable[[MetadataImage], tuple[list[T], Sequence[Message]]], *, validate_only: bool
    ) -> list[T]:
        """Plan and commit new partitions. If a change meanwhile makes the prepared plan invalid, make another."""
        if self._prepare is None or validate_only:
            results, records = plan(self._pending())
            await self._commit([] if validate_only else records)
            return results
        async with self._preparing:  # else two requests could prepare the same topic
            for _ in range(_PREPARATIONS_MAX):
                image = self._pending()
                results, records = plan(image)
                await self._prepare(records)
                if _is_still_valid(records, image, self._pending()):
                    break
            else:
                results, records = plan(self._pending())
            await self._commit(records)
        return results

    # -- configs --

    async def replace_configs(
        self, resources: Sequence[tuple[ConfigResource, Mapping[str, str | None]]], *, validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Replace the configs of each resource (AlterConfigs); returns a result for each, in order."""
        image = self._pending()
        plans = [_attempt(plan_replacement, *resource, image, self._settings) for resource in resources]
        return await self._commit_configs(plans, image, validate_only=validate_only)

    async def alter_configs(
        self, resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]], *, validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Change individual configs (IncrementalAlterConfigs); returns a result for each resource, in order."""
        image = self._pending()
        plans = [_attempt(plan_increment, *resource, image, self._settings) for resource in resources]
        return await self._commit_configs(plans, image, validate_only=validate_only)

    async def _commit_configs(
        self, plans: Sequence[list[stored.ConfigRecord] | BrokerError], image: MetadataImage, *, validate_only: bool
    ) -> list[BrokerError | None]:
        configs = [record for plan in plans if not isinstance(plan, BrokerError) for record in plan]
        if not validate_only:
            await self._commit([*configs, *plan_config_effects(configs, image, self._settings)])
        return [plan if isinstance(plan, BrokerError) else None for plan in plans]

    async def alter_client_quotas(
        self, entries: Sequence[quotas_wire.EntryData], *, validate_only: bool = False
    ) -> list[quotas_wire.EntryResult]:
        """Change the quotas of all valid entities in one atomic change; returns a result for each entity."""
        plan = plan_quota_changes(entries, self._pending().carried)
        if not validate_only:
            await self._commit(plan.records)
            for record in plan.records:
                entity = {part.entity_type: part.entity_name for part in record.entity}
                value = None if record.remove else record.value
                log.info("client quota changed", extra={"entity": entity, "key": record.key, "value": value})
        return plan.results

    # -- ACLs --

    async def create_acls(self, entries: Sequence[AclEntry]) -> list[BrokerError | None]:
        """Create ACLs; returns a result for each, in order. One that exists already is a success without a change."""
        plan = AclCreationPlan(entries, self._pending())
        await self._commit(plan.records)
        return plan.results

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[list[AclEntry] | BrokerError]:
        """Delete the ACLs that match a filter; returns for each filter what it has found."""
        plan = AclDeletionPlan(filters, self._pending())
        await self._commit(plan.records)
        return plan.results

    # -- features and producer ids --

    async def allocate_producer_ids(
        self, count: int = PRODUCER_ID_BLOCK, *, broker_id: int | None = None, broker_epoch: int = -1
    ) -> range:
        """Allocate a block of producer ids that were never used before, for a broker. Raises STALE_BROKER_EPOCH."""
        image = self._pending()
        if broker_id is None:
            broker = image.brokers.get(self._settings.node_id)
        else:
            broker = check_broker_epoch(broker_id, broker_epoch, image)
        first = image.next_producer_id
        if first + count > LONG_MAX:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been handed out")
        await self._commit([_producer_ids(broker, first + count)])
        return range(first, first + count)

    async def update_features(self, levels: Mapping[str, int], *, validate_only: bool = False) -> None:
        """Finalise features at levels, all or none; 0 removes a feature. Raises BrokerError."""
        records = plan_feature_updates(
            levels, self._pending(), self._settings, kraft_version=self._quorum.kraft_version
        )
        if not validate_only:
            await self._commit(records)

    # -- credentials and tokens --

    async def alter_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """Change the SCRAM credentials of users; the response has a result for each of them."""
        records, response = plan_scram_changes(request, self._pending())
        await self._commit(records)
        for record in records:
            if isinstance(record, stored.UserScramCredentialRecord | stored.RemoveUserScramCredentialRecord):
                is_removed = isinstance(record, stored.RemoveUserScramCredentialRecord)
                extra = {"user": record.name, "mechanism": record.mechanism, "is_removed": is_removed}
                log.info("SCRAM credential changed", extra=extra)
        return response

    async def create_token(
        self, *, owner: Principal, requester: Principal, renewers: Sequence[Principal], lifetime_ms: int
    ) -> tuple[DelegationToken, bytes]:
        """Create a delegation token; returns it with its HMAC. Raises BrokerError."""
        token = plan_token(
            owner=owner,
            requester=requester,
            renewers=renewers,
            lifetime_ms=lifetime_ms,
            image=self._pending(),
            settings=self._settings,
            now_ms=self._clock.now_ms(),
        )
        await self._commit([token.record])
        log.info("delegation token created", extra={"token_id": token.token_id, "owner": str(owner)})
        return token, self._tokens.hmac_of(token.token_id)

    async def renew_token(self, hmac: bytes, *, requester: Principal, period_ms: int) -> int:
        """Let a delegation token live longer; returns when it expires now. Raises BrokerError."""
        check_supported(self._pending(), self._settings)
        token = self._tokens.find_by_hmac(hmac)
        plan = plan_renewal(token, requester, period_ms, self._settings, now_ms=self._clock.now_ms())
        await self._commit(plan.records)
        return plan.expires_ms

    async def expire_token(self, hmac: bytes, *, requester: Principal, period_ms: int) -> int:
        """Set the expiry of a delegation token, or remove it; returns when it expires now. Raises BrokerError."""
        check_supported(self._pending(), self._settings)
        token = self._tokens.find_by_hmac(hmac)
        plan = plan_expiry(token, requester, period_ms, now_ms=self._clock.now_ms())
        await self._commit(plan.records)
        return plan.expires_ms

    async def remove_expired_tokens(self) -> int:
        """Remove all expired delegation tokens; returns how many."""
        count = 0
        while records := plan_removals(self._tokens, now_ms=self._clock.now_ms()):
            await self._commit(records)
            count += len(records)
            log.info("expired delegation tokens removed", extra={"tokens": len(records)})
        return count


def _attempt(plan: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | BrokerError:
    """The plan or its error: one invalid item does not stop the others of its request."""
    try:
        return plan(*args, **kwargs)
    except BrokerError as error:
        return error


def _plan_deletion(topic_id: bytes, image: MetadataImage, quota: MutationQuota) -> stored.RemoveTopicRecord:
    """The record that deletes a topic. Raises BrokerError."""
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "This topic id does not exist.")
    quota.charge(topic_id, len(topic.partitions))
    return stored.RemoveTopicRecord(topic_id=topic_id)


def _replayed(image: MetadataImage, records: Sequence[Message]) -> MetadataImage:
    """The image after records."""
    draft = MetadataDraft(image)
    draft.replay(records)
    return draft.finish(offset=image.offset, epoch=image.epoch)


def _is_undone(record: Message, image: MetadataImage, final: MetadataImage) -> bool:
    """Whether a change of a partition is undone by another one of the same batch, so that both can be left out."""
    if not isinstance(record, stored.PartitionChangeRecord):
        return False
    before = image.topics_by_id[record.topic_id].partitions[record.partition_id]
    after = final.topics_by_id[record.topic_id].partitions[record.partition_id]
    epochs = {"leader_epoch": before.leader_epoch, "partition_epoch": before.partition_epoch}
    return msgspec.structs.replace(after, **epochs) == before


def _is_still_valid(records: Sequence[Message], planned: MetadataImage, current: MetadataImage) -> bool:
    """Whether a plan of new partitions can be carried out after a pause: same brokers, and no topic is gone."""
    created = {record.topic_id for record in records if isinstance(record, stored.TopicRecord)}
    grown = {record.topic_id for record in records if isinstance(record, stored.PartitionRecord)} - created
    return planned.brokers is current.brokers and all(topic_id in current.topics_by_id for topic_id in grown)


def _producer_ids(broker: BrokerImage | None, next_producer_id: int) -> stored.ProducerIdsRecord:
    broker_id, epoch = (-1, -1) if broker is None else (broker.broker_id, broker.epoch)
    return stored.ProducerIdsRecord(broker_id=broker_id, broker_epoch=epoch, next_producer_id=next_producer_id)


def _elected(records: Sequence[Message], before: MetadataImage) -> list[stored.PartitionChangeRecord]:
    """The changes that give a partition another leader."""
    changes = [record for record in records if isinstance(record, stored.PartitionChangeRecord) and record.leader >= 0]
    return [
        record
        for record in changes
        if record.leader != before.topics_by_id[record.topic_id].partitions[record.partition_id].leader_id
    ]
