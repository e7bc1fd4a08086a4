"""How a client reaches a cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Configuration = Mapping[str, str | int | float | bool]

_REQUEST_TIMEOUT_MS_MIN: Final = 1_000
_REQUEST_TIMEOUT_MS_MAX: Final = 10_000
"""After this long without an answer, at most, a client asks another broker. The library's default is a minute: so long
would a machine that has lost its power keep its clients from the new leaders. Not shorter than a broker's session,
because leaders wait that long for a follower that has died."""
_CONNECTING_TIMEOUT_MS: Final = 5_000
"""The same for the first request of a connection, before which no other broker is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Address of a cluster, and further properties of librdkafka, in its own names."""

    bootstrap_servers: str = "localhost:9092"
    client_id: str = "caudal"
    timeout_ms: int = 10_000
    """How long one call may take before the cluster counts as unreachable."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """They may hold passwords."""
    token: Callable[[], tuple[str, float]] | None = field(default=None, repr=False)
    """Gives a token for the mechanism OAUTHBEARER, and when it expires, in seconds since 1970. It is called from any
    thread, whenever a new token is needed. With it a client of the library takes a second to be made."""

    @property
    def timeout_seconds(self) -> float:
        """The time-out in the library's unit."""
        return self.timeout_ms / 1000

    def configuration(self, defaults: Configuration | None = None) -> dict[str, Any]:
        """The library's configuration: the caller's defaults, overridden by the user's properties."""
        token = self.token
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": self.client_id,
            "api.version.request.timeout.ms": _CONNECTING_TIMEOUT_MS,
            "socket.timeout.ms": max(_REQUEST_TIMEOUT_MS_MIN, min(self.timeout_ms, _REQUEST_TIMEOUT_MS_MAX)),
            **(defaults or {}),
            **self.properties,
            **({} if token is None else {"oauth_cb": lambda _: token()}),
        }
