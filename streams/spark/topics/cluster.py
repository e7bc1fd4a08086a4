"""The cluster that topics are read from and written to; executors get it with each task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core_broker.client.settings import ClientSettings

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster and how a client reaches it; `properties` are in librdkafka's names."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    isolation: str = READ_COMMITTED

    @property
    def key(self) -> tuple[object, ...]:
        """Identifies it among other clusters."""
        return self.bootstrap_servers, self.isolation, tuple(sorted(self.properties.items()))

    def settings(self, *, timeout_ms: int = 30_000) -> ClientSettings:
        """Settings for our clients."""
        return ClientSettings(
            bootstrap_servers=self.bootstrap_servers,
            client_id="caudal-spark",
            timeout_ms=timeout_ms,
            # Errors are raised; what the library repairs by itself does not belong in the logs of executors.
            properties={"log_level": "2", **self.properties},
        )
