"""What a mechanism of the server is: messages of the client in, a challenge or a verdict out."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from typing_extensions import override

from core_broker.protocol.principals import Principal


class Challenge(msgspec.Struct, frozen=True):
    """The exchange goes on: the client has to respond to this."""

    data: bytes


class Success(msgspec.Struct, frozen=True):
    """The client is who it claims to be."""

    principal: Principal
    data: bytes = b""
    """The last message to the client."""
    expires_at_ms: int | None = None
    """When the credential expires, by the wall clock; None if it does not."""


class Failure(msgspec.Struct, frozen=True):
    """The client could not prove who it is; the connection is to be closed."""

    reason: str
    """For the log of the broker, without secrets."""
    user: str = ""
    """Who the client claimed to be, as far as known."""
    message: str | None = None
    """What the client may know of it; None: only that its credentials are invalid."""

    @override
    def __str__(self) -> str:
        return self.reason


class Pending(msgspec.Struct, frozen=True):
    """The message cannot be judged yet: once this was awaited, it is to be passed to `step` again."""

    wait: Callable[[], Awaitable[object]]


Verdict = Challenge | Success | Failure
Outcome = Verdict | Pending


class Mechanism(Protocol):
    """One exchange with one client. It does no I/O."""

    @property
    def name(self) -> str:
        """The name of the mechanism, such as SCRAM-SHA-512."""
        ...

    def is_slow(self, data: bytes) -> bool:  # noqa: ARG002 - most mechanisms never are
        """Whether the step with this message may compute for longer than a millisecond, and needs a thread."""
        return False

    def step(self, data: bytes) -> Outcome:
        """Judge the next message of the client. It raises nothing, whatever the message is."""
        ...
