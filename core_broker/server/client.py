"""The client at the other end of a connection."""

import msgspec


class Client(msgspec.Struct):
    """The peer of one connection, as far as known."""

    host: str
    port: int
    listener_name: str
    local_host: str
    """Our address that it connected to."""
    software: str = "unknown"
    """Name and version from its ApiVersions request."""
