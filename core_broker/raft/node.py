"""A member of the metadata quorum: messages, time and finished disk writes in, actions out.

The rules are those of KIP-595: followers fetch, so a fetch offset is an acknowledgement; a majority of such offsets
commits, if it reaches into the leader's own epoch. Votes are asked for in advance (KIP-996), and the voters are records
of the log itself (KIP-853). Nothing here reads a clock, a socket or a disk; the same code runs in a broker and in the
simulator.
"""

import math
import random
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from core_broker.errors import BrokerError, ErrorCode
from core_broker.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    LogPosition,
    Request,
    Response,
    SnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from core_broker.raft.replicated_log import ElectionState, ElectionStore, ReplicatedLog
from core_broker.raft.roles import (
    Candidate,
    Contact,
    Follower,
    Leader,
    ParkedFetch,
    Prospective,
    ReplicaProgress,
    Resigned,
    Role,
    Unattached,
    Votes,
)
from core_broker.raft.voters import NO_NODE, ReplicaKey, Voter, VoterSet

T = TypeVar("T")

_CHECK_QUORUM: Final = 1.5
"""Of the fetch timeout: followers that lost a leader have replaced it by then, so it must have stepped down."""
_HASTE: Final = 0.25
"""Of the election timeout: how long the voters wait, at most, after the leader's process has ended."""
_OBSERVERS_MAX: Final = 1000
_CAUGHT_UP_SECONDS: Final = 3600.0
"""How recently a replica must have been caught up to become a voter."""


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds; the defaults are those of Kafka's settings `controller.quorum.*`."""

    election: float = 1.0
    election_backoff: float = 1.0
    fetch: float = 2.0
    fetch_wait: float = 0.5
    retry: float = 0.02


class Send(msgspec.Struct, frozen=True):
    """Send a request. The response goes to `on_response`, and so does the news that there is none."""

    to: int
    """A node id; ANYONE for any node that may know the leader."""
    request: Request


class Reply(msgspec.Struct, frozen=True):
    """Answer the request that came with this token."""

    token: Any
    response: Response


class Flush(msgspec.Struct, frozen=True):
    """Write the log to disk up to here, then call `on_flushed`."""

    end_offset: int


class Committed(msgspec.Struct, frozen=True):
    """Everything below this offset is committed."""

    high_watermark: int


class RoleChanged(msgspec.Struct, frozen=True):
    """The epoch, its leader or the own role in it is another. What was appended and not committed may be lost."""

    epoch: int
    leader_id: int
    is_leader: bool


class SnapshotInstalled(msgspec.Struct, frozen=True):
    """The log was replaced by a snapshot, which has to be loaded."""

    snapshot: LogPosition


Action: TypeAlias = Send | Reply | Flush | Committed | RoleChanged | SnapshotInstalled
ANYONE: Final = -2


