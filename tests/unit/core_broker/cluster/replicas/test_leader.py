"""The leader's account of its followers: what is committed, and which replicas are in sync."""

import msgspec
import pytest

from core_broker.cluster.metadata import BrokerImage, PartitionImage
from core_broker.cluster.replicas.leader import RECOVERING, IsrProposal, LeaderReplica
from core_broker.cluster.replicas.membership import Membership
from core_broker.errors import ErrorCode

LAG = 30.0
IMAGE = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader_id=1, leader_epoch=4, partition_epoch=7)


def broker(broker_id: int, *, is_fenced: bool = False, is_stopping: bool = False, rack: str = "a") -> BrokerImage:
    return BrokerImage(
        broker_id, 100 + broker_id, bytes(16), (), rack, is_fenced=is_fenced, in_controlled_shutdown=is_stopping
    )


def leader(isr: tuple[int, ...] = (1, 2, 3), *, epoch_start: int = 10, high_watermark: int = 5) -> LeaderReplica:
    return LeaderReplica(
        1,
        msgspec.structs.replace(IMAGE, isr=isr),
        epoch_start=epoch_start,
        high_watermark=high_watermark,
        lag_seconds=LAG,
        membership=Membership({number: broker(number) for number in (1, 2, 3)}),
        now=0.0,
    )


def fetch(replica: LeaderReplica, follower: int, offset: int, *, end: int = 20, now: float = 1.0) -> None:
    replica.on_fetch(follower, offset, log_start=0, broker_epoch=100 + follower, end_offset=end, now=now)


def test_what_every_in_sync_replica_has_is_committed() -> None:
    replica = leader()
    fetch(replica, 2, 20)
    assert not replica.advance(20, min_in_sync=1, now=1), "broker 3 has not fetched yet"
    fetch(replica, 3, 15)
    assert replica.advance(20, min_in_sync=1, now=1)
    assert replica.high_watermark == 15


def test_the_high_watermark_does_not_go_back() -> None:
    replica = leader(high_watermark=18)
    fetch(replica, 2, 20)
    fetch(replica, 3, 12)
    assert not replica.advance(20, min_in_sync=1, now=1)
    assert replica.high_watermark == 18


def test_kafka_15583_nothing_is_committed_below_the_minimum() -> None:
    replica = leader((1,))
    assert not replica.advance(20, min_in_sync=2, now=100)
    assert replica.advance(20, min_in_sync=1, now=100)


def test_a_minimum_above_the_number_of_replicas_is_lowered_to_it() -> None:
    replica = leader()
    for follower in (2, 3):
        fetch(replica, follower, 20)
    assert replica.advance(20, min_in_sync=5, now=1)


def test_a_replica_about_to_join_holds_the_high_watermark() -> None:
    replica = leader((1, 2))
    fetch(replica, 2, 20)
    fetch(replica, 3, 20)
    assert replica.propose(20, 1) is not None
    fetch(replica, 2, 25, end=25)
    assert replica.advance(25, min_in_sync=1, now=40)
    assert replica.high_watermark == 20, "broker 3 may be in sync by now"


def test_kafka_7128_a_replica_joins_only_past_the_start_of_the_epoch() -> None:
    replica = leader((1, 2), epoch_start=10, high_watermark=5)
    fetch(replica, 3, 9)
    assert replica.propose(20, 1) is None
    fetch(replica, 3, 10)
    proposal = replica.propose(20, 1)
    assert proposal == IsrProposal((1, 2, 3), (101, 102, 103), 4, 7)
    assert replica.propose(20, 1) is None, "one at a time"


@pytest.mark.parametrize(
    "other",
    [
        broker(3, is_fenced=True),
        broker(3, is_stopping=True),
        msgspec.structs.replace(broker(3), epoch=999),
    ],
    ids=["KAFKA-13916 fenced", "KAFKA-14140 stopping", "KIP-903 another incarnation"],
)
def test_a_replica_that_may_not_lead_does_not_join(other: BrokerImage) -> None:
    replica = leader((1, 2))
    replica._membership.brokers = {1: broker(1), 2: broker(2), 3: other}
    fetch(replica, 3, 20)
    assert replica.propose(20, 1) is None


def test_a_replica_that_no_longer_fetches_does_not_join() -> None:
    replica = leader((1, 2))
    fetch(replica, 2, 20)
    fetch(replica, 3, 20)
    assert replica.propose(20, 1 + LAG + 1) is None


def test_a_replica_that_falls_behind_for_too_long_leaves() -> None:
    replica = leader()
    fetch(replica, 2, 20, now=1)
    fetch(replica, 3, 12, now=1)
    assert replica.propose(20, LAG) is None
    proposal = replica.propose(20, LAG + 2)
    assert proposal is not None
    assert proposal.isr == (1, 2)


def test_kafka_7152_a_replica_that_has_everything_stays_however_long_it_is_silent() -> None:
    replica = leader()
    for follower in (2, 3):
        fetch(replica, follower, 20)
    assert replica.propose(20, 1000 * LAG) is None


