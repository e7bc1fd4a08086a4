"""A controller joins the quorum by itself, and corrects what the voters say about it."""

from dataclasses import dataclass, field
from typing import cast

from core_broker.cluster.controller_channel import ControllerChannel
from core_broker.cluster.membership import QuorumMembership
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from core_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from core_broker.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from core_broker.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from core_broker.settings import BrokerSettings

OTHER = Voter(ReplicaKey(1, b"1" * 16))
KEY = ReplicaKey(2, b"2" * 16)
ENDPOINTS = (("CONTROLLER", Endpoint("here", 9093)),)
LOCAL = Voter(KEY, ENDPOINTS)


@dataclass
class FollowedQuorum:
    """What a follower of the quorum knows."""

    voters: VoterSet
    local: Voter = LOCAL
    is_leader: bool = False
    cluster_id: str = "cluster"
    leader_epoch: int = 3


@dataclass
class ActiveController:
    """Changes the voters as it is asked to."""

    quorum: FollowedQuorum
    requests: list[Message] = field(default_factory=list)

    async def call(self, request: Message, *, timeout_seconds: float) -> Message:
        self.requests.append(request)
        voters = self.quorum.voters
        match request:
            case RemoveRaftVoterRequest():
                self.quorum.voters = voters.without(request.voter_id)
                return RemoveRaftVoterResponse()
            case AddRaftVoterRequest():
                self.quorum.voters = voters.with_voter(self.quorum.local)
                return AddRaftVoterResponse()
            case _:
                self.quorum.voters = voters.with_voter(self.quorum.local)
                return UpdateRaftVoterResponse()


async def requests_until_settled(voters: list[Voter], *, auto_join: bool = True) -> list[Message]:
    quorum = FollowedQuorum(VoterSet(voters))
    controller = ActiveController(quorum)
    settings = BrokerSettings(controller_quorum_auto_join_enable=auto_join)
    membership = QuorumMembership(cast(MetadataQuorum, quorum), cast(ControllerChannel, controller), settings=settings)
    while (request := membership._next_request()) is not None:
        await membership._send(request)
    return controller.requests


async def test_a_controller_joins_the_quorum() -> None:
    requests = await requests_until_settled([OTHER])
    assert [type(request) for request in requests] == [AddRaftVoterRequest]


async def test_a_controller_that_may_not_join_by_itself_stays_an_observer() -> None:
    assert await requests_until_settled([OTHER], auto_join=False) == []


async def test_a_voter_that_listens_elsewhere_says_so() -> None:
    requests = await requests_until_settled([OTHER, Voter(KEY)])
    assert [type(request) for request in requests] == [UpdateRaftVoterRequest]


async def test_a_controller_that_lost_its_disk_replaces_the_voter_that_it_was() -> None:
    former = ReplicaKey(2, b"f" * 16)
    requests = await requests_until_settled([OTHER, Voter(former, ENDPOINTS)])
    assert [type(request) for request in requests] == [RemoveRaftVoterRequest, AddRaftVoterRequest]
    assert isinstance(requests[0], RemoveRaftVoterRequest)
    assert (requests[0].voter_id, requests[0].voter_directory_id) == former
