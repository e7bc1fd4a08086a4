"""Settings of the network: listeners, limits, logs, metrics."""

from core_broker.service.settings import (
    BOOLEAN,
    INT,
    INT_MAX,
    LIST,
    LONG,
    STRING,
    Check,
    ServiceSettings,
    at_least,
    not_empty,
    one_of,
    optional,
    setting,
)
from core_broker.settings.listeners import LISTENER_NAME, LISTENER_NAMES, LISTENERS, PROTOCOL_MAP, Listener

ADDRESS_COUNTS = Check(
    accepts=lambda entries: all(host and count.isdecimal() for host, _, count in (e.rpartition(":") for e in entries)),
    allowed="address:count pairs separated by commas, such as 10.0.0.7:100",
)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ENCRYPTED = frozenset({"SSL", "SASL_SSL"})


class NetworkSettings(ServiceSettings):
    """Sockets, limits that protect the broker, logs and metrics."""

    listeners: tuple[Listener, ...] = setting(LISTENERS, default=(Listener("PLAINTEXT", "", 9092),))
    """Addresses to listen on, as NAME://host:port. An empty host means every address, port 0 any free port."""
    advertised_listeners: tuple[Listener, ...] | None = setting(optional(LISTENERS), default=None)
    """Addresses that clients and other nodes connect to; the controller listener may be among them. Not set: the host
    by which the client reached this broker, and its port."""
    listener_security_protocol_map: tuple[tuple[str, str], ...] = setting(
        PROTOCOL_MAP, default=(*((name, name) for name in PROTOCOLS), ("CONTROLLER", "PLAINTEXT"))
    )
    """Security protocol of each listener name."""
    inter_broker_listener_name: str | None = setting(optional(LISTENER_NAME), default=None)
    """The listener that other brokers connect to. Not set: the one named like security.inter.broker.protocol, or else
    the first that is not a controller listener."""
    security_inter_broker_protocol: str = setting(STRING, default="PLAINTEXT", check=one_of(*PROTOCOLS))
    """Security protocol between brokers if inter.broker.listener.name is not set."""
    controller_listener_names: tuple[str, ...] = setting(LISTENER_NAMES, default=("CONTROLLER",), check=not_empty())
    """Names of the controllers' listeners, which clients do not use; nodes connect to the first."""

    socket_request_max_bytes: int = setting(INT, default=100 * 1024 * 1024, check=at_least(1))
    """Maximum size of a request; a larger one closes the connection before memory is allocated."""
    socket_receive_buffer_bytes: int = setting(INT, default=-1, check=at_least(-1))
    """Receive buffer of a connection; -1: sized by the operating system as needed."""
    socket_send_buffer_bytes: int = setting(INT, default=-1, check=at_least(-1))
    """Send buffer of a connection; -1: sized by the operating system as needed."""
    socket_listen_backlog_size: int = setting(INT, default=1024, check=at_least(1))
    """Maximum number of connections that wait to be accepted."""
    queued_max_request_bytes: int = setting(LONG, default=256 * 1024 * 1024, check=at_least(-1))
    """Maximum size of all requests in memory; beyond it the broker stops reading. -1 for no limit."""
    max_connections: int = setting(INT, default=INT_MAX, check=at_least(0), dynamic=True)
    """Maximum number of connections; further ones wait, but other brokers get through on a listener of their own, for
    which the connection that has been silent the longest is closed. With the prefix of a listener: its maximum."""
    max_connections_per_ip: int = setting(INT, default=INT_MAX, check=at_least(0), dynamic=True)
    """Maximum number of connections from one address."""
    max_connections_per_ip_overrides: tuple[str, ...] = setting(LIST, default=(), check=ADDRESS_COUNTS, dynamic=True)
    """Exceptions from max.connections.per.ip, as address:count."""
    max_connection_creation_rate: int = setting(INT, default=INT_MAX, check=at_least(0), dynamic=True)
    """Maximum number of connections accepted per second, on average over quota.window.num samples; further ones wait.
    With the prefix of a listener: its maximum."""
    connections_max_idle_ms: int = setting(LONG, default=600_000, check=at_least(1))
    """A connection that is idle for this long is closed."""

    quota_window_num: int = setting(INT, default=11, check=at_least(1))
    """Number of samples over which the quotas of clients and the limits of new connections are measured."""
    quota_window_size_seconds: int = setting(INT, default=1, check=at_least(1))
    """Length of each of these samples."""

    fetch_max_bytes: int = setting(INT, default=55 * 1024 * 1024, check=at_least(1024))
    """Maximum size of the response to a fetch, whatever the client requests."""
    max_incremental_fetch_session_cache_slots: int = setting(INT, default=1000, check=at_least(0))
    """Maximum number of incremental fetch sessions (KIP-227)."""
    max_request_partition_size_limit: int = setting(INT, default=2000, check=at_least(1))
    """Maximum number of partitions in a response to DescribeTopicPartitions (KIP-966)."""

    request_log_enable: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Write one log line per request: API, version, client, sizes and time."""
    metrics_listener: str = setting(STRING, default="http://localhost:9404")
    """Address of /metrics (Prometheus) and /health; empty: not served. With the default address, a port in use only
    causes a warning, so that several brokers can run on one machine. With https://host:port it shows the certificate of
    ssl.keystore.*, and asks for one of an authority in ssl.truststore.*."""
