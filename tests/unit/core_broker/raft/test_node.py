"""Single rules of the quorum; `tests/simulation` checks them together, under faults."""

import random

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    LogPosition,
    Response,
    VoteRequest,
    VoteResponse,
)
from core_broker.raft.node import Committed, RaftNode, Reply, Send, Timeouts
from core_broker.raft.replicated_log import ElectionState
from core_broker.raft.roles import Candidate, Contact, Follower, Leader, Prospective, Unattached
from core_broker.raft.voters import ReplicaKey, Voter, VoterSet
from tests.simulation.raft_log import Entry, SimulatedLog, SimulatedStore

KEYS = [ReplicaKey(number, bytes([number]) * 16) for number in (1, 2, 3)]
VOTERS = VoterSet(Voter(key) for key in KEYS)


class World:
    """Node 1 of three, and what it wants done."""

    def __init__(self, *, entries: int = 0, epoch: int = 0, leader_id: int = -1, voters: VoterSet = VOTERS) -> None:
        self.log = SimulatedLog(voters)
        self.log.entries = [Entry(1, f"old {number}") for number in range(entries)]
        self.log.flushed = entries
        self.store = SimulatedStore()
        self.store.state = ElectionState(max(epoch, 1 if entries else 0), leader_id)
        self.node: RaftNode[str] = RaftNode(
            KEYS[0], log=self.log, store=self.store, timeouts=Timeouts(), rng=random.Random(1)
        )
        self.now = 100.0
        self.node.start(self.now)
        self.actions = self.node.take_actions()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.node.tick(self.now)
        self.actions = self.node.take_actions()

    def ask(self, request: object) -> Response:
        token = object()
        self.node.on_request(request, token, self.now)  # type: ignore[arg-type]
        self.actions = self.node.take_actions()
        (response,) = [
            action.response for action in self.actions if isinstance(action, Reply) and action.token is token
        ]
        return response

    def hear(self, sender: int, request: object, response: Response | None) -> None:
        self.node.on_response(sender, request, response, self.now)  # type: ignore[arg-type]
        self.actions = self.node.take_actions()

    def sent(self, kind: type) -> list[Send]:
        return [action for action in self.actions if isinstance(action, Send) and isinstance(action.request, kind)]

    def flush(self) -> None:
        self.log.flushed = self.log.end_offset
        self.node.on_flushed(self.log.end_offset, self.now)
        self.actions += self.node.take_actions()

    def lead(self) -> "World":
        """Win an election with the vote of node 2."""
        self.wait(5)
        for kind in (Prospective, Candidate):
            assert isinstance(self.node.role, kind)
            asked = self.sent(VoteRequest)[0]
            self.hear(asked.to, asked.request, VoteResponse(epoch=self.node.epoch, is_granted=True))
        assert isinstance(self.node.role, Leader)
        self.flush()
        return self

    def fetch(self, number: int, offset: int, *, last_epoch: int | None = None, wait_ms: int = 0) -> FetchResponse:
        before = self.log.at(offset - 1) if 0 < offset <= self.log.end_offset else None
        epoch = last_epoch if last_epoch is not None else (before.epoch if before else 0)
        request = FetchRequest(self.node.epoch, KEYS[number - 1], offset, epoch, -1, wait_ms)
        response = self.ask(request)
        assert isinstance(response, FetchResponse)
        return response


def vote(epoch: int, *, end: LogPosition, candidate: ReplicaKey = KEYS[1], is_pre_vote: bool = False) -> VoteRequest:
    return VoteRequest(epoch, candidate, KEYS[0], end, is_pre_vote)


def test_a_vote_goes_to_a_log_that_is_as_complete_as_the_own_and_only_once() -> None:
    world = World(entries=5)
    behind = world.ask(vote(2, end=LogPosition(1, 4)))
    assert isinstance(behind, VoteResponse)
    assert not behind.is_granted
    equal = world.ask(vote(2, end=LogPosition(1, 5)))
    assert isinstance(equal, VoteResponse)
    assert equal.is_granted
    assert world.store.state.voted == KEYS[1]
    other = world.ask(vote(2, end=LogPosition(1, 9), candidate=KEYS[2]))
    assert isinstance(other, VoteResponse)
    assert not other.is_granted


