"""How much was used lately: a sum over the samples of a sliding window, its rate, and a bucket of tokens.

A window has a number of samples. A sample begins with the first use after the one before it is over, so an idle client
has none. Time is handed in, in seconds of a monotonic clock.
"""

from collections import deque

import msgspec


class Sample(msgspec.Struct):
    """What was used in a part of the window."""

    started_at: float
    amount: float = 0


class SampledSum:
    """The samples of a window, without those that have left it."""

    __slots__ = ("_sample_seconds", "_samples_max", "samples", "total")

    def __init__(self, *, samples_max: int, sample_seconds: float) -> None:
        self._samples_max = samples_max
        self._sample_seconds = sample_seconds
        self.samples: deque[Sample] = deque()
        """The oldest first."""
        self.total: float = 0
        """The amounts of all samples."""

    @property
    def window_seconds(self) -> float:
        """How long a sample counts."""
        return self._samples_max * self._sample_seconds

    def add(self, amount: float, now: float) -> None:
        """Count an amount; a negative one takes back what was counted in vain."""
        samples = self.samples
        if not samples or now - samples[-1].started_at >= self._sample_seconds:
            self.forget_old(now)
            samples.append(Sample(now))
        samples[-1].amount += amount
        self.total += amount

    def forget_old(self, now: float) -> None:
        """Drop the samples that have left the window."""
        samples = self.samples
        while samples and now - samples[0].started_at >= self.window_seconds:
            self.total -= samples.popleft().amount
        if not samples:
            self.total = 0  # fractions must not add up to a rounding error


class WindowRate:
    """Use per second over a window, as client quotas measure it.

    The time is that since the oldest sample began, but never less than all samples but one: the first second of a
    client must not count as if it went on like that.
    """

    __slots__ = ("_sample_seconds", "_samples_max", "_sum")

    def __init__(self, *, samples_max: int, sample_seconds: float) -> None:
        self._samples_max = samples_max
        self._sample_seconds = sample_seconds
        self._sum = SampledSum(samples_max=samples_max, sample_seconds=sample_seconds)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is counted at the moment."""
        return self._sum.total <= 0

    def record(self, amount: float, now: float) -> None:
        """Count an amount; a negative one takes back what was counted in vain."""
        self._sum.add(amount, now)

    def throttle_seconds(self, limit: float, now: float, *, more: float = 0) -> float:
        """How long the client has to pause so that its rate falls to the limit; 0 if it is within it.

        `more` is what it is about to use.
        """
        self._sum.forget_old(now)
        seconds = self._elapsed(now)
        rate = (self._sum.total + more) / seconds
        return (rate - limit) / limit * seconds if rate > limit else 0.0

    def rate(self, now: float) -> float:
        """The rate, for metrics: nothing changes, so another thread may ask."""
        samples = [sample for sample in list(self._sum.samples) if now - sample.started_at < self._sum.window_seconds]
        started_at = samples[0].started_at if samples else now
        return sum(sample.amount for sample in samples) / self._lengthened(now - started_at)

    def _elapsed(self, now: float) -> float:
        samples = self._sum.samples
        return self._lengthened(now - samples[0].started_at if samples else 0.0)

    def _lengthened(self, seconds: float) -> float:
        missing = self._samples_max - 1 - int(seconds / self._sample_seconds)
        return max(seconds + max(missing, 0) * self._sample_seconds, 0.001)


class TokenBucket:
    """A budget that refills with time, up to some seconds' worth. One use may exceed it, and the next has to wait."""

    __slots__ = ("_burst_seconds", "_filled_at", "_tokens")

    def __init__(self, *, burst_seconds: float) -> None:
        self._burst_seconds = burst_seconds
        self._tokens: float | None = None
        self._filled_at = 0.0

    def tokens(self, rate: float, now: float) -> float:
        """What is left, below zero if more was used; the bucket refills at this rate, and is full at first."""
        burst = rate * self._burst_seconds
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + rate * (now - self._filled_at))
        self._filled_at = now
        return self._tokens

    def take(self, amount: float, rate: float, now: float) -> None:
        """Use tokens, whether or not there are enough."""
        self._tokens = self.tokens(rate, now) - amount

    def throttle_seconds(self, rate: float, now: float) -> float:
        """How long it takes until the bucket is no longer below zero; 0 if it is not."""
        return max(0.0, -self.tokens(rate, now) / rate)