def test_a_shrink_counts_only_once_the_controller_has_applied_it() -> None:
    replica = leader()
    fetch(replica, 2, 20, now=50)
    proposal = replica.propose(20, 50)
    assert proposal is not None
    assert proposal.isr == (1, 2)
    assert not replica.advance(20, min_in_sync=1, now=50)
    applied = msgspec.structs.replace(IMAGE, isr=(1, 2), partition_epoch=8)
    replica.on_answer(proposal, ErrorCode.NONE, applied)
    assert replica.advance(20, min_in_sync=1, now=50)
    assert replica.high_watermark == 20


@pytest.mark.parametrize(
    ("error", "is_over"),
    [
        (ErrorCode.INVALID_UPDATE_VERSION, True),
        (ErrorCode.FENCED_LEADER_EPOCH, True),
        (ErrorCode.INELIGIBLE_REPLICA, True),
        (ErrorCode.NEW_LEADER_ELECTED, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
        (ErrorCode.REQUEST_TIMED_OUT, False),
    ],
)
def test_kafka_12751_a_proposal_is_over_only_when_the_controller_says_so(error: ErrorCode, is_over: bool) -> None:
    replica = leader((1, 2))
    fetch(replica, 3, 20)
    proposal = replica.propose(20, 1)
    assert proposal is not None
    replica.on_answer(proposal, error, None)
    assert (replica.proposal is None) == is_over


def test_kafka_12686_an_answer_older_than_the_metadata_changes_nothing() -> None:
    replica = leader((1, 2))
    fetch(replica, 3, 20)
    proposal = replica.propose(20, 1)
    assert proposal is not None
    replica.update(msgspec.structs.replace(IMAGE, isr=(1,), partition_epoch=9), now=2)
    replica.on_answer(proposal, ErrorCode.NONE, msgspec.structs.replace(IMAGE, partition_epoch=8))
    assert (replica.isr, replica.partition_epoch, replica.proposal) == ((1,), 9, None)
    following = replica.propose(20, 3)
    assert following is not None
    replica.on_answer(proposal, ErrorCode.INVALID_UPDATE_VERSION, None)
    assert replica.proposal is following, "the answer to another one does not end it"


def test_metadata_older_than_an_answer_changes_nothing() -> None:
    replica = leader((1, 2))
    fetch(replica, 3, 20)
    proposal = replica.propose(20, 1)
    assert proposal is not None
    replica.on_answer(proposal, ErrorCode.NONE, msgspec.structs.replace(IMAGE, partition_epoch=9))
    replica.update(msgspec.structs.replace(IMAGE, isr=(1, 2), partition_epoch=8), now=2)
    assert replica.isr == (1, 2, 3)


def test_replicas_that_leave_with_the_answered_change_are_forgotten() -> None:
    replica = leader((1, 2))
    fetch(replica, 3, 20)
    proposal = replica.propose(20, 1)
    assert proposal is not None
    replica.on_answer(proposal, ErrorCode.NONE, msgspec.structs.replace(IMAGE, isr=(1, 3), partition_epoch=8))
    replica.update(msgspec.structs.replace(IMAGE, replicas=(1, 3), isr=(1, 3), partition_epoch=8), now=2)
    assert replica.replicas == (1, 3)
    assert set(replica.followers) == {3}


def test_a_leader_after_an_unclean_election_reports_that_it_has_recovered() -> None:
    image = msgspec.structs.replace(IMAGE, isr=(1,), leader_recovery_state=RECOVERING)
    membership = Membership({1: broker(1)})
    replica = LeaderReplica(
        1, image, epoch_start=0, high_watermark=0, lag_seconds=LAG, membership=membership, now=0.0
    )  # fmt: skip
    proposal = replica.propose(0, 1)
    assert proposal is not None
    assert (proposal.isr, proposal.recovery_state) == ((1,), 0)


def test_the_low_watermark_counts_live_replicas_only() -> None:
    replica = leader()
    fetch(replica, 2, 20)
    replica.followers[2].log_start = 8
    assert replica.low_watermark(10) == -1, "broker 3 has not said where its log begins"
    replica._membership.brokers = {1: broker(1), 2: broker(2), 3: broker(3, is_fenced=True)}
    assert replica.low_watermark(10) == 8


def test_kafka_14372_and_15390_only_live_in_sync_followers_are_read_from() -> None:
    replica = leader((1, 2))
    replica._membership.brokers = {1: broker(1), 2: broker(2, rack="b"), 3: broker(3, rack="b")}
    fetch(replica, 2, 15)
    fetch(replica, 3, 20)
    assert replica.nearest_to("b", 12, 1) == 2, "broker 3 is not in sync"
    assert replica.nearest_to("b", 16, 1) is None, "broker 2 does not have that offset"
    assert replica.nearest_to("a", 12, 1) is None, "the leader is there"
    replica._membership.brokers = {1: broker(1), 2: broker(2, rack="b", is_fenced=True)}
    assert replica.nearest_to("b", 12, 1) is None
