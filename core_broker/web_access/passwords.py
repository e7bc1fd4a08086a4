"""Checks names and passwords: asks those that know the users, and remembers the answers for some time.

A right password is remembered until its time is over, a wrong one for seconds: a program that goes on with an old
password costs the cluster one login every few seconds. New guesses are limited (`failure_limits.py`). Those that were
right before are not, so that an attacker cannot keep out a user who has been here.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, Protocol

from core_broker.service.clock import Clock
from core_broker.web_access.errors import TooManyFailures
from core_broker.web_access.failure_limits import FailureLimits

_WRONG_SECONDS: Final = 5.0
_WRONG_MAX: Final = 1000


class Verdict(Enum):
    """What a verifier says about a name and a password."""

    RIGHT = auto()
    WRONG = auto()
    UNKNOWN_USER = auto()
    """The next verifier is asked."""


class PasswordVerifier(Protocol):
    """Something that knows users and their passwords."""

    async def verify(self, user: str, password: str) -> Verdict:
        """Whether the password is right. Raises Unavailable if that cannot be found out now."""
        ...


class Passwords:
    """Asks verifiers one after the other, and remembers what they said."""

    def __init__(
        self,
        verifiers: Sequence[PasswordVerifier],
        clock: Clock,
        limits: FailureLimits,
        *,
        ttl_seconds: float,
        entries_max: int,
    ) -> None:
        self._verifiers = tuple(verifiers)
        self._clock = clock
        self._limits = limits
        self._key = secrets.token_bytes(32)
        self._right = _Memory(entries_max, seconds=ttl_seconds)
        self._wrong = _Memory(_WRONG_MAX, seconds=min(ttl_seconds, _WRONG_SECONDS))
        self._checks: dict[bytes, asyncio.Future[bool]] = {}
        """Checks that are going on: requests with the same password share one."""
        self.asked = 0
        """How often verifiers were asked."""

    async def are_right(self, user: str, password: str, host: str) -> bool:
        """Whether the password is right. Raises TooManyFailures or Unavailable."""
        digest, now = self._digest(user, password), self._clock.monotonic()
        if self._right.is_fresh(digest, now):
            return True
        if self._wrong.is_fresh(digest, now):
            return False
        if (check := self._checks.get(digest)) is not None:
            return await asyncio.shield(check)
        check = self._checks[digest] = asyncio.get_running_loop().create_future()
        try:
            is_right = await self._check(digest, user, password, host=host)
        except asyncio.CancelledError:
            check.cancel()
            raise
        except Exception as error:
            check.set_exception(error)
            check.exception()  # no other request may be waiting for it
            raise
        finally:
            del self._checks[digest]
        check.set_result(is_right)
        return is_right

    async def _check(self, digest: bytes, user: str, password: str, *, host: str) -> bool:
        if self._right.contains(digest):
            is_right = await self._ask(user, password)
        else:
            if seconds := self._limits.wait_seconds(user, host):
                raise TooManyFailures(seconds)
            # Tries at the same time must count, too, so a try is a failure until it turns out to be none.
            self._limits.add(user, host)
            has_failed = False
            try:
                is_right = await self._ask(user, password)
                has_failed = not is_right
            finally:
                if not has_failed:
                    self._limits.take_back(user, host)
        known, other = (self._right, self._wrong) if is_right else (self._wrong, self._right)
        known.add(digest, self._clock.monotonic())
        other.forget(digest)
        return is_right

    async def _ask(self, user: str, password: str) -> bool:
        self.asked += 1
        for verifier in self._verifiers:
            verdict = await verifier.verify(user, password)
            if verdict is not Verdict.UNKNOWN_USER:
                return verdict is Verdict.RIGHT
        return False

    def _digest(self, user: str, password: str) -> bytes:
        name = user.encode()
        return hmac.digest(self._key, len(name).to_bytes(4) + name + password.encode(), hashlib.sha256)


class _Memory:
    """A bounded number of digests, each fresh for some time after it was added."""

    def __init__(self, entries_max: int, *, seconds: float) -> None:
        self._entries_max = entries_max
        self._seconds = seconds
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def is_fresh(self, digest: bytes, now: float) -> bool:
        return self._until.get(digest, now) > now

    def contains(self, digest: bytes) -> bool:
        """Whether it was added, however long ago."""
        return digest in self._until

    def add(self, digest: bytes, now: float) -> None:
        self._until[digest] = now + self._seconds
        self._until.move_to_end(digest)
        if len(self._until) > self._entries_max:
            self._until.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        self._until.pop(digest, None)