class RaftNode(Generic[T]):
    """One node of the quorum. Call `take_actions` after every other call and carry out what it returns, in order."""

    def __init__(
        self,
        key: ReplicaKey,
        *,
        log: ReplicatedLog[T],
        store: ElectionStore,
        timeouts: Timeouts,
        rng: random.Random,
        may_vote: bool = True,
    ) -> None:
        self.key = key
        self.high_watermark = -1
        """Where the committed records end; -1 while that is unknown."""
        self.role: Role = Unattached(election_at=0.0)
        self._log = log
        self._store = store
        self._timeouts = timeouts
        self._rng = rng
        self._may_vote = may_vote
        self._state = ElectionState()
        self._flushed = log.end_offset
        self._asking_until = 0.0
        self._contact: Contact | None = None
        self._actions: list[Action] = []
        self._now = 0.0

    # -- state --

    @property
    def epoch(self) -> int:
        """The newest epoch known."""
        return self._state.epoch

    @property
    def leader_id(self) -> int:
        """The leader of that epoch, NO_NODE if unknown."""
        return self.key.id if isinstance(self.role, Leader) else self.role.leader_id

    @property
    def voters(self) -> VoterSet:
        """The voters, as the log says."""
        return self._log.voters

    @property
    def is_voter(self) -> bool:
        """Whether this node may stand for election."""
        return self._may_vote and self.voters.has(self.key)

    @property
    def wakes_at(self) -> float:
        """When `tick` has something to do."""
        match self.role:
            case Unattached() as role:
                return min(role.election_at if self.is_voter else self._asking_until, self._asking_until)
            case Follower() as role:
                waits = role.fetching is not None or (role.snapshot is None and self._flushed < self._log.end_offset)
                return role.leader_lost_at if waits else min(role.leader_lost_at, role.fetch_at)
            case Leader() as role:
                expiring = min((fetch.expires_at for fetch in role.parked.values()), default=math.inf)
                # The only voter need not introduce itself, and cannot lose its majority.
                return expiring if self._is_alone() else min(role.introduce_at, expiring, role.quorum_lost_at)
            case Prospective() | Candidate() | Resigned() as role:
                return role.election_at

    def take_actions(self) -> list[Action]:
        """What has to be done now."""
        actions, self._actions = self._actions, []
        return actions

    # -- time --

    def start(self, now: float) -> None:
        """Begin with what the disk has."""
        self._now = now
        self._state = self._store.load()
        if self._state.epoch < self._log.last_epoch:  # the file is lost or damaged; the log knows better
            self._save(ElectionState(self._log.last_epoch))
        self._flushed = self._log.end_offset
        if self._log.snapshot is not None:
            self._advance(self._log.snapshot.offset)
        if self._state.leader_id not in (NO_NODE, self.key.id):
            self._follow(self._state.epoch, self._state.leader_id)
        else:
            self._detach(self._state.epoch)
        if self._is_alone():
            self._stand()

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._now = now
        match self.role:
            case Unattached() as role:
                if self.is_voter and now >= role.election_at:
                    self._ask_around()
                elif now >= self._asking_until:
                    self._look_for_leader()
            case Prospective() as role if now >= role.election_at:
                self._give_up_asking(role)
            case Candidate() as role if now >= role.election_at:
                self._ask_around()
            case Follower() as role:
                self._tick_follower(role)
            case Leader() as role:
                self._tick_leader(role)
            case Resigned() as role if now >= role.election_at:
                self._detach(self.epoch)
            case _:
                pass

    def _tick_follower(self, role: Follower) -> None:
        if self._now >= role.leader_lost_at:
            if self.is_voter:
                self._ask_around()
            else:
                self._detach(self.epoch)
        elif role.fetching is None and self._now >= role.fetch_at:
            self._fetch(role)

    def _tick_leader(self, role: Leader) -> None:
        if self._now >= role.quorum_lost_at and not self._is_alone():
            self.resign(self._now)
            return
        for parked in [fetch for fetch in role.parked.values() if self._now >= fetch.expires_at]:
            self._answer_parked(role, parked)
        if self._now >= role.introduce_at:
            self._introduce(role, to_all=False)

    # -- becoming --

    def _save(self, state: ElectionState) -> None:
        if state != self._state:
            self._store.save(state)
            self._state = state

    def _become(self, role: Role, epoch: int, *, voted: ReplicaKey | None = None) -> None:
        """Take a role; a vote is remembered for as long as its epoch lasts."""
        assert epoch >= self.epoch, f"epoch {epoch} is older than {self.epoch}"
        if voted is None and epoch == self.epoch:
            voted = self._state.voted
        if isinstance(self.role, Leader):
            self._refuse_parked(self.role)
        was_leader, old = self.leader_id, self.epoch
        self.role = role
        leader = self.leader_id
        self._save(ElectionState(epoch, leader, voted))
        if leader not in (was_leader, NO_NODE, self.key.id):
            self._contact = Contact(leader, self._now)
        if (was_leader, old) != (leader, epoch):
            self._actions.append(RoleChanged(epoch, leader, is_leader=isinstance(role, Leader)))

    def _detach(self, epoch: int) -> None:
        self._asking_until = self._now
        self._become(Unattached(election_at=self._now + self._election_timeout()), epoch)

    def _follow(self, epoch: int, leader_id: int) -> None:
        lost_at = self._now + self._timeouts.fetch
        self._become(Follower(leader_id, fetch_at=self._now, leader_lost_at=lost_at), epoch)
        self.tick(self._now)

    def _ask_around(self) -> None:
        """Ask for votes in advance."""
        if self._is_alone():
            self._stand()
            return
        leader = self.leader_id
        role = Prospective(Votes({self.key.id}), self._now + self._election_timeout(), leader)
        self._become(role, self.epoch)
        self._request_votes(is_pre_vote=True)

    def _stand(self) -> None:
        """Begin an epoch, and vote for this node."""
        role = Candidate(Votes({self.key.id}), self._now + self._election_timeout())
        self._become(role, self.epoch + 1, voted=self.key)
        if len(role.votes.granted) >= self.voters.majority:
            self._lead(role)
        else:
            self._request_votes(is_pre_vote=False)

    def _give_up_asking(self, role: Prospective) -> None:
        """Return to the leader, who may be well, or wait."""
        if role.leader_id == NO_NODE:
            self._detach(self.epoch)
        else:
            self._follow(self.epoch, role.leader_id)

    def _lead(self, role: Candidate) -> None:
        timeout = self._timeouts.fetch
        leader = Leader(
            start_offset=self._log.end_offset,
            quorum_lost_at=self._now + timeout * _CHECK_QUORUM,
            introduce_at=self._now + timeout / 2,
            predecessor=self._contact,
        )
        self._contact = None
        self._become(leader, self.epoch)
        granted_by = [voter.key for voter in self.voters if voter.key.id in role.votes.granted]
        self._log.append_leader_change(self.epoch, self.key.id, granted_by)
        self._flush()
        self._introduce(leader, to_all=True)

    def resign(self, now: float) -> None:
        """Stop leading, for a shutdown or because a majority is out of reach."""
        self._now = now
        if not isinstance(self.role, Leader):
            return
        replicas = self.role.replicas
        others = [voter.key for voter in self.voters if voter.key.id != self.key.id]
        best_first = sorted(others, key=lambda key: -self._progress(replicas, key).end_offset)
        request = EndEpochRequest(self.epoch, self.key.id, tuple(best_first))
        self._become(Resigned(self._now + self._election_timeout()), self.epoch)
        for key in others:
            self._actions.append(Send(key.id, request))

    def _election_timeout(self) -> float:
        return self._timeouts.election * (1 + self._rng.random())

    def _is_alone(self) -> bool:
        return self.is_voter and len(self.voters) == 1

    # -- requests --

    def on_request(self, request: Request, token: Any, now: float) -> None:
        """A request of another node; the reply may come later."""
        self._now = now
        match request:
            case VoteRequest():
                self._reply(token, self._on_vote(request))
            case BeginEpochRequest():
                self._reply(token, self._on_begin_epoch(request))
            case EndEpochRequest():
                self._reply(token, self._on_end_epoch(request))
            case FetchRequest():
                self._on_fetch(request, token)
            case FetchSnapshotRequest():
                self._reply(token, self._on_fetch_snapshot(request))

    def _reply(self, token: Any, response: Response) -> None:
        self._actions.append(Reply(token, response))

    def _response(self, error: ErrorCode = ErrorCode.NONE) -> Response:
        return Response(error=error, epoch=self.epoch, leader_id=self.leader_id)

    def _on_vote(self, request: VoteRequest) -> VoteResponse:
        if not request.voter.matches(self.key):
            return self._vote(ErrorCode.INVALID_VOTER_KEY)
        if request.epoch < self.epoch:
            return self._vote(ErrorCode.FENCED_LEADER_EPOCH)
        if request.epoch > self.epoch:
            self._detach(request.epoch)
        if not self._may_grant(request):
            return self._vote()
        if not request.is_pre_vote:
            # The vote is on disk before the response leaves, and time is given to the candidate.
            role = Unattached(election_at=self._now + self._election_timeout())
            self._become(role, self.epoch, voted=request.candidate)
        return self._vote(is_granted=True)

    def _may_grant(self, request: VoteRequest) -> bool:
        """Whether the candidate's log has everything, and nothing speaks against a new leader."""
        if request.end < LogPosition(self._log.last_epoch, self._log.end_offset):
            return False
        role = self.role
        if request.is_pre_vote:
            return not isinstance(role, Leader) and not (isinstance(role, Follower) and role.has_fetched)
        if isinstance(role, Leader | Candidate | Resigned) or self.leader_id != NO_NODE:
            return False
        return self._state.voted is None or self._state.voted == request.candidate

    def _vote(self, error: ErrorCode = ErrorCode.NONE, *, is_granted: bool = False) -> VoteResponse:
        return VoteResponse(error=error, epoch=self.epoch, leader_id=self.leader_id, is_granted=is_granted)

    def _on_begin_epoch(self, request: BeginEpochRequest) -> Response:
        if not request.voter.matches(self.key):
            return self._response(ErrorCode.INVALID_VOTER_KEY)
        if request.epoch < self.epoch:
            return self._response(ErrorCode.FENCED_LEADER_EPOCH)
        self._learn(request.epoch, request.leader_id)
        return self._response()

    def _on_end_epoch(self, request: EndEpochRequest) -> Response:
        if request.epoch < self.epoch:
            return self._response(ErrorCode.FENCED_LEADER_EPOCH)
        if isinstance(self.role, Leader) and request.epoch == self.epoch:
            return self._response(ErrorCode.INVALID_REQUEST)
        if request.epoch > self.epoch:
            self._detach(request.epoch)
        if not self.is_voter or isinstance(self.role, Candidate):
            return self._response()
        # The best successor stands at once, the others later, in their order.
        rank = next((i for i, key in enumerate(request.successors) if key.matches(self.key)), len(request.successors))
        delay = self._timeouts.election * rank * self._rng.uniform(0.5, 1.0) if rank else 0.0
        if isinstance(self.role, Follower | Unattached):
            self._become(Unattached(election_at=self._now + delay), self.epoch)
            self._asking_until = self._now + delay + self._timeouts.election
            self.tick(self._now)
        return self._response()

    # -- the leader's side of fetches --

    def _leader_error(self, epoch: int) -> ErrorCode:
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if isinstance(self.role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _on_fetch(self, request: FetchRequest, token: Any) -> None:
        error = self._leader_error(request.epoch)
        role = self.role
        if error or not isinstance(role, Leader):
            self._reply(token, FetchResponse(error=error, epoch=self.epoch, leader_id=self.leader_id))
            return
        if (old := role.parked.pop(request.replica, None)) is not None:
            self._reply(old.token, self._fetched(old.request))
        difference = self._difference(request)
        if difference is None:
            # Only now: where the logs differ, the offset acknowledges nothing (KAFKA-13141).
            self._on_progress(role, request)
            if not isinstance(self.role, Leader):  # it committed the removal of this node
                self._reply(token, FetchResponse(epoch=self.epoch, leader_id=self.leader_id))
                return
            is_news = request.offset < self._log.end_offset or request.high_watermark < self.high_watermark
            if not is_news and request.wait_ms > 0:
                expires = self._now + min(request.wait_ms / 1000, self._timeouts.fetch_wait)
                role.parked[request.replica] = ParkedFetch(request, token, expires)
                return
        self._reply(token, difference or self._fetched(request))

    def _difference(self, request: FetchRequest) -> FetchResponse | None:
        """Where the follower's log and this one part; None if this log continues the follower's."""
        log, snapshot = self._log, self._log.snapshot
        if request.offset == 0 and log.start_offset == 0:
            return None
        is_before_start = request.offset < log.start_offset or request.last_epoch < log.start_epoch
        is_other_start = request.offset == log.start_offset and request.last_epoch != log.start_epoch
        if snapshot is not None and (is_before_start or is_other_start):
            return self._fetched(request, snapshot=snapshot)
        end = log.end_of_epoch(request.last_epoch)
        if end.epoch != request.last_epoch or end.offset < request.offset:
            return self._fetched(request, diverging=end)
        return None

    def _fetched(
        self, request: FetchRequest, *, diverging: LogPosition | None = None, snapshot: LogPosition | None = None
    ) -> FetchResponse:
        is_alike = diverging is None and snapshot is None
        return FetchResponse(
            epoch=self.epoch,
            leader_id=self.leader_id,
            high_watermark=self.high_watermark,
            log_start=self._log.start_offset,
            records=self._log.read(request.offset) if is_alike else b"",
            diverging=diverging,
            snapshot=snapshot,
        )

    def _answer_parked(self, role: Leader, parked: ParkedFetch) -> None:
        del role.parked[parked.request.replica]
        self._reply(parked.token, self._fetched(parked.request))

    def _answer_all_parked(self) -> None:
        if isinstance(self.role, Leader):
            for parked in list(self.role.parked.values()):
                self._answer_parked(self.role, parked)

    def _refuse_parked(self, role: Leader) -> None:
        for parked in role.parked.values():
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._reply(parked.token, FetchResponse(error=error, epoch=self.epoch, leader_id=NO_NODE))

    def _on_fetch_snapshot(self, request: FetchSnapshotRequest) -> SnapshotResponse:
        error = self._leader_error(request.epoch)
        found = None if error else self._log.read_snapshot(request.snapshot, request.position)
        if not error:
            assert isinstance(self.role, Leader)
            self._note_contact(self.role, request.replica)
            if found is None:
                error = ErrorCode.SNAPSHOT_NOT_FOUND
            elif not 0 <= request.position < found[0]:
                error = ErrorCode.POSITION_OUT_OF_RANGE
        size, data = (0, b"") if error or found is None else found
        return SnapshotResponse(
            error=error,
            epoch=self.epoch,
            leader_id=self.leader_id,
            snapshot=request.snapshot,
            size=size,
            position=request.position,
            data=data,
        )

    def _progress(self, replicas: dict[ReplicaKey, ReplicaProgress], key: ReplicaKey) -> ReplicaProgress:
        """Of a voter, whose directory may not be known yet."""
        if key in replicas:
            return replicas[key]
        return next((progress for other, progress in replicas.items() if other.matches(key)), ReplicaProgress())

    def _on_progress(self, role: Leader, request: FetchRequest) -> None:
        progress = role.replicas.get(request.replica)
        if progress is None:
            self._forget_observers(role)
            progress = role.replicas[request.replica] = ReplicaProgress()
        end = self._log.end_offset
        if request.offset >= end:
            progress.caught_up_at = self._now
        elif request.offset >= progress.end_when_fetched >= 0:
            progress.caught_up_at = max(progress.caught_up_at, progress.fetched_at)
        progress.end_when_fetched = end
        progress.end_offset = request.offset
        progress.fetched_at = self._now
        self._note_contact(role, request.replica)
        self._commit(role)

    def _forget_observers(self, role: Leader) -> None:
        """Keep the number of observers bounded: a connection may name any id."""
        if len(role.replicas) >= _OBSERVERS_MAX:
            observers = [key for key in role.replicas if not self.voters.has(key)]
            for key in sorted(observers, key=lambda key: role.replicas[key].fetched_at)[: _OBSERVERS_MAX // 10]:
                del role.replicas[key]

    def _note_contact(self, role: Leader, replica: ReplicaKey) -> None:
        """A majority that fetches keeps the leader in office."""
        if not self.voters.has(replica):
            return
        role.fetched_since.add(replica.id)
        needed = self.voters.majority - (1 if self.voters.has(self.key) else 0)
        if len(role.fetched_since & {voter.key.id for voter in self.voters}) >= needed:
            role.fetched_since.clear()
            role.quorum_lost_at = self._now + self._timeouts.fetch * _CHECK_QUORUM

    def _commit(self, role: Leader) -> None:
        """Raise the high watermark to what a majority of the voters has on disk."""
        ends = [
            self._flushed if voter.key.matches(self.key) else self._progress(role.replicas, voter.key).end_offset
            for voter in self.voters
        ]
        if not ends:
            return
        end = sorted(ends, reverse=True)[self.voters.majority - 1]
        # An older epoch's records could still be replaced, unless one of this epoch follows them (Raft, figure 8).
        if end > role.start_offset and end > self.high_watermark:
            self._advance(end)
            self._answer_all_parked()
            if not self.voters.has(self.key) and self.high_watermark > self._log.voters_offset:
                self.resign(self._now)

    def _advance(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self._actions.append(Committed(high_watermark))

    def _introduce(self, role: Leader, *, to_all: bool) -> None:
        interval = self._timeouts.fetch / 2
        role.introduce_at = self._now + interval
        for voter in self.voters:
            if voter.key.id == self.key.id:
                continue
            silent = self._now - self._progress(role.replicas, voter.key).fetched_at >= interval
            if to_all or silent:
                me = self.voters.get(self.key.id)
                request = BeginEpochRequest(self.epoch, self.key.id, voter.key, me.endpoints if me else ())
                self._actions.append(Send(voter.key.id, request))

    # -- changes --

    def append(self, records: Sequence[T], now: float) -> int:
        """Append records as one batch; they are committed when the high watermark passes them.

        Raises BrokerError (NOT_CONTROLLER) on any node but the leader.
        """
        self._now = now
        self._leading()
        offset = self._log.append(self.epoch, records)
        self._appended()
        return offset

    def add_voter(self, voter: Voter, now: float) -> int:
        """Append the voters with another one; returns the offset to be committed. Raises BrokerError."""
        role = self._changing_voters(now)
        if self.voters.get(voter.key.id) is not None:
            text = f"node {voter.key.id} is already a voter"
            raise BrokerError(ErrorCode.DUPLICATE_VOTER, text)
        progress = role.replicas.get(voter.key)
        if progress is None or progress.caught_up_at < max(now - _CAUGHT_UP_SECONDS, 0):
            text = f"node {voter.key.id} has not caught up with the metadata log yet"
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, text)
        return self._append_voters(self.voters.with_voter(voter))

    def remove_voter(self, key: ReplicaKey, now: float) -> int:
        """Append the voters without one; returns the offset to be committed. Raises BrokerError."""
        self._changing_voters(now)
        if not self.voters.has(key):
            raise BrokerError(ErrorCode.VOTER_NOT_FOUND, f"node {key.id} is not a voter")
        if len(self.voters) == 1:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"node {key.id} is the only voter")
        return self._append_voters(self.voters.without(key.id))

    def update_voter(self, voter: Voter, now: float) -> int:
        """Append a voter's new endpoints; returns the offset to be committed. Raises BrokerError."""
        self._changing_voters(now)
        if not self.voters.has(voter.key):
            raise BrokerError(ErrorCode.VOTER_NOT_FOUND, f"node {voter.key.id} is not a voter")
        return self._append_voters(self.voters.with_voter(voter))

    def _leading(self) -> Leader:
        if not isinstance(self.role, Leader):
            raise BrokerError(ErrorCode.NOT_CONTROLLER, f"node {self.key.id} does not lead the metadata quorum")
        return self.role

    def _changing_voters(self, now: float) -> Leader:
        """One change at a time: two majorities that differ by one voter always overlap."""
        self._now = now
        role = self._leading()
        if self.high_watermark <= role.start_offset or self.high_watermark <= self._log.voters_offset:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is not committed yet")
        return role

    def _append_voters(self, voters: VoterSet) -> int:
        # The new majority gets the full time to fetch; for a leader that was the only voter, none has ever counted.
        self._leading().quorum_lost_at = self._now + self._timeouts.fetch * _CHECK_QUORUM
        offset = self._log.append_voters(self.epoch, voters)
        self._appended()
        return offset

    def _appended(self) -> None:
        self._answer_all_parked()
        self._flush()

    def _flush(self) -> None:
        self._actions.append(Flush(self._log.end_offset))

    def on_flushed(self, end_offset: int, now: float) -> None:
        """Everything below `end_offset` is on disk."""
        self._now = now
        self._flushed = max(self._flushed, min(end_offset, self._log.end_offset))
        match self.role:
            case Leader() as role:
                self._commit(role)
            case Follower() as role:
                # The next fetch acknowledges what is on disk, so it waits for the disk.
                self.tick(now)
            case _:
                pass

    # -- responses --

    def on_response(self, sender: int, request: Request, response: Response | None, now: float) -> None:
        """The response to a request that was sent, or None if it failed or took too long."""
        self._now = now
        match request:
            case FetchRequest() | FetchSnapshotRequest():
                self._on_fetch_over(request, response)
            case VoteRequest() if isinstance(response, VoteResponse):
                self._on_vote_response(sender, request, response)
            case _:
                if response is not None:
                    self._learn(response.epoch, response.leader_id)

    def on_refused(self, to: int, request: Request, now: float) -> None:
        """A request could not be sent because no process listens there.

        A leader whose process has ended never leads in its epoch again, so there is no need to wait for it. This node
        asks for votes after a moment, in which another one may ask first. It does so once after each fetch that
        succeeded: where only the way to the leader is blocked, the others deny, and the usual time-outs apply.
        """
        role = self.role
        is_leader_gone = isinstance(role, Follower) and role.fetching is request and role.has_fetched
        self.on_response(to, request, None, now)
        if is_leader_gone:
            assert isinstance(role, Follower)
            role.has_fetched = False
            role.leader_lost_at = min(role.leader_lost_at, now + self._timeouts.election * _HASTE * self._rng.random())

    def _learn(self, epoch: int, leader_id: int) -> None:
        """Follow a leader that another node knows."""
        if epoch < self.epoch:
            return
        if leader_id not in (NO_NODE, self.key.id):
            is_new = epoch > self.epoch or not isinstance(self.role, Leader | Resigned | Follower)
            if is_new and not (isinstance(self.role, Prospective) and epoch == self.epoch == self._asked_in(leader_id)):
                self._follow(epoch, leader_id)
        elif epoch > self.epoch:
            self._detach(epoch)

    def _asked_in(self, leader_id: int) -> int:
        """The epoch in which this node already asks for votes although it knows that leader; -1 if it does not."""
        return self.epoch if self.role.leader_id == leader_id else -1

    def _request_votes(self, *, is_pre_vote: bool) -> None:
        end = LogPosition(self._log.last_epoch, self._log.end_offset)
        for voter in self.voters:
            if voter.key.id != self.key.id:
                request = VoteRequest(self.epoch, self.key, voter.key, end, is_pre_vote)
                self._actions.append(Send(voter.key.id, request))

    def _on_vote_response(self, sender: int, request: VoteRequest, response: VoteResponse) -> None:
        epoch = self.epoch
        self._learn(response.epoch, response.leader_id)
        role = self.role
        wanted = Prospective if request.is_pre_vote else Candidate
        if not isinstance(role, wanted) or request.epoch != self.epoch or epoch != self.epoch or response.error:
            return
        if self.voters.get(sender) is None:
            return
        (role.votes.granted if response.is_granted else role.votes.rejected).add(sender)
        if len(role.votes.granted) >= self.voters.majority:
            if isinstance(role, Candidate):
                self._lead(role)
            else:
                self._stand()
        elif len(role.votes.rejected) > len(self.voters) - self.voters.majority:
            if isinstance(role, Prospective):
                self._give_up_asking(role)
            elif not role.is_backing_off:
                role.is_backing_off = True
                role.election_at = self._now + self._rng.random() * self._timeouts.election_backoff

    # -- the follower's side of fetches --

    def _look_for_leader(self) -> None:
        """Ask any node for the leader; each of them says who it is in its response to a fetch."""
        self._asking_until = self._now + self._timeouts.fetch
        self._actions.append(Send(ANYONE, self._fetch_request(wait=False)))

    def _fetch_request(self, *, wait: bool = True) -> FetchRequest:
        log = self._log
        wait_ms = int(self._timeouts.fetch_wait * 1000) if wait else 0
        return FetchRequest(self.epoch, self.key, log.end_offset, log.last_epoch, self.high_watermark, wait_ms)

    def _fetch(self, role: Follower) -> None:
        if role.snapshot is not None:
            request: FetchRequest | FetchSnapshotRequest = FetchSnapshotRequest(
                self.epoch, self.key, role.snapshot, role.position
            )
        elif self._flushed < self._log.end_offset:
            return
        else:
            request = self._fetch_request()
        role.fetching = request
        self._actions.append(Send(role.leader_id, request))

    def _on_fetch_over(self, request: FetchRequest | FetchSnapshotRequest, response: Response | None) -> None:
        role = self.role
        is_current = isinstance(role, Follower) and role.fetching is request
        if is_current:
            assert isinstance(role, Follower)
            role.fetching = None
            role.fetch_at = self._now
        if response is None or response.error:
            self._on_fetch_failed(response)
            return
        if not is_current:
            self._learn(response.epoch, response.leader_id)
            return
        assert isinstance(role, Follower)
        role.leader_lost_at = self._now + self._timeouts.fetch
        role.has_fetched = True
        self._contact = Contact(role.leader_id, self._now)
        if isinstance(response, FetchResponse) and isinstance(request, FetchRequest):
            self._on_fetched(role, request, response)
        elif isinstance(response, SnapshotResponse):
            self._on_snapshot(role, response)
        self.tick(self._now)

    def _on_fetch_failed(self, response: Response | None) -> None:
        if isinstance(self.role, Follower):
            self.role.fetch_at = self._now + self._timeouts.retry
            if response is not None and self.role.snapshot is not None:
                self.role.snapshot = None  # it is gone, or the leader is: ask again what to begin with
        if isinstance(self.role, Unattached):
            self._asking_until = self._now + self._timeouts.retry
        if response is not None:
            self._learn(response.epoch, response.leader_id)

    def _on_fetched(self, role: Follower, request: FetchRequest, response: FetchResponse) -> None:
        if response.snapshot is not None:
            role.snapshot, role.position = response.snapshot, 0
            return
        if response.diverging is not None:
            self._truncate(response.diverging)
            return
        if response.records:
            if request.offset != self._log.end_offset:
                return
            try:
                self._log.append_fetched(response.records)
            except ValueError:  # damaged on the way: fetched again
                role.fetch_at = self._now + self._timeouts.retry
                return
            self._flush()
        high_watermark = min(response.high_watermark, self._log.end_offset)
        if high_watermark > self.high_watermark:
            self._advance(high_watermark)

    def _truncate(self, diverging: LogPosition) -> None:
        own = self._log.end_of_epoch(diverging.epoch)
        offset = min(diverging.offset, own.offset) if own.epoch == diverging.epoch else own.offset
        if offset < max(self.high_watermark, 0):
            raise BrokerError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"the leader's metadata log ends epoch {diverging.epoch} at {diverging.offset}, before committed "
                f"records of this node (up to {self.high_watermark}): the logs belong to different clusters",
            )
        self._log.truncate(offset)
        self._flushed = min(self._flushed, offset)

    def _on_snapshot(self, role: Follower, response: SnapshotResponse) -> None:
        if response.snapshot != role.snapshot or response.position != role.position:
            return
        self._log.write_snapshot(response.snapshot, role.position, response.data)
        role.position += len(response.data)
        if role.position < response.size:
            return
        role.snapshot = None
        try:
            self._log.install_snapshot(response.snapshot)
        except ValueError:  # damaged on the way: asked for again
            role.fetch_at = self._now + self._timeouts.retry
            return
        self._flushed = self._log.end_offset
        self._actions.append(SnapshotInstalled(response.snapshot))
        if response.snapshot.offset > self.high_watermark:
            self._advance(response.snapshot.offset)
