"""Who is at the other end of a connection."""

import msgspec


class Client(msgspec.Struct):
    """The peer of one connection, as far as it is known."""

    host: str
    port: int
    listener_name: str
    local_host: str
    """The address of ours that it reached."""
    software: str = "unknown"
    """Name and version that it gave with ApiVersions."""
