"""Settings of a broker within the cluster: identity, controller, defaults of topics, replication."""

import re
from typing import Final

from core_broker.service.settings import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Check,
    Settings,
    at_least,
    not_empty,
    one_of,
    optional,
    setting,
    some_of,
)

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

_MIB: Final = 1024 * 1024
_ADDRESS: Final = r"(?:\[[0-9a-fA-F:.%]+\]|[^@\s:\[\]]+):\d{1,5}"
_VOTERS: Final = Check(
    accepts=lambda voters: all(re.fullmatch(rf"\d+@{_ADDRESS}", voter) for voter in voters), allowed="id@host:port"
)
_SERVERS: Final = Check(
    accepts=lambda servers: all(re.fullmatch(_ADDRESS, server) for server in servers), allowed="host:port"
)


_AT_ONCE: Final = "an unclean leader is elected as soon as a partition needs one"
_NOT_IDLE: Final = "nodes notice a silent controller without empty records"
_ONE_MIB: Final = "the quorum reads 1 MiB at a time"
_OWN_LIMITS: Final = "every request to another node has a time limit of its own"


class ClusterSettings(Settings):
    """Identity of this node, its data directories, and its role in the cluster."""

    node_id: int = setting(INT, default=1, check=at_least(0), aliases=("broker.id",))
    """Number of this node, unique in the cluster."""
    cluster_id: str | None = setting(optional(STRING), default=None)
    """Id of the cluster. Not set: the one stored in log.dirs; at the first start a new one, or that of the cluster that
    this node joins."""
    process_roles: tuple[str, ...] = setting(
        LIST, default=("broker", "controller"), check=some_of("broker", "controller")
    )
    """What this node does: a broker serves clients, a controller takes part in the metadata quorum."""
    controller_quorum_voters: tuple[str, ...] = setting(LIST, default=(), check=_VOTERS)
    """The controllers of a fixed quorum, as id@host:port; the same list on every node."""
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(LIST, default=(), check=_SERVERS)
    """Controllers to discover the quorum from, as host:port. If this and controller.quorum.voters name no other node
    than this one (by its id, host name or controller listener), a controller with empty log.dirs forms a new cluster;
    otherwise it joins theirs."""
    controller_quorum_auto_join_enable: bool = setting(BOOLEAN, default=False)
    """Let this controller add itself to the voters of the quorum as soon as it has caught up (KIP-853)."""
    controller_quorum_election_timeout_ms: int = setting(INT, default=1000, check=at_least(1))
    """How long a candidate waits for the votes of the others; a random share is added."""
    controller_quorum_election_backoff_max_ms: int = setting(INT, default=1000, check=at_least(0))
    """Maximum pause between two elections that no candidate has won."""
    controller_quorum_fetch_timeout_ms: int = setting(INT, default=2000, check=at_least(1))
    """How long a voter goes without a successful fetch before it stands for election, and how long a leader goes
    without fetches from a majority before it resigns."""
    controller_quorum_request_timeout_ms: int = setting(INT, default=2000, check=at_least(1))
    """Time limit of a request between members of the quorum."""
    controller_quorum_retry_backoff_ms: int = setting(INT, default=20, check=at_least(0))
    """Pause before a failed request to another member of the quorum is repeated."""
    controller_quorum_fetch_max_bytes: int = setting(INT, default=_MIB, check=at_least(1), without_effect=_ONE_MIB)
    """Maximum size of metadata records in one fetch; a larger batch is still returned whole."""
    controller_quorum_fetch_snapshot_max_bytes: int = setting(
        INT, default=_MIB, check=at_least(1), without_effect=_ONE_MIB
    )
    """Maximum size of the part of a metadata snapshot in one response."""
    initial_release_version: str = setting(STRING, default="4.3", check=one_of("4.0", "4.1", "4.2", "4.3"))
    """The oldest release of Apache Kafka that can join a new cluster: it starts with the feature levels of this release
    (as after `kafka-storage format --release-version`). An existing cluster keeps its levels; `kafka-features` raises
    them."""
    broker_rack: str | None = setting(optional(STRING), default=None)
    """Rack of this node, shown to clients; replicas are spread over racks."""
    broker_heartbeat_interval_ms: int = setting(INT, default=2000, check=at_least(1))
    """How often this broker sends a heartbeat to the active controller."""
    broker_session_timeout_ms: int = setting(INT, default=9000, check=at_least(1))
    """The controller fences a broker, and moves its leaders, after this long without a heartbeat."""
    initial_broker_registration_timeout_ms: int = setting(INT, default=60_000, check=at_least(1))
    """How long a starting broker tries to register with the controller before it gives up and exits."""
    controlled_shutdown_enable: bool = setting(BOOLEAN, default=True)
    """Hand the leadership of every partition to another broker before this one stops."""
    controller_socket_timeout_ms: int = setting(INT, default=30_000, check=at_least(1), without_effect=_OWN_LIMITS)
    """Time limit of a broker's request to the active controller."""
    request_timeout_ms: int = setting(INT, default=30_000, check=at_least(1), without_effect=_OWN_LIMITS)
    """Time limit of a request to another broker, unless the request has a limit of its own."""
    log_dirs: tuple[str, ...] = setting(LIST, default=("caudal-data",), check=not_empty(), aliases=("log.dir",))
    """Directories of the partitions."""
    metadata_log_dir: str | None = setting(optional(STRING), default=None)
    """Directory of the cluster's metadata log. Not set: the first of log.dirs."""

    num_partitions: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """Number of partitions of a topic that is created without one."""
    default_replication_factor: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """Replication factor of a topic that is created without one."""
    auto_create_topics_enable: bool = setting(BOOLEAN, default=True)
    """Create a missing topic when a client requests its metadata and allows automatic creation."""
    delete_topic_enable: bool = setting(BOOLEAN, default=True)
    """Allow the deletion of topics."""

    min_insync_replicas: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """In-sync replicas that must have a record before a write with acks=all is acknowledged; with fewer, it is
    rejected."""
    unclean_leader_election_enable: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Allow a replica that is not in sync to become leader, which may lose records."""
    unclean_leader_election_interval_ms: int = setting(
        LONG,
        default=5 * 60_000,
        check=at_least(1),
        internal=True,
        without_effect=_AT_ONCE,
    )
    """How often the controller looks for partitions that need an unclean election."""
    auto_leader_rebalance_enable: bool = setting(BOOLEAN, default=True)
    """Return the leadership of partitions to their preferred replicas in the background."""
    leader_imbalance_check_interval_seconds: int = setting(LONG, default=300, check=at_least(1))
    """How often the controller looks for leaders that are not the preferred replica."""

    replica_lag_time_max_ms: int = setting(LONG, default=30_000, check=at_least(1))
    """A follower that has not caught up with its leader for this long is removed from the in-sync replicas."""
    replica_high_watermark_checkpoint_interval_ms: int = setting(LONG, default=5000, check=at_least(1))
    """How often the high watermarks are checkpointed."""
    num_replica_fetchers: int = setting(
        INT, default=1, check=at_least(1), dynamic=True, without_effect="a follower has one connection to each leader"
    )
    """Number of connections over which a follower fetches from each leader at the same time."""
    replica_fetch_max_bytes: int = setting(INT, default=_MIB, check=at_least(0))
    """Size of records that a follower requests per partition; a larger batch is still returned whole."""
    replica_fetch_response_max_bytes: int = setting(INT, default=10 * _MIB, check=at_least(0))
    """Size of records that a follower requests in one response; a larger batch is still returned whole."""
    replica_fetch_min_bytes: int = setting(INT, default=1, check=at_least(0))
    """Size of new records for which a leader answers the fetch of a follower without waiting any longer."""
    replica_fetch_wait_max_ms: int = setting(INT, default=500, check=at_least(0))
    """Maximum time that a leader waits for new records before it answers the fetch of a follower."""
    replica_fetch_backoff_ms: int = setting(INT, default=1000, check=at_least(0))
    """Pause before a follower repeats a fetch that failed."""
    replica_socket_timeout_ms: int = setting(INT, default=30_000, check=at_least(1))
    """Time limit of a follower's request to its leader."""
    replica_socket_receive_buffer_bytes: int = setting(
        INT, default=64 * 1024, check=at_least(-1), without_effect="the operating system sizes the buffer"
    )
    """Receive buffer of a follower's connection to its leader; -1: sized by the operating system as needed."""
    replica_selector_class: str | None = setting(
        optional(CLASS), default=None, check=one_of(LEADER_SELECTOR, RACK_AWARE_SELECTOR)
    )
    """Which replica a consumer reads from: the leader (also if not set), or an in-sync one in the consumer's rack
    (KIP-392)."""

    leader_replication_throttled_rate: int = setting(LONG, default=LONG_MAX, check=at_least(0), dynamic=True)
    """Bytes per second that this broker sends of partitions whose topic lists its replica in
    leader.replication.throttled.replicas; above that, followers outside the ISR have to wait."""
    follower_replication_throttled_rate: int = setting(LONG, default=LONG_MAX, check=at_least(0), dynamic=True)
    """Bytes per second that this broker fetches of partitions whose topic lists its replica in
    follower.replication.throttled.replicas; above that, it does not fetch those for which it is outside the ISR."""
    controller_quota_window_num: int = setting(INT, default=11, check=at_least(1))
    """Number of samples in the budget of a client's changes of topics: it may use all of it at once."""
    controller_quota_window_size_seconds: int = setting(INT, default=1, check=at_least(1))
    """Length of each of these samples."""
    replication_quota_window_num: int = setting(INT, default=11, check=at_least(1))
    """Number of samples over which the rates of replication throttles are measured."""
    replication_quota_window_size_seconds: int = setting(INT, default=1, check=at_least(1))
    """Length of such a sample."""
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG, default=LONG_MAX, check=at_least(0), dynamic=True
    )
    """Maximum bytes per second copied while partitions move between directories of log.dirs."""

    metadata_max_idle_interval_ms: int = setting(
        INT,
        default=500,
        check=at_least(0),
        without_effect=_NOT_IDLE,
    )
    """How often the active controller writes an empty record while nothing changes, to show the other nodes that their
    metadata is current; 0 for never."""
    metadata_log_max_record_bytes_between_snapshots: int = setting(LONG, default=20 * 1024 * 1024, check=at_least(1))
    """Bytes of new metadata after which a snapshot is written."""
    metadata_log_segment_bytes: int = setting(INT, default=1 << 30, check=at_least(8 * 1024 * 1024))
    """Size at which a segment of the metadata log is closed."""
    metadata_log_segment_ms: int = setting(LONG, default=7 * 24 * 3_600_000, check=at_least(1))
    """Age at which a segment of the metadata log is closed."""

    @property
    def is_broker(self) -> bool:
        """Whether this node serves clients."""
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        """Whether this node takes part in the metadata quorum."""
        return "controller" in self.process_roles

    @property
    def static_voters(self) -> tuple[tuple[int, str, int], ...]:
        """Id, host and port of each of controller.quorum.voters."""
        pairs = (voter.split("@") for voter in self.controller_quorum_voters)
        return tuple((int(node_id), *_host_and_port(address)) for node_id, address in pairs)

    @property
    def quorum_servers(self) -> tuple[tuple[str, int], ...]:
        """Host and port of the controllers to discover the quorum from: the bootstrap servers, or else the voters."""
        servers = tuple(map(_host_and_port, self.controller_quorum_bootstrap_servers))
        return servers or tuple((host, port) for _, host, port in self.static_voters)


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
