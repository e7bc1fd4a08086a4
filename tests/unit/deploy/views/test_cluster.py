from core_broker.client.models import Quorum, QuorumReplica
from deploy.views.cluster import quorum_view


def replica(id_: int, end_offset: int, caught_up_ms: int) -> QuorumReplica:
    return QuorumReplica(id=id_, directory_id="d", end_offset=end_offset, caught_up_ms=caught_up_ms)


def test_lag_in_records_and_time_is_counted_from_the_leader() -> None:
    voters = (replica(1, 90, 9_000), replica(2, 100, 10_000), replica(3, 100, 10_001))
    quorum = Quorum(leader_id=2, leader_epoch=7, high_watermark=99, voters=voters, observers=(replica(4, 40, -1),))
    view = quorum_view(quorum)
    assert [(item.id, item.lag_records, item.lag_ms) for item in view.voters] == [(1, 10, 1000), (2, 0, 0), (3, 0, 0)]
    assert [item.id for item in view.voters if item.leader] == [2]
    assert [(item.lag_records, item.lag_ms) for item in view.observers] == [(60, None)]


def test_without_a_leader_lag_is_counted_from_the_high_watermark() -> None:
    quorum = Quorum(leader_id=-1, leader_epoch=7, high_watermark=99, voters=(replica(1, 90, 9_000),), observers=())
    (voter,) = quorum_view(quorum).voters
    assert (voter.lag_records, voter.lag_ms, voter.leader) == (9, None, False)
