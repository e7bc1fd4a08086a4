"""Settings of a broker's place in the cluster: identity, controller, topics by default, replication."""

from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Settings,
    at_least,
    not_empty,
    optional,
    setting,
    some_of,
)


class ClusterSettings(Settings):
    """Who this node is, where its data lives, and how it works with the others."""

    node_id: int = setting(INT, default=1, check=at_least(0), aliases=("broker.id",))
    """Number of this node, unique in the cluster."""
    cluster_id: str | None = setting(optional(STRING), default=None)
    """Id of the cluster. Not set: the one stored in log.dirs, or a new one at the first start."""
    process_roles: tuple[str, ...] = setting(
        LIST, default=("broker", "controller"), check=some_of("broker", "controller")
    )
    """What this node does."""
    controller_quorum_voters: tuple[str, ...] = setting(LIST, default=())
    """Controllers of the cluster, as id@host:port. Empty: this node is the whole quorum."""
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(LIST, default=())
    """Controllers to ask for the quorum, as host:port. Empty: this node is the whole quorum."""
    broker_rack: str | None = setting(optional(STRING), default=None)
    """Rack of this node; told to clients and used to spread replicas."""
    log_dirs: tuple[str, ...] = setting(LIST, default=("caudal-data",), check=not_empty(), aliases=("log.dir",))
    """Folders that hold the partitions."""
    metadata_log_dir: str | None = setting(optional(STRING), default=None)
    """Folder that holds the cluster's metadata log. Not set: the first of log.dirs."""

    num_partitions: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """Partitions of a topic that is created without saying how many."""
    default_replication_factor: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """Replicas of a topic that is created without saying how many."""
    auto_create_topics_enable: bool = setting(BOOLEAN, default=True)
    """Create a topic when a client asks for the metadata of one that does not exist, and allows it."""
    delete_topic_enable: bool = setting(BOOLEAN, default=True)
    """Allow topics to be deleted."""

    min_insync_replicas: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """Replicas that must have a record before acks=all is answered; fewer in sync refuse the write."""
    unclean_leader_election_enable: bool = setting(BOOLEAN, default=False, dynamic=True)
    """Allow a replica that is not in sync to become leader, which may lose records."""
    auto_leader_rebalance_enable: bool = setting(BOOLEAN, default=True)
    """Hand leadership back to the preferred replica from time to time."""
    leader_imbalance_check_interval_seconds: int = setting(LONG, default=300, check=at_least(1))
    """How often leadership is balanced."""
    controlled_shutdown_enable: bool = setting(BOOLEAN, default=True)
    """Hand over leadership before stopping."""
    replica_lag_time_max_ms: int = setting(LONG, default=30_000, check=at_least(1))
    """A follower that has not caught up for this long leaves the in-sync set."""
    replica_fetch_max_bytes: int = setting(INT, default=1024 * 1024, check=at_least(0))
    """Bytes per partition that a follower asks for at once."""
    replica_fetch_min_bytes: int = setting(INT, default=1, check=at_least(0))
    """Bytes a follower's fetch waits for."""
    replica_fetch_wait_max_ms: int = setting(INT, default=500, check=at_least(1))
    """Longest wait of a follower's fetch."""
    replica_fetch_response_max_bytes: int = setting(INT, default=10 * 1024 * 1024, check=at_least(0))
    """Bytes that a follower asks for at once in total."""
    replica_fetch_backoff_ms: int = setting(INT, default=1000, check=at_least(0))
    """Pause of a follower after an error."""
    replica_socket_timeout_ms: int = setting(INT, default=30_000, check=at_least(1))
    """Time-out of a request between replicas."""
    replica_high_watermark_checkpoint_interval_ms: int = setting(LONG, default=5000, check=at_least(1))
    """How often high watermarks are written to disk."""
    num_replica_fetchers: int = setting(INT, default=1, check=at_least(1), dynamic=True)
    """Fetchers per source broker."""

    leader_replication_throttled_rate: int = setting(LONG, default=LONG_MAX, check=at_least(0), dynamic=True)
    """Most bytes per second that a leader sends of the replicas in leader.replication.throttled.replicas. Stored and
    shown; takes effect once partitions are replicated."""
    follower_replication_throttled_rate: int = setting(LONG, default=LONG_MAX, check=at_least(0), dynamic=True)
    """Most bytes per second that a follower fetches of the replicas in follower.replication.throttled.replicas. Stored
    and shown; takes effect once partitions are replicated."""
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG, default=LONG_MAX, check=at_least(0), dynamic=True
    )
    """Most bytes per second that are copied when partitions move from one folder of log.dirs to another."""

    broker_heartbeat_interval_ms: int = setting(INT, default=2000, check=at_least(1))
    """Time between heartbeats of a broker to the controller."""
    broker_session_timeout_ms: int = setting(INT, default=9000, check=at_least(1))
    """A broker without a heartbeat for this long is fenced."""
    initial_broker_registration_timeout_ms: int = setting(INT, default=60_000, check=at_least(1))
    """How long a starting broker tries to register."""
    controller_quorum_election_timeout_ms: int = setting(INT, default=1000, check=at_least(1))
    """Time without a leader before a controller calls an election."""
    controller_quorum_fetch_timeout_ms: int = setting(INT, default=2000, check=at_least(1))
    """Time without an answer from the leader before a controller becomes a candidate."""
    controller_quorum_election_backoff_max_ms: int = setting(INT, default=1000, check=at_least(0))
    """Longest pause before a lost election is tried again."""
    controller_quorum_request_timeout_ms: int = setting(INT, default=2000, check=at_least(1))
    """Time-out of a request between controllers."""
    controller_quorum_retry_backoff_ms: int = setting(INT, default=20, check=at_least(0))
    """Pause before a failed request between controllers is tried again."""
    controller_quorum_append_linger_ms: int = setting(INT, default=25, check=at_least(0))
    """How long the leader collects metadata records before it writes them."""
    metadata_max_idle_interval_ms: int = setting(INT, default=500, check=at_least(0))
    """How often the leader writes a record when nothing happens; 0 for never."""
    metadata_log_max_snapshot_interval_ms: int = setting(LONG, default=3_600_000, check=at_least(0))
    """Longest time between two snapshots of the metadata; 0 for no limit."""
    metadata_log_max_record_bytes_between_snapshots: int = setting(LONG, default=20 * 1024 * 1024, check=at_least(1))
    """Bytes of new metadata after which a snapshot is written."""
    metadata_max_retention_bytes: int = setting(LONG, default=100 * 1024 * 1024)
    """Size of the metadata log and its snapshots above which old ones are deleted."""
    metadata_max_retention_ms: int = setting(LONG, default=7 * 24 * 3_600_000)
    """Age above which old metadata segments and snapshots are deleted."""
    metadata_log_segment_bytes: int = setting(INT, default=1 << 30, check=at_least(8 * 1024 * 1024))
    """Size at which the metadata log begins a new segment."""
    metadata_log_segment_ms: int = setting(LONG, default=7 * 24 * 3_600_000, check=at_least(1))
    """Age at which the metadata log begins a new segment."""