def test_a_vote_survives_a_restart() -> None:
    world = World()
    world.ask(vote(3, end=LogPosition(0, 0)))
    again = RaftNode(KEYS[0], log=world.log, store=world.store, timeouts=Timeouts(), rng=random.Random(1))
    again.start(0.0)
    again.on_request(vote(3, end=LogPosition(5, 5), candidate=KEYS[2]), "token", 0.0)
    (reply,) = [action for action in again.take_actions() if isinstance(action, Reply)]
    assert isinstance(reply.response, VoteResponse)
    assert not reply.response.is_granted


def test_a_question_in_advance_changes_nothing_and_is_denied_while_a_leader_is_heard() -> None:
    world = World(epoch=4, leader_id=3)
    (fetch,) = world.sent(FetchRequest)
    asked = vote(4, end=LogPosition(9, 9), is_pre_vote=True)
    unheard = world.ask(asked)
    assert isinstance(unheard, VoteResponse)
    assert unheard.is_granted
    world.hear(3, fetch.request, FetchResponse(epoch=4, leader_id=3, high_watermark=0))
    heard = world.ask(asked)
    assert isinstance(heard, VoteResponse)
    assert not heard.is_granted
    assert (world.node.epoch, world.store.state.voted) == (4, None)


def test_a_node_that_cannot_win_does_not_begin_epochs() -> None:
    world = World()
    for _ in range(20):
        world.wait(5)
    assert world.node.epoch == 0


def test_nothing_of_an_older_epoch_counts_as_committed_before_something_of_the_new_one() -> None:
    world = World(entries=3).lead()
    world.fetch(2, 3)
    assert world.node.high_watermark == -1
    world.fetch(2, 4)
    assert world.node.high_watermark == 4


def test_kafka_13141_where_the_logs_differ_the_offset_acknowledges_nothing() -> None:
    world = World(entries=3).lead()
    response = world.fetch(2, 4, last_epoch=0)
    assert response.diverging is not None
    assert world.node.high_watermark == -1


def test_kafka_12460_a_follower_never_removes_what_is_committed() -> None:
    world = World(entries=5, epoch=4, leader_id=3)
    (fetch,) = world.sent(FetchRequest)
    world.hear(3, fetch.request, FetchResponse(epoch=4, leader_id=3, high_watermark=5))
    assert world.node.high_watermark == 5
    (fetch,) = world.sent(FetchRequest)
    with pytest.raises(BrokerError, match="different clusters"):
        world.hear(3, fetch.request, FetchResponse(epoch=4, leader_id=3, diverging=LogPosition(1, 3)))
    assert world.log.end_offset == 5


def test_a_follower_truncates_to_where_the_logs_agree_and_asks_again() -> None:
    world = World(entries=5, epoch=4, leader_id=3)
    (fetch,) = world.sent(FetchRequest)
    world.hear(3, fetch.request, FetchResponse(epoch=4, leader_id=3, diverging=LogPosition(1, 3)))
    (again,) = world.sent(FetchRequest)
    assert isinstance(again.request, FetchRequest)
    assert (world.log.end_offset, again.request.offset) == (3, 3)


def test_a_follower_acknowledges_only_what_is_on_disk() -> None:
    world = World(epoch=4, leader_id=3)
    (fetch,) = world.sent(FetchRequest)
    leader = SimulatedLog(VOTERS)
    leader.append(4, ["a", "b"])
    world.hear(3, fetch.request, FetchResponse(epoch=4, leader_id=3, high_watermark=0, records=leader.read(0)))
    assert world.log.end_offset == 2
    assert not world.sent(FetchRequest)
    world.flush()
    (again,) = world.sent(FetchRequest)
    assert isinstance(again.request, FetchRequest)
    assert again.request.offset == 2


