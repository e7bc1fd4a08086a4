"""When what has failed is started again by itself: how often, and after how long."""

from dataclasses import dataclass

from connect.runtime.configuration.connector_config import ConnectorConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often in a row (-1 without end), and how long to wait: twice as long each time."""

    maximum: int
    delay_seconds: float
    delay_max_seconds: float
    reset_seconds: float
    """After that long without a failure, all restarts are there again."""


LOST = RestartPolicy(maximum=-1, delay_seconds=0.5, delay_max_seconds=30, reset_seconds=60)
"""A task whose process died: not its fault, perhaps; but one that takes its process with it must not do so all day."""


def policy_of(config: ConnectorConfig) -> RestartPolicy:
    """What `errors.restart.…` of a connector says."""
    return RestartPolicy(
        maximum=config.errors_restart_max,
        delay_seconds=config.errors_restart_delay_ms / 1000,
        delay_max_seconds=config.errors_restart_delay_max_ms / 1000,
        reset_seconds=config.errors_restart_reset_ms / 1000,
    )


class Restarts:
    """Counts the failures of one task in a row."""

    def __init__(self, *, first_at_once: bool = False) -> None:
        self._first_at_once = first_at_once
        self._count = 0
        self._started_at = 0.0

    def started(self, now: float) -> None:
        """The task has begun."""
        self._started_at = now

    def delay(self, policy: RestartPolicy, now: float) -> float | None:
        """It failed: how many seconds until it is started again; None when it is not."""
        if now - self._started_at >= policy.reset_seconds:
            self._count = 0
        if policy.maximum >= 0 and self._count >= policy.maximum:
            return None
        earlier = self._count - 1 if self._first_at_once else self._count
        self._count += 1
        if earlier < 0:
            return 0.0
        # The exponent is bounded, since a task may fail for years.
        return float(min(policy.delay_seconds * 2 ** min(earlier, 40), policy.delay_max_seconds))
