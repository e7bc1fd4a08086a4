"""Descriptions of a cluster, its topics and its groups, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One broker and its address."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False
    """Whether it is registered but out of service: stopped, dead, or still starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster and its brokers."""

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerListener:
    """Where a controller listens."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """A node that has a copy of the metadata log."""

    id: int
    directory_id: str
    end_offset: int
    caught_up_ms: int
    """When it last had everything that the leader had; -1 if that is unknown."""
    listeners: tuple[ControllerListener, ...] = ()
    """Of a voter; empty if the cluster does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The controllers: those that vote, and all others that follow the metadata log."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """A data folder of a broker."""

    path: str
    total_bytes: int
    usable_bytes: int
    """-1 if the broker does not report it."""
    is_online: bool
    partition_bytes: Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The replicas of a partition."""

    index: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and its partitions."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    authorized_operations: tuple[str, ...] = ()
    """What this user may do with it, such as READ; empty unless requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """A source that a config may come from, and its value there."""

    key: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config and where it comes from."""

    key: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: str = "UNKNOWN"
    """Kafka's word, such as DYNAMIC_TOPIC_CONFIG."""
    synonyms: tuple[Synonym, ...] = ()
    """Every source with a value, the effective one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A partition with a reassignment in progress."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A group in a list."""

    group_id: str
    state: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group and its partitions."""

    member_id: str
    client_id: str
    host: str
    instance_id: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group and its members."""

    group_id: str
    state: str
    kind: str
    assignor: str
    coordinator: Broker | None
    members: tuple[Member, ...]
    is_simple: bool = False
    """Whether it only stores offsets and never had a member."""