def test_a_leader_that_no_majority_fetches_from_steps_down() -> None:
    world = World().lead()
    world.wait(2.9)
    assert world.node.leader_id == 1
    world.wait(0.2)
    assert world.node.leader_id == -1
    assert len(world.sent(EndEpochRequest)) == 2


def test_a_leader_that_a_majority_fetches_from_stays() -> None:
    world = World().lead()
    for _ in range(10):
        world.wait(1)
        world.fetch(3, 0)
    assert isinstance(world.node.role, Leader)


def following(leader_id: int = 3) -> World:
    """A follower that has heard from its leader."""
    world = World(epoch=4, leader_id=leader_id)
    (fetch,) = world.sent(FetchRequest)
    world.hear(leader_id, fetch.request, FetchResponse(epoch=4, leader_id=leader_id, high_watermark=0))
    return world


def refuse(world: World) -> None:
    """Nothing listens any more where the leader was."""
    role = world.node.role
    assert isinstance(role, Follower)
    if role.fetching is None:
        world.wait(Timeouts().retry)
    assert role.fetching is not None
    world.node.on_refused(role.leader_id, role.fetching, world.now)
    world.actions = world.node.take_actions()


def test_a_voter_whose_leader_has_ended_does_not_wait_for_the_fetch_timeout() -> None:
    world = following()
    refuse(world)
    asked = world.ask(vote(4, end=LogPosition(9, 9), is_pre_vote=True))
    assert isinstance(asked, VoteResponse)
    assert asked.is_granted
    world.wait(Timeouts().election / 4)
    assert isinstance(world.node.role, Prospective)
    assert len(world.sent(VoteRequest)) == 2


def test_a_voter_that_alone_cannot_connect_to_the_leader_disturbs_nobody() -> None:
    world = following()
    refuse(world)
    world.wait(Timeouts().election / 4)
    for asked in world.sent(VoteRequest):
        world.hear(asked.to, asked.request, VoteResponse(epoch=4, leader_id=3))
    assert isinstance(world.node.role, Follower)
    refuse(world)
    world.wait(Timeouts().fetch * 0.9)
    assert isinstance(world.node.role, Follower)
    assert world.node.epoch == 4


def test_a_response_after_a_refusal_means_that_the_leader_is_there() -> None:
    world = following()
    refuse(world)
    world.wait(Timeouts().retry)
    (fetch,) = world.sent(FetchRequest)
    world.hear(3, fetch.request, FetchResponse(epoch=4, leader_id=3, high_watermark=0))
    world.wait(Timeouts().fetch * 0.9)
    assert isinstance(world.node.role, Follower)
    denied = world.ask(vote(4, end=LogPosition(9, 9), is_pre_vote=True))
    assert isinstance(denied, VoteResponse)
    assert not denied.is_granted


def test_a_leader_knows_when_it_last_heard_from_the_one_before() -> None:
    world = following()
    heard_at = world.now
    world.lead()
    assert isinstance(world.node.role, Leader)
    assert world.node.role.predecessor == Contact(3, heard_at)
    world.node.resign(world.now)
    world.node.take_actions()
    world.wait(5)
    world.lead()
    assert isinstance(world.node.role, Leader)
    assert world.node.role.predecessor is None


def test_the_best_successor_of_a_leader_that_stops_stands_at_once() -> None:
    world = World(epoch=4, leader_id=3)
    world.ask(EndEpochRequest(4, 3, (KEYS[0], KEYS[1])))
    assert isinstance(world.node.role, Prospective)


