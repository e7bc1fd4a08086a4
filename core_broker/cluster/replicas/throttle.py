"""Replication throttles (KIP-73): how many bytes per second of listed replicas a broker sends as leader or fetches.

The rate is that of a sliding window, as Kafka counts it: the bytes of a few samples, divided by the time since the
oldest of them began. Only replicas outside the ISR are held back, but what in-sync replicas of the listed partitions
copy counts, too: the rate limits both together.
"""

from typing import Final

from core_broker.security.rates import SampledSum
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings, TopicSettings

_EVERY_REPLICA: Final = ("*",)


class ReplicationQuota:
    """The bytes per second that one side of this broker's throttled replication may use."""

    __slots__ = ("_bytes", "_sample_seconds", "bytes_per_second")

    def __init__(self, *, samples_max: int, sample_seconds: float) -> None:
        self.bytes_per_second = LONG_MAX
        self._sample_seconds = sample_seconds
        self._bytes = SampledSum(samples_max=samples_max, sample_seconds=sample_seconds)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self.bytes_per_second < LONG_MAX

    def record(self, size_bytes: int, now: float) -> None:
        """Count bytes of a throttled partition."""
        self._bytes.add(size_bytes, now)

    def is_used_up(self, now: float) -> bool:
        """Whether replicas outside the ISR have to wait."""
        if not self.is_limited or not self._bytes.samples:
            return False
        self._bytes.forget_old(now)
        if not self._bytes.samples:
            return False
        seconds = max(now - self._bytes.samples[0].started_at, self._sample_seconds)
        return self._bytes.total > self.bytes_per_second * seconds

    def seconds_until_room(self, now: float) -> float:
        """How long the quota stays used up if nothing more is counted; 0 if it is not."""
        if not self.is_used_up(now):
            return 0.0
        size, limit, free_at = self._bytes.total, self.bytes_per_second, now
        for sample in self._bytes.samples:  # the next one is the oldest once this one has left the window
            leaves_at = sample.started_at + self._bytes.window_seconds
            if size <= limit * self._sample_seconds:
                break
            if limit and sample.started_at + size / limit < leaves_at:
                free_at = max(free_at, sample.started_at + size / limit)
                break
            size -= sample.amount
            free_at = leaves_at
        return free_at - now


class ReplicationThrottles:
    """Both quotas of a broker. Each side limits on its own, whatever the broker at the other end does."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.leader, self.follower = (
            ReplicationQuota(
                samples_max=settings.replication_quota_window_num,
                sample_seconds=settings.replication_quota_window_size_seconds,
            )
            for _ in range(2)
        )
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Apply the rates in effect."""
        self.leader.bytes_per_second = settings.leader_replication_throttled_rate
        self.follower.bytes_per_second = settings.follower_replication_throttled_rate

    def of_leader(self, settings: TopicSettings, index: int, broker_id: int) -> ReplicationQuota | None:
        """The quota for what a leader sends of a partition; None if the topic does not list it for this broker."""
        is_listed = _lists(settings.leader_replication_throttled_replicas, index, broker_id)
        return self.leader if is_listed else None

    def of_follower(self, settings: TopicSettings, index: int, broker_id: int) -> ReplicationQuota | None:
        """The same for what a follower fetches."""
        is_listed = _lists(settings.follower_replication_throttled_replicas, index, broker_id)
        return self.follower if is_listed else None


def _lists(replicas: tuple[str, ...], index: int, broker_id: int) -> bool:
    return bool(replicas) and (replicas == _EVERY_REPLICA or f"{index}:{broker_id}" in replicas)
