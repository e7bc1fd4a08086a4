"""The session of a connection: who is at its other end, as far as known by now."""

import msgspec

from core_broker.protocol.principals import ANONYMOUS, Principal


class Session(msgspec.Struct, kw_only=True):
    """What is known about the client of one connection. It belongs to the connection; handlers may change it."""

    host: str
    port: int = 0
    listener_name: str
    security_protocol: str = "PLAINTEXT"
    """That of the listener."""
    local_host: str
    """The address the client connected to; advertised to it if no other is configured."""
    is_controller_listener: bool = False
    """Whether it connected to a controller listener, which has other APIs."""
    software: str = "unknown"
    """Name and version from its ApiVersions request."""
    principal: Principal = ANONYMOUS
    throttle_ms: int = 0
    """For how long the connection must not be read once the response at hand is queued; the connection resets it."""
    expires_at: float | None = None
    """When a client that logged in must have done so again, by the monotonic clock; None if it need not."""
