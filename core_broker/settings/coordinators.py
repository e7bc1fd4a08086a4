"""Settings of the coordinators: consumer groups, committed offsets, transactions, producer ids."""

from core_broker.service.settings import (
    BOOLEAN,
    INT,
    INT_MAX,
    LIST,
    LONG,
    SHORT,
    STRING,
    Check,
    Settings,
    at_least,
    one_of,
    setting,
    some_of,
)

_CLAMPED = at_least(1)
_NO_TWO_PHASE_COMMIT = Check(accepts=lambda value: value is False, allowed="false (two-phase commit is not supported)")


class GroupCoordinatorSettings(Settings):
    """Consumer groups and the offsets they commit."""

    group_min_session_timeout_ms: int = setting(INT, default=6000, check=at_least(1))
    """Minimum session time-out that a member may request."""
    group_max_session_timeout_ms: int = setting(INT, default=1_800_000, check=at_least(1))
    """Maximum session time-out that a member may request."""
    group_initial_rebalance_delay_ms: int = setting(INT, default=3000, check=at_least(0))
    """How long a new group waits for more members before its first assignment. Set 0 for tests."""
    group_max_size: int = setting(INT, default=INT_MAX, check=at_least(1))
    """Maximum number of members of a group of the classic protocol."""
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        LIST, default=("classic", "consumer"), check=some_of("classic", "consumer", "share", "streams")
    )
    """Group protocols that are enabled."""

    group_consumer_session_timeout_ms: int = setting(INT, default=45_000, check=at_least(1))
    """Session time-out of groups of the consumer protocol (KIP-848)."""
    group_consumer_min_session_timeout_ms: int = setting(INT, default=45_000, check=at_least(1))
    """Minimum session time-out in the configs of a group."""
    group_consumer_max_session_timeout_ms: int = setting(INT, default=60_000, check=at_least(1))
    """Maximum session time-out in the configs of a group."""
    group_consumer_heartbeat_interval_ms: int = setting(INT, default=5000, check=at_least(1))
    """Heartbeat interval of the members of groups of the consumer protocol."""
    group_consumer_min_heartbeat_interval_ms: int = setting(INT, default=5000, check=at_least(1))
    """Minimum heartbeat interval in the configs of a group."""
    group_consumer_max_heartbeat_interval_ms: int = setting(INT, default=15_000, check=at_least(1))
    """Maximum heartbeat interval in the configs of a group."""
    group_consumer_max_size: int = setting(INT, default=INT_MAX, check=at_least(1))
    """Maximum number of members of a group of the consumer protocol."""
    group_consumer_assignors: tuple[str, ...] = setting(
        LIST, default=("uniform", "range"), check=some_of("uniform", "range")
    )
    """Server-side assignors; the first is used when a member does not name one."""
    group_consumer_migration_policy: str = setting(
        STRING, default="bidirectional", check=one_of("disabled", "upgrade", "downgrade", "bidirectional")
    )
    """In which direction an active group may migrate between the classic and the consumer protocol."""
    group_consumer_assignment_interval_ms: int = setting(INT, default=1000, check=at_least(0), dynamic=True)
    """Minimum time between two assignments of a group of the consumer protocol."""

    offset_metadata_max_bytes: int = setting(INT, default=4096, check=at_least(0))
    """Maximum size of the metadata that is committed with an offset."""
    offsets_topic_num_partitions: int = setting(INT, default=50, check=at_least(1))
    """Number of partitions of __consumer_offsets; must not change once the topic exists."""
    offsets_topic_replication_factor: int = setting(SHORT, default=3, check=_CLAMPED)
    """Replication factor of __consumer_offsets. A cluster with fewer brokers uses as many as it has, so a single node
    needs no change."""
    offsets_topic_segment_bytes: int = setting(INT, default=100 * 1024 * 1024, check=at_least(1))
    """Segment size of __consumer_offsets."""
    offsets_retention_minutes: int = setting(INT, default=7 * 24 * 60, check=at_least(1))
    """How long committed offsets are kept after the last member has left their group."""
    offsets_retention_check_interval_ms: int = setting(LONG, default=600_000, check=at_least(1))
    """How often committed offsets are checked for expiry."""
    offsets_commit_timeout_ms: int = setting(INT, default=5000, check=at_least(1))
    """How long a commit waits for the replicas of __consumer_offsets."""


class TransactionSettings(Settings):
    """Transactions and idempotent producers."""

    transaction_max_timeout_ms: int = setting(INT, default=900_000, check=at_least(1))
    """Maximum transaction time-out that a producer may request."""
    transactional_id_expiration_ms: int = setting(INT, default=7 * 24 * 3_600_000, check=at_least(1))
    """How long an unused transactional id is kept."""
    transaction_state_log_num_partitions: int = setting(INT, default=50, check=at_least(1))
    """Number of partitions of __transaction_state; must not change once the topic exists."""
    transaction_state_log_replication_factor: int = setting(SHORT, default=3, check=_CLAMPED)
    """Replication factor of __transaction_state. A cluster with fewer brokers uses as many as it has, so a single node
    needs no change."""
    transaction_state_log_min_isr: int = setting(INT, default=2, check=_CLAMPED)
    """min.insync.replicas of __transaction_state; never more than its number of replicas."""
    transaction_state_log_segment_bytes: int = setting(INT, default=100 * 1024 * 1024, check=at_least(1))
    """Segment size of __transaction_state."""
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(INT, default=10_000, check=at_least(1))
    """How often transactions are checked for their time-out."""
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(INT, default=3_600_000, check=at_least(1))
    """How often transactional ids are checked for expiry."""
    transaction_partition_verification_enable: bool = setting(BOOLEAN, default=True, dynamic=True)
    """Reject transactional records for a partition that was not added to the transaction (KIP-890)."""
    transaction_two_phase_commit_enable: bool = setting(BOOLEAN, default=False, check=_NO_TWO_PHASE_COMMIT)
    """Allow producers to leave a prepared transaction open (KIP-939)."""
    producer_id_expiration_ms: int = setting(INT, default=86_400_000, check=at_least(1), dynamic=True)
    """How long a partition keeps the sequence numbers of a producer that has stopped writing."""
    producer_id_expiration_check_interval_ms: int = setting(INT, default=600_000, check=at_least(1))
    """How often producers are checked for expiry."""