def test_requests_are_answered_with_the_epoch_and_leader_of_those_who_know_better() -> None:
    world = World(epoch=4, leader_id=3)
    old = world.ask(FetchRequest(2, KEYS[1], 0, 0, -1))
    assert (old.error, old.epoch, old.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 4, 3)
    newer = world.ask(FetchRequest(9, KEYS[1], 0, 0, -1))
    assert newer.error is ErrorCode.UNKNOWN_LEADER_EPOCH
    same = world.ask(FetchRequest(4, KEYS[1], 0, 0, -1))
    assert same.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.ask(BeginEpochRequest(3, 2, KEYS[0])).error is ErrorCode.FENCED_LEADER_EPOCH
    snapshot = world.ask(FetchSnapshotRequest(4, KEYS[1], LogPosition(1, 5), 0))
    assert snapshot.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_request_for_another_directory_of_this_node_is_refused() -> None:
    world = World()
    stranger = ReplicaKey(1, bytes([9]) * 16)
    request = VoteRequest(1, KEYS[1], stranger, LogPosition(0, 0))
    assert world.ask(request).error is ErrorCode.INVALID_VOTER_KEY


def test_a_fetch_waits_for_records_and_gets_them_at_once() -> None:
    world = World().lead()
    world.fetch(2, 1)
    token = object()
    world.node.on_request(FetchRequest(world.node.epoch, KEYS[1], 1, world.node.epoch, 1, 500), token, world.now)
    assert not [action for action in world.node.take_actions() if isinstance(action, Reply)]
    world.node.append(["news"], world.now)
    (reply,) = [action for action in world.node.take_actions() if isinstance(action, Reply)]
    assert reply.token is token
    assert isinstance(reply.response, FetchResponse)
    assert reply.response.records


def test_parked_fetches_are_refused_when_the_leader_steps_down() -> None:
    world = World().lead()
    world.fetch(2, 1)
    world.node.on_request(FetchRequest(world.node.epoch, KEYS[1], 1, world.node.epoch, 1, 500), "parked", world.now)
    world.node.resign(world.now)
    (reply,) = [action for action in world.node.take_actions() if isinstance(action, Reply)]
    assert reply.response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_only_voter_leads_at_once_and_never_steps_down() -> None:
    world = World(voters=VoterSet([Voter(KEYS[0])]))
    assert isinstance(world.node.role, Leader)
    world.flush()
    assert Committed(1) in world.actions
    world.wait(1000)
    assert isinstance(world.node.role, Leader)
    assert world.node.wakes_at == float("inf")


def test_a_node_without_voters_asks_around_and_follows_whom_it_hears_of() -> None:
    world = World(voters=VoterSet())
    world.wait(0)
    asked = world.sent(FetchRequest)[-1]
    world.hear(asked.to, asked.request, FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, epoch=7, leader_id=3))
    assert isinstance(world.node.role, Follower)
    assert (world.node.epoch, world.node.leader_id) == (7, 3)
    for _ in range(10):
        world.wait(3)
        assert isinstance(world.node.role, Follower | Unattached)


def test_voters_change_one_at_a_time_and_only_to_those_that_have_caught_up() -> None:
    world = World(voters=VoterSet([Voter(KEYS[0]), Voter(KEYS[1])])).lead()
    newcomer = Voter(KEYS[2])
    world.fetch(2, 1)
    with pytest.raises(BrokerError, match="has not caught up"):
        world.node.add_voter(newcomer, world.now)
    world.fetch(3, 1)
    world.node.add_voter(newcomer, world.now)
    assert world.node.voters.has(KEYS[2])
    with pytest.raises(BrokerError, match="another change"):
        world.node.remove_voter(KEYS[1], world.now)
    world.flush()
    world.fetch(2, 2)
    world.node.remove_voter(KEYS[1], world.now)
    assert not world.node.voters.has(KEYS[1])


def test_a_leader_that_was_the_only_voter_stays_when_a_second_one_is_added() -> None:
    world = World(voters=VoterSet([Voter(KEYS[0])]))
    world.wait(0)
    assert isinstance(world.node.role, Leader)
    world.flush()
    world.wait(3600)
    world.fetch(2, world.log.end_offset)
    world.node.add_voter(Voter(KEYS[1]), world.now)
    world.wait(0.1)
    assert isinstance(world.node.role, Leader)
    world.wait(3600)
    assert not isinstance(world.node.role, Leader)
