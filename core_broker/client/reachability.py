"""Checks whether the cluster responds at all, before work that would otherwise wait in vain."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

from confluent_kafka.admin import AdminClient

from core_broker.client.connection import Connection
from core_broker.client.errors import ClientError, Unreachable, map_errors
from core_broker.client.settings import ClientSettings
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_BELIEVED_SECONDS = 1.0
"""How long a response counts: at most one small request to each server a second, whatever the load."""
_REFUSED_SECONDS = 0.2
"""How long a failed check counts, so that queued callers do not each wait for the full time-out."""
_BUSY_SECONDS = 5.0
"""Extra time, unless the last check failed, for brokers that still accept connections: they are busy, not down. With
other waits it is shorter than the library's time-out of a request, after which records in flight count as unsent."""
_SERVERS_MAX = 16


class Reachability:
    """Knows whether any broker of the cluster responds. Safe for many threads: one checks, the others wait for it."""

    def __init__(self, settings: ClientSettings, *, patience_seconds: float = 0.8) -> None:
        self._settings = settings
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
        """Raise Unreachable unless a broker responds: within a second when none listens, later when all are silent."""
        if self.is_believed():
            return
        began_at = time.monotonic()
        with self._asking:
            if self.is_believed():
                return
            # A check that ended while this caller waited counts for it, however long the wait was.
            has_failed = self._silent_at >= min(began_at, time.monotonic() - _REFUSED_SECONDS)
            if not has_failed and self._responds():
                return
        raise Unreachable(f"No broker of the Kafka cluster responds at {self._address}")

    def _responds(self) -> bool:
        self._is_silent = not (self._any_server_responds() or self._library_responds())
        if self._is_silent:
            self._silent_at = time.monotonic()
        else:
            self._answered_at = time.monotonic()
        return not self._is_silent

    def _any_server_responds(self) -> bool:
        """Ask all servers at the same time: one that does not respond must not hide the others."""
        patience = self._patience if self._is_silent else self._patience + _BUSY_SECONDS
        servers = [server.strip() for server in self._address.split(",")][:_SERVERS_MAX]
        threads = ThreadPoolExecutor(len(servers), thread_name_prefix="reachability")
        try:
            answers = [threads.submit(self._server_responds, server, patience) for server in servers]
            return any(answer.result() for answer in as_completed(answers))
        finally:
            threads.shutdown(wait=False)

    def _server_responds(self, server: str, seconds: float) -> bool:
        """Whether a server answers the first request of every connection, for which no user must be known."""
        host, _, port = server.rpartition(":")
        settings = replace(self._settings, timeout_ms=int(seconds * 1000))
        try:
            with Connection(settings, host.strip("[]"), int(port), authenticates=False) as connection:
                connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse)
        except (Unreachable, ValueError):
            return False
        except ClientError:
            pass  # An error is a response, too.
        return True

    def _library_responds(self) -> bool:
        """Whether the library gets an answer: it also knows brokers that are not among the servers, but asks only the
        controller, and waits for it even when it is the one that has died."""
        try:
            with map_errors():
                self._client.describe_cluster(request_timeout=self._patience).result(self._patience + 1)
        except (Unreachable, TimeoutError):
            return False
        except ClientError:
            pass
        return True
