"""How a client reaches a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Configuration = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Address of a cluster, and further properties of librdkafka, in its own names."""

    bootstrap_servers: str = "localhost:9092"
    client_id: str = "caudal"
    timeout_ms: int = 10_000
    """How long one call may take before the cluster counts as unreachable."""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def timeout_seconds(self) -> float:
        """The time-out in the library's unit."""
        return self.timeout_ms / 1000

    def configuration(self, defaults: Configuration | None = None) -> dict[str, str | int | float | bool]:
        """The library's configuration: the caller's defaults, overridden by the user's properties."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": self.client_id,
            **(defaults or {}),
            **self.properties,
        }
