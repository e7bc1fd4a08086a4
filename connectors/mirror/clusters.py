"""The two clusters: the settings of their clients, and what their errors mean to the worker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

from connect.api.errors import ConfigError, ConnectError, RetriableError
from connectors.mirror.config import MirrorConfig, Side
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, NotAllowed, Rejected, Retriable, Unreachable
from core_broker.client.java_properties import PropertyRefused, to_librdkafka
from core_broker.client.settings import ClientSettings

SIDES: Final[tuple[Side, ...]] = ("source", "target")
Role = Literal["consumer", "producer", "admin"]

_NOT_OF_CLIENTS: Final = ("alias", "bootstrap.servers")
_OWN: Final = {"consumer": ("poll.timeout.ms",), "admin": ("timeout.ms",), "producer": ()}
"""Options of the connectors that look like client properties."""
_READER_DEFAULTS: Final = {
    "queued.max.messages.kbytes": "8192",
    "fetch.max.bytes": "8388608",
    "fetch.message.max.bytes": "4194304",
    "fetch.wait.max.ms": "100",
    "reconnect.backoff.max.ms": "1000",
}


def given_properties(config: MirrorConfig, side: Side, role: Role) -> dict[str, str]:
    """Properties of a client, in Java's names: those of the cluster, then of the role, then of the role there."""
    cluster = {k: v for k, v in config.below(f"{side}.cluster.").items() if k not in _NOT_OF_CLIENTS}
    common = {
        key: value
        for key, value in config.below(f"{role}.").items()
        if key not in _OWN[role] and not key.startswith("override.")
    }
    return {**cluster, **common, **config.below(f"{side}.{role}.")}


def client_settings(config: MirrorConfig, side: Side, role: Role) -> ClientSettings:
    """The settings of a client; ConfigError when its properties cannot work."""
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
    """An admin client of a cluster; an error raised by `watch` ends a wait for its answer."""
    with map_errors(side):
        return Admin(client_settings(config, side, "admin"), watch=watch)


@contextmanager
def map_errors(side: Side) -> Iterator[None]:
    """Turn errors of a client into those that the worker understands."""
    try:
        yield
    except (Unreachable, Retriable) as error:
        raise RetriableError(f"the {side} cluster does not answer: {error}") from error
    except NotAllowed as error:
        raise ConnectError(f"the {side} cluster refuses this user: {error}") from error
    except Rejected as error:
        raise ConfigError(f"the {side} cluster, or its client, rejects this: {error}") from error
    except ClientError as error:
        raise ConnectError(f"the {side} cluster: {error}") from error
