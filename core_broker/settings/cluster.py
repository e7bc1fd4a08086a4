"""Settings of a broker within the cluster: identity, controller, defaults of topics, replication."""

import re
from typing import Final

from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Check,
    Settings,
    at_least,
    not_empty,
    optional,
    setting,
)

NO_REPLICATION: Final = "partitions are not replicated yet: each has one replica, on this node"
NO_OTHER_NODE: Final = "clusters of several nodes are not supported yet: this node is the whole cluster"

_BOTH_ROLES: Final = Check(
    accepts=lambda roles: set(roles) == {"broker", "controller"},
    allowed=f"broker,controller ({NO_OTHER_NODE})",
)
_VOTERS: Final = Check(
    accepts=lambda voters: all(re.fullmatch(r"\d+@[^@\s]+:\d+", voter) for voter in voters),
    allowed="id@host:port",
)
_SERVERS: Final = Check(
    accepts=lambda servers: all(re.fullmatch(r"[^@\s]+:\d+", server) for server in servers),
    allowed="host:port",
)


class ClusterSettings(Settings):
    """Identity of this node, its data directories, and its role in the cluster."""

    node_id: int = setting(INT, default=1, check=at_least(0), aliases=("broker.id",))
    """Number of this node, unique in the cluster."""
    cluster_id: str | None = setting(optional(STRING), default=None)
    """Id of the cluster. Not set: the one stored in log.dirs, or a new one at the first start."""
    process_roles: tuple[str, ...] = setting(LIST, default=("broker", "controller"), check=_BOTH_ROLES)
    """The roles of this node: always both, since clusters of several nodes are not supported yet."""
    controller_quorum_voters: tuple[str, ...] = setting(LIST, default=(), check=_VOTERS)
    """Controllers of the cluster, as id@host:port. Only this node may be named: clusters of several nodes are not
    offered yet."""
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(LIST, default=(), check=_SERVERS)
    """Controllers to discover the quorum from, as host:port. Only this node may be named: clusters of several nodes are
    not offered yet."""
    broker_rack: str | None = setting(optional(STRING), default=None)
    """Rack of this node, shown to clients; replicas are spread over racks."""
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
    unclean_leader_election_enable: bool = setting(BOOLEAN, default=False, dynamic=True, without_effect=NO_REPLICATION)
    """Allow a replica that is not in sync to become leader, which may lose records."""
    replica_high_watermark_checkpoint_interval_ms: int = setting(LONG, default=5000, check=at_least(1))
    """How often the high watermarks are checkpointed."""
    num_replica_fetchers: int = setting(INT, default=1, check=at_least(1), dynamic=True, without_effect=NO_REPLICATION)
    """Fetcher threads per source broker."""

    leader_replication_throttled_rate: int = setting(
        LONG, default=LONG_MAX, check=at_least(0), dynamic=True, without_effect=NO_REPLICATION
    )
    """Maximum bytes per second that a leader sends to the replicas in leader.replication.throttled.replicas."""
    follower_replication_throttled_rate: int = setting(
        LONG, default=LONG_MAX, check=at_least(0), dynamic=True, without_effect=NO_REPLICATION
    )
    """Maximum bytes per second that a follower fetches for the replicas in follower.replication.throttled.replicas."""
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG, default=LONG_MAX, check=at_least(0), dynamic=True
    )
    """Maximum bytes per second copied while partitions move between directories of log.dirs."""

    metadata_log_max_record_bytes_between_snapshots: int = setting(LONG, default=20 * 1024 * 1024, check=at_least(1))
    """Bytes of new metadata after which a snapshot is written."""
    metadata_log_segment_bytes: int = setting(INT, default=1 << 30, check=at_least(8 * 1024 * 1024))
    """Size at which a segment of the metadata log is closed."""
    metadata_log_segment_ms: int = setting(LONG, default=7 * 24 * 3_600_000, check=at_least(1))
    """Age at which a segment of the metadata log is closed."""
