"""Checks a password by logging in at the Kafka cluster with it: its users are the users of the HTTP services."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
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
_WAITING_MAX: Final = 256
"""Checks that may wait for a thread; more callers than that are told to come back."""


class ClusterPasswords(PasswordVerifier):
    """The users of a cluster; a context manager that ends its threads."""

    def __init__(self, cluster: ClientSettings, *, logins_max: int) -> None:
        self._cluster = cluster
        self._servers = [server.strip() for server in cluster.bootstrap_servers.split(",")][:_SERVERS_MAX]
        self._turns = count()
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
        """Log in at the first server that answers."""
        login = {"sasl.username": user, "sasl.password": password}
        settings = replace(self._cluster, properties={**self._cluster.properties, **login})
        reason = "no server"
        for host, port in self._addresses():
            try:
                with Connection(settings, host, port):
                    return Verdict.RIGHT
            except NotAllowed as error:
                if error.code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                    return Verdict.WRONG
                reason = str(error)
            except ClientError as error:
                reason = str(error)
        log.warning("passwords cannot be checked at the cluster", extra={"reason": reason})
        raise Unavailable("Passwords cannot be checked, because the Kafka cluster does not answer; try again soon")

    def _addresses(self) -> Iterator[tuple[str, int]]:
        """The servers, beginning with another one each time."""
        first = next(self._turns) % len(self._servers)
        for server in self._servers[first:] + self._servers[:first]:
            host, _, port = server.rpartition(":")
            yield host.rpartition("//")[2].strip("[]"), int(port)
