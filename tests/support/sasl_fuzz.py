"""Damaged logins: every message of every mechanism, with bytes changed, removed, added and exchanged."""

import os
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, Protocol

from core_broker.handlers.session import Session
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from core_broker.protocol.principals import ANONYMOUS
from core_broker.security.sasl.client import bearer_message
from core_broker.server.authentication import Authentication, Reply
from tests.support.hostile import mutate
from tests.support.sasl_world import signed_token, signing_key

FRAMES: Final = int(os.environ.get("CAUDAL_LOGIN_FRAMES", "50000"))
"""How many frames are tried."""
SEED: Final = int(os.environ.get("CAUDAL_LOGIN_SEED", "17"))
"""Decides about all of them."""

Encode = Callable[[Message, int], bytes]


class Connection(Protocol):
    """A connection that has not logged in."""

    session: Session
    login: Authentication

    def receive(self, frame: bytes) -> Reply | Awaitable[Reply]:
        """Send a frame."""
        ...


def fuzz_logins(connect: Callable[[], Connection], encode: Encode, frames: int = FRAMES, seed: int = SEED) -> None:
    """Send damaged logins; the credentials in them are wrong, so that none may succeed."""
    chance = random.Random(seed)
    stranger = signed_token({"sub": "alice", "iat": 1_000_000, "exp": 1_000_060}, signing_key("another"))
    mechanisms = {
        "PLAIN": [b"\0alice\0wrong", b"admin\0alice\0wrong"],
        "SCRAM-SHA-256": [b"n,,n=user,r=abc", b"n,a=user,n=user,r=abc,tokenauth=true", b"c=biws,r=abc,p=AAAA"],
        "OAUTHBEARER": [bearer_message(stranger, {"tenant": "a"}), bearer_message("e30.e30.AA", {}), b"\x01"],
    }
    sent = 0
    while sent < frames:
        connection = connect()
        mechanism = chance.choice(list(mechanisms))
        version = chance.choice([0, 1])
        damaged = chance.randrange(4)
        begin = [encode(ApiVersionsRequest("fuzz", "1"), 4), encode(SaslHandshakeRequest(mechanism), version)]
        messages = [chance.choice(mechanisms[chance.choice([mechanism, mechanism, "PLAIN"])]) for _ in range(3)]
        wrapped = [encode(SaslAuthenticateRequest(data), 2) if version else data for data in messages]
        for place, frame in enumerate([*begin, *wrapped]):
            is_damaged = place >= damaged
            reply = connection.receive(mutate(chance, frame) if is_damaged and frame else frame)
            sent += 1
            if not isinstance(reply, Reply):
                assert isinstance(reply, Coroutine)
                reply.close()  # it would be judged in a thread
                break
            if reply.closes:
                break
        assert not connection.login.is_complete
        assert connection.session.principal is ANONYMOUS
