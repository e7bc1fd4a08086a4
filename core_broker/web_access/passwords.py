"""Checks names and passwords, and remembers those that were right."""

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum, auto
from typing import Protocol

from core_broker.service.clock import Clock


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
    """Asks verifiers one after the other; a right password is remembered for some time, a wrong one never."""

    def __init__(
        self, verifiers: Sequence[PasswordVerifier], clock: Clock, *, ttl_seconds: float, entries_max: int
    ) -> None:
        self._verifiers = tuple(verifiers)
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._entries_max = entries_max
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, float] = OrderedDict()
        """Until when a name with its password counts as right, the oldest first; passwords cannot be read from it."""
        self._checks: dict[bytes, asyncio.Task[Verdict]] = {}
        """Checks that are going on: requests with the same password share one."""

    def are_remembered(self, user: str, password: str) -> bool:
        """Whether the password was right a short time ago."""
        until = self._right.get(self._digest(user, password))
        return until is not None and until > self._clock.monotonic()

    async def verify(self, user: str, password: str) -> bool:
        """Whether the password is right. Raises Unavailable."""
        digest = self._digest(user, password)
        check = self._checks.get(digest)
        if check is None:
            check = self._checks[digest] = asyncio.create_task(self._ask(user, password))
            check.add_done_callback(lambda _: self._checks.pop(digest, None))
        # A client that hangs up must not end the check for the others.
        verdict = await asyncio.shield(check)
        if verdict is Verdict.RIGHT:
            self._remember(digest)
        return verdict is Verdict.RIGHT

    async def _ask(self, user: str, password: str) -> Verdict:
        for verifier in self._verifiers:
            verdict = await verifier.verify(user, password)
            if verdict is not Verdict.UNKNOWN_USER:
                return verdict
        return Verdict.UNKNOWN_USER

    def _remember(self, digest: bytes) -> None:
        self._right[digest] = self._clock.monotonic() + self._ttl_seconds
        self._right.move_to_end(digest)
        if len(self._right) > self._entries_max:
            self._right.popitem(last=False)

    def _digest(self, user: str, password: str) -> bytes:
        name = user.encode()
        return hmac.digest(self._key, len(name).to_bytes(4) + name + password.encode(), hashlib.sha256)
