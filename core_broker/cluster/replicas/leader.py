"""The leader's half of a partition: how far each follower is, which are in sync, and what is committed.

The controller owns the ISR. The leader proposes changes, one at a time, and until the controller has answered it counts
on the larger set: a record is committed once every replica has it that could be elected (KIP-497, KIP-966).
"""

from math import inf
from typing import Final

import msgspec

from core_broker.cluster.metadata import PartitionImage
from core_broker.cluster.replicas.membership import Membership
from core_broker.errors import ErrorCode

RECOVERED: Final = 0
RECOVERING: Final = 1

_PROPOSAL_IS_OVER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""After these the controller will never apply the proposal; after any other it may have, so the same is sent again."""


class FollowerProgress(msgspec.Struct):
    """How far a follower is, by its fetches in this leader epoch."""

    caught_up_at: float
    """The last time it had everything that the leader had."""
    end_offset: int = -1
    log_start: int = -1
    broker_epoch: int = -1
    fetched_at: float = -inf
    end_when_fetched: int = -1
    """The leader's end at its last fetch: a follower that has all of that now was caught up then."""


class IsrProposal(msgspec.Struct, frozen=True):
    """An ISR for the controller to decide about."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """The incarnations of its members, as known when it was proposed (KIP-903)."""
    leader_epoch: int
    partition_epoch: int
    recovery_state: int = RECOVERED


class LeaderReplica:
    """What a leader knows about its followers, for one leader epoch."""

    def __init__(
        self,
        local_id: int,
        description: PartitionImage,
        *,
        epoch_start: int,
        high_watermark: int,
        lag_seconds: float,
        membership: Membership,
        now: float,
    ) -> None:
        self.high_watermark = high_watermark
        self.proposal: IsrProposal | None = None
        """The change that the controller has not answered."""
        self.isr = description.isr
        self.replicas = description.replicas
        self.leader_epoch = description.leader_epoch
        self.partition_epoch = description.partition_epoch
        self.followers: dict[int, FollowerProgress] = {}
        self._is_recovering = description.leader_recovery_state == RECOVERING
        self._local_id = local_id
        self._epoch_start = epoch_start
        self._lag_seconds = lag_seconds
        self._membership = membership
        self._maximal_isr = frozenset(self.isr)
        self._set_followers(now)

    def _set_followers(self, now: float) -> None:
        others = [replica for replica in self.replicas if replica != self._local_id]
        # A member of the ISR gets the full time for its first fetch from a new leader.
        self.followers = {
            replica: self.followers.get(replica) or FollowerProgress(caught_up_at=now if replica in self.isr else -inf)
            for replica in others
        }

    # -- events --

    def update(self, description: PartitionImage, now: float) -> None:
        """Apply what the metadata log says about the partition, in the same leader epoch."""
        if description.partition_epoch < self.partition_epoch:
            return  # the controller's answer to a proposal was quicker
        if description.partition_epoch > self.partition_epoch:
            self.proposal = None
        # With the same epoch, the answer has given us the ISR already, but not the replicas.
        self.replicas = description.replicas
        self._set_isr(description)
        self._set_followers(now)

    def _set_isr(self, description: PartitionImage) -> None:
        self.isr, self.partition_epoch = description.isr, description.partition_epoch
        self._is_recovering = description.leader_recovery_state == RECOVERING
        self._set_maximal_isr()

    def _set_maximal_isr(self) -> None:
        self._maximal_isr = frozenset(self.isr if self.proposal is None else (*self.isr, *self.proposal.isr))

    def on_fetch(
        self, follower: int, offset: int, *, log_start: int, broker_epoch: int, end_offset: int, now: float
    ) -> None:
        """A follower has everything below `offset`. The caller has checked that its log agrees with ours."""
        progress = self.followers[follower]
        if offset >= end_offset:
            progress.caught_up_at = max(progress.caught_up_at, now)
        elif offset >= progress.end_when_fetched >= 0:
            progress.caught_up_at = max(progress.caught_up_at, progress.fetched_at)
        progress.end_offset = offset
        progress.log_start = log_start
        progress.broker_epoch = broker_epoch
        progress.fetched_at = now
        progress.end_when_fetched = end_offset

    def on_idle_fetch(self, follower: int, *, broker_epoch: int, end_offset: int, now: float) -> bool:
        """An in-sync follower that had everything fetches again; False if it is not such a one.

        The same as `on_fetch`, as cheap as can be: it happens for each idle partition with each fetch of its broker.
        """
        progress = self.followers.get(follower)
        if (
            progress is None
            or progress.end_offset != end_offset
            or progress.broker_epoch != broker_epoch
            or broker_epoch != self._membership.epoch_of(follower)
            or follower not in self.isr
        ):
            return False
        progress.caught_up_at = progress.fetched_at = now
        return True

    def on_answer(self, proposal: IsrProposal, error: ErrorCode, description: PartitionImage | None) -> None:
        """The controller's answer to a proposal; the partition as it is now, if it was applied."""
        if proposal is not self.proposal:
            return
        if error in _PROPOSAL_IS_OVER:
            self.proposal = None
            self._set_maximal_isr()
        elif not error and description is not None and description.leader_epoch == self.leader_epoch:
            self.proposal = None
            if description.partition_epoch >= self.partition_epoch:
                self._set_isr(description)

    # -- decisions --

    def propose(self, end_offset: int, now: float) -> IsrProposal | None:
        """The next change of the ISR, which is then waited for; None if there is none or one is on its way."""
        if self.proposal is not None:
            return None
        if self._is_recovering:
            return self._propose((self._local_id,))
        joined = [replica for replica, progress in self.followers.items() if self._may_join(replica, progress, now)]
        if joined:
            return self._propose(tuple(replica for replica in self.replicas if replica in (*self.isr, *joined)))
        left = {
            replica
            for replica, progress in self.followers.items()
            if replica in self.isr and self._lags(progress, end_offset, now)
        }
        if left:
            return self._propose(tuple(replica for replica in self.isr if replica not in left))
        return None

    def _propose(self, isr: tuple[int, ...]) -> IsrProposal:
        epochs = tuple(map(self._membership.epoch_of, isr))
        self.proposal = IsrProposal(isr, epochs, self.leader_epoch, self.partition_epoch)
        self._set_maximal_isr()
        return self.proposal

    def _may_join(self, replica: int, progress: FollowerProgress, now: float) -> bool:
        # Up to the start of this epoch: before that, the follower's log may still have to be truncated (KAFKA-7128).
        # What an unreachable follower had once counts no longer: it would join and leave again and again.
        return (
            replica not in self.isr
            and progress.end_offset >= max(self.high_watermark, self._epoch_start)
            and now - progress.fetched_at <= self._lag_seconds
            and self._membership.may_join_isr(replica, progress.broker_epoch)
        )

    def _lags(self, progress: FollowerProgress, end_offset: int, now: float) -> bool:
        # Having everything is enough, however long ago the last fetch was (KAFKA-7152).
        return progress.end_offset != end_offset and now - progress.caught_up_at > self._lag_seconds

    def advance(self, end_offset: int, *, min_in_sync: int, now: float) -> bool:
        """Raise the high watermark to what every replica has that is or may become in sync; whether it rose.

        Below the minimum nothing is committed: replicas that left may still be elected, as eligible leader replicas.
        """
        if len(self.isr) < min(min_in_sync, len(self.replicas)):
            return False
        lowest = end_offset
        for replica, progress in self.followers.items():
            if progress.end_offset < lowest and (
                replica in self._maximal_isr
                or (
                    not self._lags(progress, end_offset, now)
                    and self._membership.may_join_isr(replica, progress.broker_epoch)
                )
            ):
                lowest = progress.end_offset
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = lowest
        return True

    def low_watermark(self, log_start: int) -> int:
        """The lowest log start of the live replicas: records below it are deleted everywhere (KIP-107)."""
        is_live = self._membership.is_live
        starts = [progress.log_start for replica, progress in self.followers.items() if is_live(replica)]
        return min((log_start, *starts))

    def nearest_to(self, rack: str, offset: int, now: float) -> int | None:
        """The in-sync follower in the client's rack that is furthest ahead; None if the leader should serve (KIP-392).

        Only live members of the ISR that have the offset (KAFKA-14372, KAFKA-15390).
        """
        brokers = self._membership.brokers
        local = brokers.get(self._local_id)
        if local is not None and local.rack == rack:
            return None
        found = [
            (progress.end_offset, progress.caught_up_at - now, replica)
            for replica, progress in self.followers.items()
            if replica in self.isr
            and self._membership.is_live(replica)
            and brokers[replica].rack == rack
            and progress.log_start <= offset <= progress.end_offset
        ]
        return max(found)[2] if found else None
