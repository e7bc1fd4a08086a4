"""The cluster behind the proxy, as those who administer it over HTTP meet it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, NotFound
from core_broker.client.models import Cluster
from core_broker.client.reachability import Reachability
from rest_proxy.errors import ProxyError, from_cluster

TEXT_BYTES_MAX = 32_767
"""Longest text that the protocol can carry."""
_KNOWN_SECONDS = 30.0
"""How long the cluster's id is believed without asking again: it changes only when another cluster takes its place."""


class KafkaCluster:
    """Calls to the cluster that fail at once while no broker answers, with errors in API v3's words.

    Safe for any number of threads; every call blocks.
    """

    def __init__(self, admin: Admin, reachability: Reachability, *, address: str) -> None:
        self._admin = admin
        self._reachability = reachability
        self._address = address
        self._lock = threading.Lock()
        self._id = ""
        self._asked_at = float("-inf")

    @property
    def id(self) -> str:
        """Its id, as it was told last."""
        return self._id

    @contextmanager
    def asked(self) -> Iterator[Admin]:
        """The way to ask it, and to change it; what goes wrong in the block becomes a ProxyError."""
        try:
            self._reachability.check()
            yield self._admin
        except NotFound as error:
            raise unknown_topic_or_partition() from error
        except ClientError as error:
            raise from_cluster(error, address=self._address) from error

    def described(self) -> Cluster:
        """Its id, brokers and controller."""
        with self.asked() as admin:
            found = admin.cluster()
        with self._lock:
            self._id, self._asked_at = found.cluster_id, time.monotonic()
        return found

    def check(self, cluster_id: str) -> None:
        """Raise unless this is its id; asks the cluster only now and then, or when the id is not the known one."""
        with self._lock:
            is_known = cluster_id == self._id and time.monotonic() - self._asked_at < _KNOWN_SECONDS
        if not is_known and self.described().cluster_id != cluster_id:
            raise ProxyError(404, f"Cluster {cluster_id} cannot be found.")


def watching(reachability: Reachability) -> Callable[[], None]:
    """Called by those who wait: raises when no broker answers, whatever was known before."""

    def watch() -> None:
        reachability.doubt()
        reachability.check()

    return watch


def check_text(what: str, text: str) -> None:
    """Raise ProxyError for text that the library cuts, at a NUL, or breaks its connection over: it is too long."""
    if "\0" in text or len(text.encode()) > TEXT_BYTES_MAX:
        raise ProxyError(40002, f"{what} {text[:80]!r} must have no NUL and at most {TEXT_BYTES_MAX} bytes.")


def unknown_topic_or_partition() -> ProxyError:
    """What Kafka says of a topic or partition that does not exist."""
    return ProxyError(40403, "This server does not host this topic-partition.")


def not_found() -> ProxyError:
    """What the path names does not exist."""
    return ProxyError(404, "HTTP 404 Not Found")
