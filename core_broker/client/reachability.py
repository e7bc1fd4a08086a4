"""Whether the cluster answers at all: asked before work that would otherwise wait in vain."""

import socket
import threading
import time

from confluent_kafka.admin import AdminClient

from core_broker.client.errors import ClientError, Unreachable, mapped
from core_broker.client.settings import ClientSettings

_BELIEVED_SECONDS = 1.0
"""How long an answer counts: one small request a second, whatever the load."""
_REFUSED_SECONDS = 0.2
"""How long silence counts, so that those who wait behind each other do not each wait in full."""
_BUSY_SECONDS = 3.0
"""How much longer a broker may take that answered the last time and still lets itself be connected to: it is busy."""
_CONNECT_SECONDS = 0.1
_ASKED_SERVERS = 3


class Reachability:
    """Knows whether some broker of the cluster answers. Safe for any number of threads; one asks, the others wait."""

    def __init__(self, settings: ClientSettings, *, patience_seconds: float = 0.8) -> None:
        self._address = settings.bootstrap_servers
        self._patience = patience_seconds
        self._asking = threading.Lock()
        self._answered_at = self._silent_at = float("-inf")
        self._is_silent = False
        with mapped():
            # The library would wait up to ten seconds before it looks again whether a broker is back.
            self._client = AdminClient(settings.configuration({"reconnect.backoff.max.ms": 500}))

    def is_believed(self) -> bool:
        """Whether a broker has answered just now; never blocks."""
        return time.monotonic() - self._answered_at < _BELIEVED_SECONDS

    def doubt(self) -> None:
        """Forget that a broker has answered: there is reason to ask again."""
        self._answered_at = float("-inf")

    def check(self) -> None:
        """Raise Unreachable unless a broker answers: within a second when none is there, later when one is silent."""
        if self.is_believed():
            return
        with self._asking:
            if self.is_believed():
                return
            if time.monotonic() - self._silent_at >= _REFUSED_SECONDS and self._answers():
                return
        raise Unreachable(f"No broker of the Kafka cluster answers at {self._address}")

    def _answers(self) -> bool:
        self._is_silent = not self._answers_within(self._patience) and (
            self._is_silent or not self._is_listening() or not self._answers_within(_BUSY_SECONDS)
        )
        if self._is_silent:
            self._silent_at = time.monotonic()
        else:
            self._answered_at = time.monotonic()
        return not self._is_silent

    def _answers_within(self, seconds: float) -> bool:
        try:
            with mapped():
                self._client.describe_cluster(request_timeout=seconds).result(seconds + 1)
        except (Unreachable, TimeoutError):
            return False
        except ClientError:
            pass  # A refusal is an answer, too.
        return True

    def _is_listening(self) -> bool:
        return any(_can_be_connected_to(server) for server in self._address.split(",")[:_ASKED_SERVERS])


def _can_be_connected_to(server: str) -> bool:
    host, _, port = server.strip().rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
