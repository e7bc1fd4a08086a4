"""The cluster behind the proxy, for the routes that administer it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, NotFound
from core_broker.client.models import Broker, Cluster
from core_broker.client.reachability import Reachability
from rest_proxy.errors import ProxyError, from_cluster

TEXT_BYTES_MAX = 32_767
"""The longest string in the Kafka protocol."""
_ID_SECONDS = 30.0
"""How long the cluster's id is cached: it changes only if another cluster takes its place."""


class KafkaCluster:
    """Calls to the cluster that fail at once while no broker answers, with the error codes of API v3.

    Thread-safe; every call blocks.
    """

    def __init__(
        self,
        make_admin: Callable[[], Admin],
        reachability: Reachability,
        *,
        address: str,
        check_login: Callable[[], None] = lambda: None,
        named_by: "KafkaCluster | None" = None,
    ) -> None:
        """The admin client is made at the first call. `check_login` raises if the cluster does not accept its user,
        `named_by` knows the id of the cluster.
        """
        self._make_admin = make_admin
        self._made: Admin | None = None
        self._reachability = reachability
        self._address = address
        self._check_login = check_login
        self._named_by = named_by
        self._lock = threading.Lock()
        self._id = ""
        self._described_at = float("-inf")

    @property
    def id(self) -> str:
        """Its id, as it was last described."""
        return self._id if self._named_by is None else self._named_by.id

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        """The admin client; errors of the cluster in the block become ProxyError."""
        try:
            self._reachability.check()
            self._check_login()
            yield self._admin()
        except NotFound as error:
            raise unknown_topic_or_partition() from error
        except ClientError as error:
            raise from_cluster(error, address=self._address) from error

    def _admin(self) -> Admin:
        with self._lock:
            if self._made is None:
                self._made = self._make_admin()
            return self._made

    def describe(self) -> Cluster:
        """Its id, brokers and controller."""
        with self.admin() as admin:
            found = admin.cluster()
        with self._lock:
            self._id, self._described_at = found.cluster_id, time.monotonic()
        return found

    def brokers(self) -> list[Broker]:
        """Every broker, by id."""
        return sorted(self.describe().brokers, key=lambda broker: broker.id)

    def broker(self, broker_id: int) -> Broker:
        """A broker, or 404."""
        for broker in self.brokers():
            if broker.id == broker_id:
                return broker
        raise not_found()

    def check(self, cluster_id: str) -> None:
        """Raise unless this is its id; calls the cluster if the cached id is old or differs."""
        if self._named_by is not None:
            self._named_by.check(cluster_id)
            return
        with self._lock:
            is_known = cluster_id == self._id and time.monotonic() - self._described_at < _ID_SECONDS
        if not is_known and self.describe().cluster_id != cluster_id:
            raise ProxyError(404, f"Cluster {cluster_id} cannot be found.")


def fail_if_unreachable(reachability: Reachability) -> Callable[[], None]:
    """A function for calls that wait: it raises when no broker answers, and does not rely on an earlier check."""

    def check() -> None:
        reachability.doubt()
        reachability.check()

    return check


def check_text(what: str, text: str) -> None:
    """Raise ProxyError for text that the client library truncates (at NUL) or loses its connection over (too long)."""
    if "\0" in text or len(text.encode()) > TEXT_BYTES_MAX:
        raise ProxyError(40002, f"{what} {text[:80]!r} must have no NUL and at most {TEXT_BYTES_MAX} bytes.")


def unknown_topic_or_partition() -> ProxyError:
    """Kafka's error for a topic or partition that does not exist."""
    return ProxyError(40403, "This server does not host this topic-partition.")


def not_found() -> ProxyError:
    """What the path names does not exist."""
    return ProxyError(404, "HTTP 404 Not Found")
