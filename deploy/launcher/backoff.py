"""How long to wait before a service that has died is started again."""

from typing import Final

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 30.0
CALM_S: Final = 10.0
"""A service that was ready for so long is well again."""
FIRST_START_TRIES: Final = 3
"""Deaths before a service was ready for the first time; then something is wrong that time will not heal."""
GIVEN_UP_DEATHS: Final = 10
"""Deaths in a row after which it counts as failed; it is still tried, as seldom as possible."""


class Backoff:
    """Counts the deaths of one service that are not explained by a long life before."""

    def __init__(self) -> None:
        self.deaths = 0

    def record_death(self, *, ready_for_s: float) -> float:
        """Count a death after so long a time of being ready (0: never); gives the pause before the next start."""
        if ready_for_s >= CALM_S:
            self.deaths = 0
        self.deaths += 1
        return min(FIRST_PAUSE_S * 2.0 ** min(self.deaths - 1, 30), LONGEST_PAUSE_S)

    @property
    def is_hopeless(self) -> bool:
        """Whether it has died so often that a person should look at it."""
        return self.deaths >= GIVEN_UP_DEATHS
