"""Whether the cluster answers at all: asked before work that would otherwise wait in vain."""

import threading
import time

from confluent_kafka.admin import AdminClient

from core_broker.client.errors import ClientError, Unreachable, mapped
from core_broker.client.settings import ClientSettings

_BELIEVED_SECONDS = 1.0
"""How long an answer counts: one small request a second, whatever the load."""
_REFUSED_SECONDS = 0.2
"""How long silence counts, so that those who wait behind each other do not each wait in full."""


class Reachability:
    """Knows whether some broker of the cluster answers. Safe for any number of threads; one asks, the others wait."""

    def __init__(self, settings: ClientSettings, *, patience_seconds: float = 0.8) -> None:
        self._address = settings.bootstrap_servers
        self._patience = patience_seconds
        self._asking = threading.Lock()
        self._answered_at = self._silent_at = float("-inf")
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
        """Raise Unreachable unless a broker answers, within a second."""
        if self.is_believed():
            return
        with self._asking:
            if self.is_believed():
                return
            if time.monotonic() - self._silent_at >= _REFUSED_SECONDS and self._answers():
                return
        raise Unreachable(f"No broker of the Kafka cluster answers at {self._address}")

    def _answers(self) -> bool:
        try:
            with mapped():
                self._client.describe_cluster(request_timeout=self._patience).result(self._patience + 1)
        except (Unreachable, TimeoutError):
            self._silent_at = time.monotonic()
            return False
        except ClientError:
            pass  # A refusal is an answer, too.
        self._answered_at = time.monotonic()
        return True
