"""What a follower does with a leader's answer."""

from pathlib import Path

import pytest

from core_broker.cluster.replicas.follower import (
    Append,
    FindRange,
    FollowerFetch,
    Ignore,
    LeaderAnswer,
    Step,
    Truncate,
    Wait,
    decide,
    next_fetch,
)
from core_broker.errors import ErrorCode
from core_broker.log.leader_epochs import EpochEnd, EpochStart, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(Path("unused"), [EpochStart(*entry) for entry in entries])


OWN = epochs((1, 0), (3, 10), (6, 20))
END = 30
FETCH = FollowerFetch(8, END, 6)


def step(answer: LeaderAnswer, *, leader_epoch: int = 8, end_offset: int = END) -> Step:
    return decide(FETCH, answer, leader_epoch=leader_epoch, epochs=OWN, end_offset=end_offset)


def test_a_fetch_names_the_epoch_of_the_last_record() -> None:
    assert next_fetch(8, OWN, END) == FETCH
    assert next_fetch(8, OWN, 20) == FollowerFetch(8, 20, 3), "epoch 6 has no record yet"
    assert next_fetch(8, epochs(), 0).last_epoch == -1


def test_records_are_appended() -> None:
    assert step(LeaderAnswer(ErrorCode.NONE, b"r", 25, 3)) == Append(b"r", 25, 3)


def test_kafka_18991_an_answer_to_an_earlier_state_is_ignored() -> None:
    answer = LeaderAnswer(ErrorCode.NONE, b"r", 25, 3)
    assert step(answer, leader_epoch=9) == Ignore()
    assert step(answer, end_offset=29) == Ignore()


@pytest.mark.parametrize(
    ("leader", "offset"),
    [
        (EpochEnd(6, 25), 25),  # the leader has less of the same epoch
        (EpochEnd(3, 15), 15),  # it never had epoch 6, and less of epoch 3
        (EpochEnd(3, 22), 20),  # it has more of epoch 3 than we have
        (EpochEnd(4, 22), 20),  # KIP-279: we never had its epoch 4, so go back to the end of epoch 3 and ask again
        (EpochEnd(2, 12), 10),
        (EpochEnd(0, 0), 0),
    ],
)
def test_kip_279_a_diverging_log_is_cut_where_both_may_still_agree(leader: EpochEnd, offset: int) -> None:
    assert step(LeaderAnswer(ErrorCode.NONE, high_watermark=40, diverging=leader)) == Truncate(offset)


def test_errors_wait_except_for_a_missing_offset() -> None:
    assert step(LeaderAnswer(ErrorCode.OFFSET_OUT_OF_RANGE)) == FindRange()
    assert step(LeaderAnswer(ErrorCode.UNKNOWN_LEADER_EPOCH)) == Wait(ErrorCode.UNKNOWN_LEADER_EPOCH)
