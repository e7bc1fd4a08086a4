"""The follower's half of a partition: what to do with a leader's answer to a fetch.

A follower's log is a copy of its leader's, byte for byte. Where they diverge, the follower gives way: it truncates to
the end of the last epoch that both have, and fetches again, until the leader finds no difference (KIP-101, KIP-320).
"""

from typing import TypeAlias

import msgspec

from core_broker.errors import ErrorCode
from core_broker.log.leader_epochs import EpochEnd, LeaderEpochs


class FollowerFetch(msgspec.Struct, frozen=True):
    """A fetch as it was sent. Its answer counts only while the log and the epoch are still the same (KAFKA-18991)."""

    leader_epoch: int
    offset: int
    last_epoch: int


class Append(msgspec.Struct, frozen=True):
    """Append the records, then take over the leader's high watermark, then its log start."""

    records: bytes | memoryview
    high_watermark: int
    log_start: int


class Truncate(msgspec.Struct, frozen=True):
    """Remove everything from this offset on, before the leader's high watermark counts (KAFKA-14704)."""

    offset: int


class FindRange(msgspec.Struct, frozen=True):
    """The leader has no record at the offset: ask where its log begins and ends."""


class Wait(msgspec.Struct, frozen=True):
    """Try again a little later; if there is another leader, the metadata log will say so."""

    reason: ErrorCode


class Ignore(msgspec.Struct, frozen=True):
    """The answer belongs to an earlier state."""


Step: TypeAlias = Append | Truncate | FindRange | Wait | Ignore


class LeaderAnswer(msgspec.Struct, frozen=True):
    """What a leader answered for one partition."""

    error: ErrorCode
    records: bytes | memoryview = b""
    high_watermark: int = -1
    log_start: int = -1
    diverging: EpochEnd | None = None


def next_fetch(leader_epoch: int, epochs: LeaderEpochs, end_offset: int) -> FollowerFetch:
    """The fetch that continues a log."""
    return FollowerFetch(leader_epoch, end_offset, epochs.epoch_for_offset(end_offset - 1) if end_offset else -1)


def decide(
    fetch: FollowerFetch, answer: LeaderAnswer, *, leader_epoch: int, epochs: LeaderEpochs, end_offset: int
) -> Step:
    """What to do with an answer; `leader_epoch` and `end_offset` are the current ones."""
    if fetch.leader_epoch != leader_epoch or fetch.offset != end_offset:
        return Ignore()
    if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return FindRange()
    if answer.error:
        return Wait(answer.error)
    if answer.diverging is not None:
        return Truncate(common_end(answer.diverging, epochs, end_offset))
    return Append(answer.records, answer.high_watermark, answer.log_start)


def common_end(leader: EpochEnd, epochs: LeaderEpochs, end_offset: int) -> int:
    """Where the logs may still agree, given the leader's end of an epoch not newer than the one asked for."""
    own = epochs.end_offset_for(leader.epoch, end_offset)
    if own.epoch == leader.epoch:
        return min(leader.end_offset, own.end_offset, end_offset)
    # This log lacks the leader's epoch: go back to the end of the one before, and ask about that.
    return min(own.end_offset if own.end_offset >= 0 else end_offset, leader.end_offset, end_offset)
