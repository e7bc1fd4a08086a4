"""Checks whether the cluster responds at all, before work that would otherwise wait in vain."""

import socket
import threading
import time

from confluent_kafka.admin import AdminClient

from core_broker.client.errors import ClientError, Unreachable, map_errors
from core_broker.client.settings import ClientSettings

_BELIEVED_SECONDS = 1.0
"""How long a response counts: at most one small request a second, whatever the load."""
_REFUSED_SECONDS = 0.2
"""How long a failed check counts, so that queued callers do not each wait for the full time-out."""
_BUSY_SECONDS = 3.0
"""Extra time for a broker that responded last time and still accepts connections: it is busy, not down."""
_CONNECT_SECONDS = 0.1
_SERVERS_TRIED_MAX = 3


class Reachability:
    """Knows whether any broker of the cluster responds. Safe for many threads: one checks, the others wait for it."""

    def __init__(self, settings: ClientSettings, *, patience_seconds: float = 0.8) -> None:
        self._address = settings.bootstrap_servers
        self._patience = patience_seconds
        self._asking = threading.Lock()
        self._answered_at = self._silent_at = float("-inf")
        self._is_silent = False
        with map_errors():
            # By default the library waits up to ten seconds before it tries to reconnect.
            self._client = AdminClient(settings.configuration({"reconnect.backoff.max.ms": 500}))

    def is_believed(self) -> bool:
        """Whether a broker has responded within the last second; never blocks."""
        return time.monotonic() - self._answered_at < _BELIEVED_SECONDS

    def doubt(self) -> None:
        """Forget the last response, so that the next check asks again."""
        self._answered_at = float("-inf")

    def check(self) -> None:
        """Raise Unreachable unless a broker responds: within a second when none listens, later when one is silent."""
        if self.is_believed():
            return
        with self._asking:
            if self.is_believed():
                return
            if time.monotonic() - self._silent_at >= _REFUSED_SECONDS and self._responds():
                return
        raise Unreachable(f"No broker of the Kafka cluster responds at {self._address}")

    def _responds(self) -> bool:
        self._is_silent = not self._responds_within(self._patience) and (
            self._is_silent
            or not any(_accepts_connections(server) for server in self._address.split(",")[:_SERVERS_TRIED_MAX])
            or not self._responds_within(_BUSY_SECONDS)
        )
        if self._is_silent:
            self._silent_at = time.monotonic()
        else:
            self._answered_at = time.monotonic()
        return not self._is_silent

    def _responds_within(self, seconds: float) -> bool:
        try:
            with map_errors():
                self._client.describe_cluster(request_timeout=seconds).result(seconds + 1)
        except (Unreachable, TimeoutError):
            return False
        except ClientError:
            pass  # An error is a response, too.
        return True


def _accepts_connections(server: str) -> bool:
    host, _, port = server.strip().rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
