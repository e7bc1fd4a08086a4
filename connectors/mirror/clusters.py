"""The two clusters: how their clients are set up, and what their errors mean to a worker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

from connect.api.errors import ConfigError, ConnectError, RetriableError
from connectors.mirror.config import MirrorConfig
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, NotAllowed, Rejected, Retriable, Unreachable
from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from core_broker.client.settings import ClientSettings

Side = Literal["source", "target"]
SIDES: Final[tuple[Side, ...]] = ("source", "target")
Role = Literal["consumer", "producer", "admin"]

_NOT_OF_CLIENTS: Final = ("alias", "bootstrap.servers")
_OWN: Final = {"consumer": ("poll.timeout.ms",), "admin": ("timeout.ms",), "producer": ()}
"""Options of the connectors that begin like properties of clients."""
_READER_DEFAULTS: Final = {
    "queued.max.messages.kbytes": "8192",
    "fetch.max.bytes": "8388608",
    "fetch.message.max.bytes": "4194304",
    "fetch.wait.max.ms": "100",
    "reconnect.backoff.max.ms": "1000",
}


def given_properties(config: MirrorConfig, side: Side, role: Role) -> dict[str, str]:
    """Properties of one kind of client, in Java's names: the cluster's, then the role's, then those of both."""
    cluster = {k: v for k, v in config.below(f"{side}.cluster.").items() if k not in _NOT_OF_CLIENTS}
    common = {
        key: value
        for key, value in config.below(f"{role}.").items()
        if key not in _OWN[role] and not key.startswith("override.")
    }
    return {**cluster, **common, **config.below(f"{side}.{role}.")}


def client_settings(config: MirrorConfig, side: Side, role: Role) -> ClientSettings:
    """How a client reaches a cluster; ConfigError when its properties cannot work."""
    try:
        properties = to_librdkafka(given_properties(config, side, role).items())
    except PropertyRefused as refused:
        raise ConfigError(f"Invalid value for configuration {side}.{role}.{refused.key}: {refused.reason}") from None
    own = _READER_DEFAULTS if role == "consumer" else {}
    servers = config.source_cluster_bootstrap_servers if side == "source" else config.target_cluster_bootstrap_servers
    return ClientSettings(
        bootstrap_servers=properties.pop("bootstrap.servers", servers),
        client_id=properties.pop("client.id", f"{config.source_cluster_alias}->{config.target_cluster_alias}"),
        timeout_ms=min(config.admin_timeout_ms, 10_000),
        properties={**own, **properties},
    )


def admin_of(config: MirrorConfig, side: Side, *, watch: Callable[[], None] = lambda: None) -> Admin:
    """Asks and changes a cluster; what `watch` raises ends a wait for its answer."""
    with explained(side):
        return Admin(client_settings(config, side, "admin"), watch=watch)


@contextmanager
def explained(side: Side) -> Iterator[None]:
    """Errors of a cluster as the worker understands them."""
    try:
        yield
    except (Unreachable, Retriable) as error:
        raise RetriableError(f"the {side} cluster does not answer: {error}") from error
    except NotAllowed as error:
        raise ConnectError(f"the {side} cluster refuses this user: {error}") from error
    except Rejected as error:
        raise ConfigError(f"the {side} cluster, or its client, does not take this: {error}") from error
    except ClientError as error:
        raise ConnectError(f"the {side} cluster: {error}") from error
