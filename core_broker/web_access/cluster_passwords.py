"""Checks a password by logging in at the Kafka cluster with it: its users are the users of the HTTP services."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, Self

from typing_extensions import override

from core_broker.client.connection import Connection
from core_broker.client.errors import ClientError, NotAllowed
from core_broker.client.settings import ClientSettings
from core_broker.errors import ErrorCode
from core_broker.web_access.errors import Unavailable
from core_broker.web_access.passwords import PasswordVerifier, Verdict

log = logging.getLogger(__name__)

_SERVERS_MAX: Final = 16
_TIMEOUT_MS_MIN: Final = 200
_WAITING_MAX: Final = 256
"""Checks that may wait for a thread; more callers than that are told to come back."""


class ClusterPasswords(PasswordVerifier):
    """The users of a cluster; a context manager that ends its threads."""

    def __init__(self, cluster: ClientSettings, *, logins_max: int) -> None:
        """Raises ValueError if an address cannot be read."""
        self._cluster = cluster
        self._addresses = [_address_of(server) for server in cluster.bootstrap_servers.split(",")[:_SERVERS_MAX]]
        self._answering = 0
        """The number of the server that answered last, which is asked first."""
        self._threads = ThreadPoolExecutor(logins_max, thread_name_prefix="login")
        self._waiting = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    @override
    async def verify(self, user: str, password: str) -> Verdict:
        if self._waiting >= _WAITING_MAX:
            raise Unavailable("Too many logins are being checked; try again soon")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._log_in, user, password)
        finally:
            self._waiting -= 1

    def _log_in(self, user: str, password: str) -> Verdict:
        """Log in at the first server that answers; the time is shared among those that are left."""
        properties = {**self._cluster.properties, "sasl.username": user, "sasl.password": password}
        deadline = time.monotonic() + self._cluster.timeout_seconds
        first, count, reason = self._answering, len(self._addresses), ""
        for tried in range(count):
            number = (first + tried) % count
            timeout_ms = max(_TIMEOUT_MS_MIN, int((deadline - time.monotonic()) * 1000 / (count - tried)))
            try:
                with Connection(
                    replace(self._cluster, properties=properties, timeout_ms=timeout_ms), *self._addresses[number]
                ):
                    verdict = Verdict.RIGHT
            except NotAllowed as error:
                if error.code != ErrorCode.SASL_AUTHENTICATION_FAILED:
                    reason = str(error)
                    continue
                verdict = Verdict.WRONG
            except ClientError as error:
                reason = str(error)
                continue
            self._answering = number
            return verdict
        log.warning("passwords cannot be checked at the cluster", extra={"reason": reason})
        raise Unavailable("Passwords cannot be checked, because the Kafka cluster does not answer; try again soon")


def _address_of(server: str) -> tuple[str, int]:
    host, _, port = server.strip().rpartition(":")
    return host.rpartition("//")[2].strip("[]"), int(port)
