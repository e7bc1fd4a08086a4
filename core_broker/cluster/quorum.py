"""The metadata quorum: drives the Raft node of this process, and turns its log into the state of the cluster.

A change is a batch of records that the leader appends. It is committed once a majority of the voters has it on disk,
and only then becomes visible: the image is replaced and the listeners are called, on every node in the same order.
Nothing else changes the image, so a restart, which replays the same records, ends in the same state. A quorum of one
is the same code: what is on its disk is committed.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from core_broker.cluster import snapshots
from core_broker.cluster.carried_records import carried_removals
from core_broker.cluster.features import metadata_version
from core_broker.cluster.metadata import MetadataDraft, MetadataImage
from core_broker.cluster.metadata_log import (
    METADATA_DIRECTORY,
    METADATA_TOPIC,
    MetadataLog,
    MetadataLostError,
    QuorumStateFile,
)
from core_broker.cluster.metadata_records import decode_record, encode_record, records_of
from core_broker.cluster.metadata_transaction import MetadataTransaction
from core_broker.errors import BrokerError, ErrorCode
from core_broker.peers.peers import Address, PeerError, PeerRefusedError, Peers
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import ZERO_UUID, DecodeError
from core_broker.protocol.stored import metadata as stored
from core_broker.raft import wire
from core_broker.raft.messages import FetchRequest, FetchSnapshotRequest, Request, Response
from core_broker.raft.node import (
    ANYONE,
    Action,
    Committed,
    Flush,
    RaftNode,
    Reply,
    RoleChanged,
    Send,
    SnapshotInstalled,
    Timeouts,
)
from core_broker.raft.roles import Leader
from core_broker.raft.voters import NO_NODE, Endpoint, ReplicaKey, Voter, VoterSet
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

_COMMIT_TIMEOUT_SECONDS: Final = 30.0
_REPLAYED_BYTES_MAX: Final = 256 * 1024
"""A start that replays more than this writes a snapshot, so that the next start is fast."""
_SECOND_COPY_SECONDS_PER_TOPIC: Final = 0.02
"""A large state takes longer to write, so it is written less often."""
_SETTLE_CHECK_SECONDS: Final = 0.05
_RESIGN_SECONDS: Final = 0.5
"""How long a leader that stops waits until the others have heard of it."""

MetadataListener = Callable[[MetadataImage, Sequence[Message]], None]


class _Proposal:
    """Records of this leader that are not committed yet, and the state once they are."""

    __slots__ = ("committed", "first_offset", "image", "records")

    def __init__(
        self, first_offset: int, records: Sequence[Message], image: MetadataImage, committed: asyncio.Future[int]
    ) -> None:
        self.first_offset = first_offset
        self.records = records
        self.image = image
        self.committed = committed


class QuorumReplica(NamedTuple):
    """How far a replica of the metadata log is, with wall-clock times in milliseconds."""

    key: ReplicaKey
    is_voter: bool
    end_offset: int
    fetched_ms: int
    caught_up_ms: int


class MetadataQuorum:
    """The metadata of the cluster: `image` is the committed state, `propose` the only way to change it.

    As long as there is no other voter, a snapshot follows each change after `second_copy_seconds`: then either the log
    or the newest snapshot may be damaged without loss.
    """

    def __init__(
        self,
        log_dir: Path,
        *,
        cluster_id: str,
        settings: BrokerSettings,
        clock: Clock,
        peers: Peers | None = None,
        directory_id: bytes = ZERO_UUID,
        endpoints: Sequence[tuple[str, Endpoint]] = (),
        second_copy_seconds: float = 5.0,
    ) -> None:
        """`endpoints` are those of this node's controller listeners, by name."""
        self.directory = log_dir / METADATA_DIRECTORY
        self.node_id = settings.node_id
        self.image = MetadataImage(cluster_id=cluster_id)
        self.on_leadership: list[Callable[[bool], None]] = []
        """Called when this node becomes the active controller, and when it no longer is."""
        self.listener_failures = 0
        """How often a part of this node could not apply a change."""
        self.failed: asyncio.Future[None] | None = None
        """Done, with the error, once the log cannot be read or written any more."""
        self.caught_up = asyncio.Event()
        """Set once the image has everything that this node knew to be committed when it first learned about that."""
        self._settings = settings
        self._clock = clock
        self._peers = peers
        self.local = Voter(ReplicaKey(settings.node_id, directory_id), tuple(endpoints))
        self._second_copy_seconds = second_copy_seconds
        self._listeners: list[MetadataListener] = []
        self._proposals: deque[_Proposal] = deque()
        self._pending_image: MetadataImage | None = None
        self._transaction = MetadataTransaction()
        self._leader_waiters: list[asyncio.Future[None]] = []
        self._is_busy = False
        self._is_starting = False
        self._flush_running = False
        self._flush_wanted = 0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._known_endpoints: dict[int, Endpoint] = {}
        self._refused_at: dict[Address, float] = {}
        """When an address last refused a connection, until a request to it is answered."""
        self._snapshot_task: asyncio.Future[snapshots.SnapshotId] | None = None
        self._snapshot_timer: asyncio.TimerHandle | None = None
        self._bytes_in_snapshot = 0
        self._failure: BrokerError | None = None
        self._is_closed = False

    # -- state --

    @property
    def cluster_id(self) -> str:
        """Id of the cluster."""
        return self.image.cluster_id

    @property
    def leader_id(self) -> int:
        """The leader of the quorum; -1 if unknown."""
        return self.node.leader_id

    @property
    def leader_epoch(self) -> int:
        """The newest epoch of the quorum."""
        return self.node.epoch

    @property
    def is_leader(self) -> bool:
        """Whether this node is the active controller: it leads, and has replayed everything of earlier leaders."""
        return self._pending_image is not None and isinstance(self.node.role, Leader)

    @property
    def predecessor(self) -> tuple[int, float] | None:
        """The leader before this one, and how many seconds ago this node last heard from it; None if unknown."""
        role = self.node.role
        if not isinstance(role, Leader) or role.predecessor is None:
            return None
        return role.predecessor.leader_id, asyncio.get_running_loop().time() - role.predecessor.heard_at

    @property
    def has_lost_majority(self) -> bool:
        """Whether so many voters have ended that the others cannot decide anything.

        A refusal counts for a fetch timeout: a voter that is missed is asked again about that often.
        """
        since = asyncio.get_running_loop().time() - self._settings.controller_quorum_fetch_timeout_ms / 1000
        ended = {address for address, refused_at in self._refused_at.items() if refused_at >= since}
        others = (voter.key.id for voter in self.voters if voter.key.id != self.node_id)
        missing = sum(self._address_of(voter_id) in ended for voter_id in others)
        return missing > max(len(self.voters) - self.voters.majority, 0)

    @property
    def has_failed(self) -> bool:
        """Whether the log cannot be read or written any more, so that the image stays as it is."""
        return self._failure is not None

    @property
    def has_open_transaction(self) -> bool:
        """Whether a controller began a metadata transaction and did not end it."""
        return self._transaction.is_open

    @property
    def pending_image(self) -> MetadataImage:
        """The state with everything that is proposed and not committed yet; only the active controller has one."""
        if self._pending_image is None:
            raise self._not_controller()
        return self._pending_image

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.log.end_offset

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed; 0 while it is unknown."""
        return max(self.node.high_watermark, 0)

    @property
    def committed_offset(self) -> int:
        """Offset of the last record contained in the image."""
        return self.image.offset

    @property
    def voters(self) -> VoterSet:
        """The voters of the quorum."""
        return self.node.voters

    @property
    def kraft_version(self) -> int:
        """The finalised level of `kraft.version`."""
        return self.log.kraft_version

    @property
    def controller_address(self) -> Address | None:
        """Where the leader's controller listener is."""
        endpoint = self._endpoint_of(self.node.leader_id)
        return None if endpoint is None else Address(*endpoint)

    @property
    def controller_id_for_clients(self) -> int:
        """A broker that takes requests for the controller: every broker forwards them (KIP-590)."""
        leader = self.image.brokers.get(self.leader_id)
        if leader is not None and not leader.is_fenced:
            return leader.broker_id
        return min((broker.broker_id for broker in self.image.live_brokers()), default=-1)

    def replicas(self) -> list[QuorumReplica]:
        """The voters, and the observers that have fetched; only the leader knows more of them than their ids.

        May be called from any thread.
        """
        now, now_ms = self._loop.time(), self._clock.now_ms()

        def to_ms(moment: float) -> int:
            return -1 if moment < 0 else now_ms - int((now - moment) * 1000)

        own = QuorumReplica(self.node.key, self.node.is_voter, self.end_offset, now_ms, now_ms)
        role = self.node.role
        if not isinstance(role, Leader):
            return [
                own if voter.key.id == self.node_id else QuorumReplica(voter.key, True, -1, -1, -1)
                for voter in self.voters
            ]
        found = {
            key: QuorumReplica(
                key, self.voters.has(key), progress.end_offset, to_ms(progress.fetched_at), to_ms(progress.caught_up_at)
            )
            for key, progress in list(role.replicas.items())
        }
        silent = [
            QuorumReplica(voter.key, True, -1, -1, -1)
            for voter in self.voters
            if voter.key.id != self.node_id and not any(voter.key.matches(key) for key in found)
        ]
        return [own, *found.values(), *silent]

    def subscribe(self, listener: MetadataListener) -> None:
        """Call `listener(image, records)` after each committed batch; records replayed at start are only in `image`."""
        self._listeners.append(listener)

    # -- start and stop --

    def start(self) -> None:
        """Open the log and join the quorum; the only voter has replayed its log on return. Raises MetadataLostError."""
        loop = self._loop = asyncio.get_running_loop()
        self.failed = loop.create_future()
        settings = self._settings
        self.log = MetadataLog(
            self.directory,
            cluster_id=self.cluster_id,
            local=self.local,
            initial_voters=self._initial_voters(),
            is_static=len(settings.static_voters) > 1,
            settings=settings,
            clock=self._clock,
        )
        self.log.open()
        self.image = self.log.image
        timeouts = Timeouts(
            election=settings.controller_quorum_election_timeout_ms / 1000,
            election_backoff=settings.controller_quorum_election_backoff_max_ms / 1000,
            fetch=settings.controller_quorum_fetch_timeout_ms / 1000,
            retry=settings.controller_quorum_retry_backoff_ms / 1000,
        )
        self.node: RaftNode[bytes] = RaftNode(
            self.local.key,
            log=self.log,
            store=QuorumStateFile(self.directory),
            timeouts=timeouts,
            rng=random.Random(),
            may_vote=settings.is_controller,
        )
        self._is_starting = True
        try:
            self.node.start(loop.time())
            self._carry_out()
        finally:
            self._is_starting = False
        if self._failure is not None:
            raise self._failure
        if self._bytes_since_snapshot > _REPLAYED_BYTES_MAX:
            self._snapshot_now()
        log.info(
            "metadata replayed",
            extra={"offset": self.image.offset, "leader_epoch": self.leader_epoch, "topics": len(self.image.topics)},
        )

    def _initial_voters(self) -> VoterSet:
        """The voters of a new log: those of the settings, or this node if it forms a cluster of its own."""
        static = self._settings.static_voters
        if len(static) > 1:
            name = self._settings.controller_listener_names[0]
            return VoterSet(
                Voter(ReplicaKey(node_id), ((name, Endpoint(host, port)),)) for node_id, host, port in static
            )
        return VoterSet([self.local] if self._settings.forms_cluster else [])

    async def wait_for_leader(self, timeout_seconds: float) -> None:
        """Return once a leader is known, or the time is up."""
        if self.node.leader_id != NO_NODE:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leader_waiters.append(waiter)
        await asyncio.wait([waiter], timeout=timeout_seconds)

    async def close(self) -> None:
        """Wait for pending changes, hand over the lead, write a snapshot and close the log."""
        await self._settle()
        if self._failure is None:
            self._run(self.node.resign)
            if self._sending:
                await asyncio.wait(tuple(self._sending), timeout=_RESIGN_SECONDS)
        self._is_closed = True
        for timer in (self._timer, self._snapshot_timer):
            if timer is not None:
                timer.cancel()
        for task in tuple(self._sending):
            task.cancel()
        if self._snapshot_task is not None:
            await asyncio.wait([self._snapshot_task], timeout=_COMMIT_TIMEOUT_SECONDS)
        if self._failure is None and self._bytes_since_snapshot:
            self._snapshot_now()
        self.log.close()

    async def _settle(self) -> None:
        """Wait until everything proposed so far is in the image, as long as there are voters to commit it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _COMMIT_TIMEOUT_SECONDS
        while self._proposals and not self.has_lost_majority and loop.time() < deadline:
            await asyncio.wait([self._proposals[-1].committed], timeout=_SETTLE_CHECK_SECONDS)

    async def watch(self) -> None:
        """Raise the error with which the quorum fails, if it does: the broker must not go on with an old state."""
        assert self.failed is not None, "the quorum is not started"
        await self.failed

    # -- changes --

    def propose(self, records: Sequence[Message]) -> "asyncio.Future[int]":
        """Append records as one atomic batch; the future gives the offset of the first once the image contains them.

        Raises NOT_CONTROLLER at once on any node but the active controller; the future does when the lead is lost
        first, and then the records may or may not be committed.
        """
        if self._failure is not None:
            raise self._failure
        before = self.pending_image
        if not self.is_leader:
            raise self._not_controller()
        draft = MetadataDraft(before)
        draft.replay(records)
        first = self.log.end_offset
        image = draft.finish(offset=first + len(records) - 1, epoch=self.leader_epoch)
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        level = metadata_version(image.features)
        encoded = [encode_record(record, level) for record in records]
        self._run(lambda now: self.node.append(encoded, now), proposal=_Proposal(first, records, image, committed))
        return committed

    async def append(self, records: Sequence[Message]) -> int:
        """Propose records and wait until they are committed.

        If the caller is cancelled meanwhile, the records are committed all the same.
        """
        return await self.commit(self.propose(records))

    async def commit(self, proposed: "asyncio.Future[int]") -> int:
        """Wait for a proposal. Raises REQUEST_TIMED_OUT if that takes too long."""
        try:
            async with asyncio.timeout(_COMMIT_TIMEOUT_SECONDS):
                return await asyncio.shield(proposed)
        except TimeoutError:
            proposed.add_done_callback(_ignore_result)
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "the metadata change was not committed in time") from None

    async def change_voters(self, change: Callable[[RaftNode[bytes], float], int], *, wait: bool = True) -> None:
        """Append other voters (the node's add_voter, remove_voter or update_voter), and wait for the commit or not."""
        offset: list[int] = []
        self._run(lambda now: offset.append(change(self.node, now)))
        if not wait:
            return
        try:
            async with asyncio.timeout(_COMMIT_TIMEOUT_SECONDS):
                while self.image.offset < offset[0]:
                    if not self.is_leader:
                        raise self._not_controller()
                    await asyncio.sleep(self._settings.controller_quorum_retry_backoff_ms / 1000)
        except TimeoutError:
            text = (
                "the new voters were not committed in time; they may still be: describe the quorum before trying again"
            )
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, text) from None

    def _not_controller(self) -> BrokerError:
        return BrokerError(ErrorCode.NOT_CONTROLLER, f"node {self.node_id} is not the active controller")

    # -- the node's inputs --

    async def on_request(self, message: Any, listener: str) -> Message:
        """Answer Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch or FetchSnapshot of another node."""
        if self._is_closed:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {self.node_id} is stopping")
        if message.cluster_id is not None and message.cluster_id != self.cluster_id:
            text = f"this node belongs to cluster {self.cluster_id}, not to {message.cluster_id}"
            raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
        request = wire.from_wire(message)
        replied: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._run(lambda now: self.node.on_request(request, replied, now))
        response = await replied
        leader = self._endpoint_of(response.leader_id, listener)
        return wire.response_to_wire(request, response, {} if leader is None else {response.leader_id: leader})

    def _run(self, step: Callable[[float], object], proposal: _Proposal | None = None) -> None:
        """Give the node an input and carry out what it wants done. Raises BrokerError if the disk fails meanwhile."""
        if self._failure is not None:
            raise self._failure
        try:
            step(asyncio.get_running_loop().time())
        except (BrokerError, OSError) as error:
            if isinstance(error, BrokerError) and error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            # The node may take itself for the leader of an epoch that its log does not have.
            raise self._fail(error) from error
        if proposal is not None:
            self._proposals.append(proposal)
            self._pending_image = proposal.image
        self._carry_out()

    def _go_on(self, step: Callable[[float], object]) -> None:
        """As `_run`, where no caller waits for an error; `watch` raises it."""
        if self._failure is None and not self._is_closed:
            try:
                self._run(step)
            except BrokerError:
                if self._failure is None:
                    raise

    def _carry_out(self) -> None:
        if self._is_busy:  # a listener or a follow-up of an action: the loop below goes on with it
            return
        self._is_busy = True
        try:
            while self._failure is None and (actions := self.node.take_actions()):
                for action in actions:
                    self._do(action)
        except (BrokerError, OSError) as error:
            self._fail(error)
            return
        finally:
            self._is_busy = False
        self._set_timer()

    def _do(self, action: Action) -> None:
        match action:
            case Send(to, request):
                task = asyncio.get_running_loop().create_task(self._send(to, request))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
            case Reply(token, response):
                if not token.done():
                    token.set_result(response)
            case Flush(end_offset):
                self._flush(end_offset)
            case Committed(high_watermark):
                self._apply(high_watermark)
            case RoleChanged():
                self._on_role_changed(action)
            case SnapshotInstalled():
                self._on_snapshot_installed()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wakes_at = self.node.wakes_at
        if self._failure is None and not self._is_closed and wakes_at < float("inf"):
            self._timer = asyncio.get_running_loop().call_at(wakes_at, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._go_on(self.node.tick)

    def _fail(self, error: Exception) -> BrokerError:
        """Stop for good: after a failed write or an unreadable record the state is unknown until a restart."""
        if isinstance(error, MetadataLostError):
            self._failure = error
        else:
            text = f"the metadata log cannot be written: {error}; fix the disk and restart the broker"
            self._failure = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        log.critical("metadata log failed", extra={"reason": str(error)})
        self._drop_proposals(self._failure)
        if self.failed is not None and not self.failed.done():
            self.failed.set_exception(self._failure)
            self.failed.exception()  # a broker that is starting has no reader of it
        return self._failure

    # -- sending --

    async def _send(self, to: int, request: Request) -> None:
        response: Response | None = None
        is_refused = False
        address = self._address_of(to)
        if address is not None and self._peers is not None:
            is_fetch = isinstance(request, FetchRequest | FetchSnapshotRequest)
            try:
                message = await self._peers.call(
                    address,
                    wire.to_wire(request, self.cluster_id),
                    timeout_seconds=self._settings.controller_quorum_request_timeout_ms / 1000,
                    # A fetch may wait for records, and votes must not queue behind it.
                    purpose="quorum-fetch" if is_fetch else "quorum",
                )
                response, endpoints = wire.response_from_wire(message)
                self._known_endpoints.update(endpoints)
                self._refused_at.pop(address, None)
            except PeerError as error:
                if is_refused := isinstance(error, PeerRefusedError):
                    self._refused_at[address] = asyncio.get_running_loop().time()
                log.debug("quorum request failed", extra={"to": str(address), "reason": str(error)})
            except BrokerError as error:
                log.warning(
                    "quorum request was refused",
                    extra={"to": str(address), "error": error.code.name, "reason": error.message},
                )
        if is_refused:
            self._go_on(lambda now: self.node.on_refused(to, request, now))
        else:
            self._go_on(lambda now: self.node.on_response(to, request, response, now))

    def _address_of(self, node_id: int) -> Address | None:
        if node_id != ANYONE:
            endpoint = self._endpoint_of(node_id)
            return None if endpoint is None else Address(*endpoint)
        own = {Address(*endpoint) for _, endpoint in self.local.endpoints}
        candidates = {Address(*server) for server in self._settings.quorum_servers} - own
        for voter in self.voters:
            if voter.key.id != self.node_id and (endpoint := self._endpoint_of(voter.key.id)) is not None:
                candidates.add(Address(*endpoint))
        return random.choice(sorted(candidates)) if candidates else None

    def _endpoint_of(self, node_id: int, listener: str | None = None) -> Endpoint | None:
        voter = self.voters.get(node_id)
        names = self._settings.controller_listener_names
        found = None if voter is None else voter.endpoint(listener or (names[0] if names else ""))
        return found or self._known_endpoints.get(node_id)

    # -- the disk --

    def _flush(self, end_offset: int) -> None:
        if self._is_starting:
            self.log.log.flush()
            self.node.on_flushed(end_offset, asyncio.get_running_loop().time())
            return
        self._flush_wanted = max(self._flush_wanted, end_offset)
        if self._flush_running:
            return
        self._flush_running = True
        flush = asyncio.get_running_loop().run_in_executor(None, self.log.log.flush)
        flush.add_done_callback(self._on_flushed)

    def _on_flushed(self, flush: asyncio.Future[None]) -> None:
        self._flush_running = False
        if flush.cancelled() or self._failure is not None:
            return
        if (error := flush.exception()) is not None:
            self._fail(error if isinstance(error, Exception) else OSError(str(error)))
            return
        # Not what was asked for: the thread may have synced records that were appended before it began.
        end_offset = self.log.log.recovery_point
        self._go_on(lambda now: self.node.on_flushed(end_offset, now))
        if end_offset < min(self._flush_wanted, self.end_offset) and not self._flush_running:
            self._flush(self.end_offset)

    # -- the state --

    def _on_role_changed(self, action: RoleChanged) -> None:
        log.info(
            "quorum leader is known" if action.leader_id != NO_NODE else "quorum has no leader",
            extra={"leader_id": action.leader_id, "leader_epoch": action.epoch},
        )
        if not action.is_leader and self._pending_image is not None:
            self._pending_image = None
            self._drop_proposals(self._not_controller())
            self._call_leadership_listeners(is_leader=False)
        if action.leader_id != NO_NODE:
            waiters, self._leader_waiters = self._leader_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def _call_leadership_listeners(self, *, is_leader: bool) -> None:
        for listener in self.on_leadership:
            listener(is_leader)

    def _apply(self, high_watermark: int) -> None:
        """Apply everything below the high watermark: this leader's proposals, and what the log has of others."""
        while self.image.offset + 1 < high_watermark:
            proposal = self._proposals[0] if self._proposals else None
            if proposal is not None and proposal.first_offset == self.image.offset + 1:
                self._proposals.popleft()
                self._transaction.take(proposal.records)
                self._publish(proposal.image, proposal.records, proposal.committed)
            else:
                end = high_watermark if proposal is None else min(high_watermark, proposal.first_offset)
                self._apply_from_log(end)
        self.caught_up.set()
        role = self.node.role
        if isinstance(role, Leader) and self._pending_image is None and self.image.offset >= role.start_offset:
            self._pending_image = self.image
            self._call_leadership_listeners(is_leader=True)
        self._snapshot_soon()

    def _apply_from_log(self, end: int) -> None:
        for header, records in self.log.read_records(self.image.offset + 1, end):
            try:
                messages = self._transaction.take([decode_record(record.value or b"") for record in records])
            except DecodeError as error:
                raise MetadataLostError(
                    f"{self.directory}: records {header.base_offset} to {header.last_offset} cannot be read: {error}"
                ) from error
            draft = MetadataDraft(self.image)
            draft.replay(messages)
            self._publish(draft.finish(offset=header.last_offset, epoch=header.leader_epoch), messages)

    def _publish(
        self, image: MetadataImage, records: Sequence[Message], committed: "asyncio.Future[int] | None" = None
    ) -> None:
        self.image = image
        failure: Exception | None = None
        for listener in self._listeners if records else ():
            try:
                listener(image, records)
            except Exception as error:  # noqa: BLE001 - the other listeners must still be called
                failure = error
                self.listener_failures += 1
        if committed is None or committed.done():
            if failure is not None:
                log.error("metadata listener failed", exc_info=failure)
        elif failure is None:
            committed.set_result(image.offset - len(records) + 1)
        else:
            committed.set_exception(failure)

    def _on_snapshot_installed(self) -> None:
        """Take the state of a snapshot: as if its records had followed, after the removal of what it lacks."""
        before, after = self.image, self.log.image
        self._transaction = MetadataTransaction()
        removed = [
            stored.RemoveTopicRecord(topic_id=topic_id)
            for topic_id in before.topics_by_id
            if topic_id not in after.topics_by_id
        ]
        self._publish(after, [*removed, *carried_removals(before.carried, after.carried), *records_of(after)])
        self.caught_up.set()

    def _drop_proposals(self, error: BrokerError) -> None:
        while self._proposals:
            committed = self._proposals.popleft().committed
            if not committed.done():
                committed.set_exception(error)
                committed.add_done_callback(_ignore_result)

    # -- snapshots --

    def _snapshot_now(self) -> None:
        """Write a snapshot at start or stop: the next start has less to replay, and a second copy of the state."""
        if self._transaction.is_open:
            return
        voters = self.log.voters_at(self.image.offset)
        now = self._clock.now_ms()
        written = snapshots.write_snapshot(self.directory, self.image, voters=voters, timestamp_ms=now)
        self.log.trim(written, high_watermark=self.high_watermark)
        self._bytes_in_snapshot = self.log.data_bytes

    @property
    def _bytes_since_snapshot(self) -> int:
        return self.log.data_bytes - self._bytes_in_snapshot

    def _snapshot_soon(self) -> None:
        if self._bytes_since_snapshot >= self._settings.metadata_log_max_record_bytes_between_snapshots:
            self._begin_snapshot()
        elif self._bytes_since_snapshot and self._snapshot_timer is None and len(self.voters) == 1:
            delay = self._second_copy_seconds + _SECOND_COPY_SECONDS_PER_TOPIC * len(self.image.topics)
            self._snapshot_timer = asyncio.get_running_loop().call_later(delay, self._begin_snapshot)

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a thread; images are immutable, so changes need not wait for it."""
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
            self._snapshot_timer = None
        is_needed = self._bytes_since_snapshot and not self._transaction.is_open
        if self._snapshot_task is not None or not is_needed or self._is_starting:
            return
        self._bytes_in_snapshot = self.log.data_bytes
        write = partial(
            snapshots.write_snapshot,
            self.directory,
            self.image,
            voters=self.log.voters_at(self.image.offset),
            timestamp_ms=self._clock.now_ms(),
        )
        self._snapshot_task = asyncio.get_running_loop().run_in_executor(None, write)
        self._snapshot_task.add_done_callback(self._on_snapshot_done)

    def _on_snapshot_done(self, task: asyncio.Future[snapshots.SnapshotId]) -> None:
        self._snapshot_task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error("metadata snapshot could not be written", extra={"reason": str(error)})
            return
        self.log.trim(task.result(), high_watermark=self.high_watermark)


def _ignore_result(future: "asyncio.Future[int]") -> None:
    """Take note of an exception that no caller waits for any more."""
    if not future.cancelled():
        future.exception()


__all__ = ["METADATA_TOPIC", "MetadataLostError", "MetadataQuorum", "QuorumReplica"]
