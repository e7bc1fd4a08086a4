"""How long to wait before the same thing is tried again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double, from the first one up to the longest."""

    first_seconds: float
    max_seconds: float

    def delay(self, attempt: int) -> float:
        """The delay after attempt 0, 1, ... failed."""
        # The exponent is bounded, since attempts may go on for years.
        return float(min(self.first_seconds * 2 ** min(attempt, 60), self.max_seconds))
