"""How a partition changes: the one place that turns a wish into a PartitionChangeRecord.

Whatever the reason for a change is (a broker that fails, returns or stops, an ISR proposed by the leader, an election,
a reassignment), the same rules complete reassignments, keep the eligible leader replicas (KIP-966) and elect the
leader.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from core_broker.cluster.effective_settings import topic_settings
from core_broker.cluster.features import ELR_FEATURE
from core_broker.cluster.metadata import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from core_broker.protocol.primitives import ZERO_UUID
from core_broker.protocol.stored.metadata import PartitionChangeRecord
from core_broker.settings import BrokerSettings, TopicSettings

RECOVERED: Final = 0
RECOVERING: Final = 1
"""Recovery state of a leader that was elected although it may lack committed records."""

UNASSIGNED_DIRECTORY: Final = ZERO_UUID[:-1] + b"\x01"
"""The directory of a replica whose broker has not reported one yet."""
LOST_DIRECTORY: Final = ZERO_UUID[:-1] + b"\x02"
_UNKNOWN_DIRECTORIES: Final = frozenset({ZERO_UUID, UNASSIGNED_DIRECTORY})

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

IsAcceptable = Callable[[int], bool]


class Election(Enum):
    """Which replica to look for."""

    ONLINE = "online"
    """Keep the leader, or elect a replica that has every committed record."""
    PREFERRED = "preferred"
    """Elect the first replica of the list if it is in sync."""
    UNCLEAN = "unclean"
    """Prefer a replica that has every committed record, but accept any other."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What applies to a partition: the brokers that may lead it, and the settings of its topic."""

    is_acceptable: IsAcceptable
    """Whether a broker may lead: it is neither fenced nor stopping, and the directory of its replica works."""
    min_isr: int
    has_elr: bool
    allows_unclean: bool


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The change that an event asks for; None leaves a field as it is."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovery_state: int | None = None
    election: Election | None = None
    """None means an online election, or an unclean one if the topic allows that."""
    unclean_replicas: frozenset[int] = frozenset()
    """Replicas that may have lost committed records: they are no eligible leaders any more."""
    directories: Mapping[int, bytes] = {}


class TopicRules:
    """The rules for partitions of any topic of an image."""

    def __init__(
        self,
        image: MetadataImage,
        settings: BrokerSettings,
        *,
        unusable: int | None = None,
        usable: int | None = None,
    ) -> None:
        """`unusable` and `usable` name a broker that is about to change: the image does not show it yet."""
        self._image = image
        self._settings = settings
        self._topics: dict[str, TopicSettings] = {}
        self._active = {
            broker.broker_id
            for broker in image.brokers.values()
            if not broker.is_fenced and not broker.in_controlled_shutdown
        }
        self._active.discard(-1 if unusable is None else unusable)
        if usable is not None:
            self._active.add(usable)
        self._has_elr = image.features.get(ELR_FEATURE, 0) > 0

    def of(self, topic: TopicImage, partition: PartitionImage) -> Rules:
        """The rules for a partition."""
        settings = self._settings_of(topic.name)
        return Rules(
            is_acceptable=lambda broker_id: (
                broker_id in self._active and self._is_directory_online(partition, broker_id)
            ),
            min_isr=settings.min_insync_replicas,
            has_elr=self._has_elr,
            allows_unclean=settings.unclean_leader_election_enable,
        )

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is neither fenced nor stopping."""
        return broker_id in self._active

    def _settings_of(self, topic: str) -> TopicSettings:
        """The settings of a topic, kept for its other partitions."""
        settings = self._topics.get(topic)
        if settings is None:
            settings = self._topics[topic] = topic_settings(self._image, topic, self._settings)
        return settings

    def _is_directory_online(self, partition: PartitionImage, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        if broker is None or not broker.log_dirs or broker_id not in partition.replicas:
            return True
        place = partition.replicas.index(broker_id)
        if place >= len(partition.directories):
            return True
        directory = partition.directories[place]
        return directory in _UNKNOWN_DIRECTORIES or directory in broker.log_dirs


def change_record(
    partition: PartitionImage, wish: Wish, rules: Rules, *, topic_id: bytes, index: int
) -> PartitionChangeRecord | None:
    """The record that carries out a wish, or None if nothing changes."""
    replicas = _or(wish.replicas, partition.replicas)
    adding = _or(wish.adding, partition.adding_replicas)
    removing = _or(wish.removing, partition.removing_replicas)
    isr = tuple(replica for replica in _or(wish.isr, partition.isr) if replica in replicas)
    completed = completed_reassignment(replicas, adding, removing, isr)
    if completed is not None:
        replicas, isr = completed
        adding = removing = ()
    elr = _eligible(partition, replicas, isr, wish.unclean_replicas, rules)
    election = wish.election or (Election.UNCLEAN if rules.allows_unclean else Election.ONLINE)
    elected = _elect(partition, replicas, isr, elr, election, rules)
    leader, recovery_state = elected.leader, _or_number(wish.recovery_state, partition.leader_recovery_state)
    if elected.is_unclean:
        isr, elr, recovery_state = (leader,), (), RECOVERING
    elif leader in elr:
        isr = (leader,)
        elr = _eligible(partition, replicas, isr, wish.unclean_replicas, rules)
    elif not isr and not rules.has_elr:
        # Without ELR the last member stays: the ISR then names the only replica that may lead again.
        isr = tuple(replica for replica in partition.isr if replica in replicas)
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    # A leader that stays begins a new epoch only if a replica is removed, so that the replica's fetches are fenced.
    # It does not when the ISR shrinks (KAFKA-15021): that would fence followers that are well.
    if leader != partition.leader_id or not set(partition.replicas) <= set(replicas):
        record.leader = leader
    record.isr = _if_new(isr, partition.isr)
    record.eligible_leader_replicas = _if_new(elr, partition.elr)
    record.last_known_elr = _if_new(_last_known(partition, isr, leader, rules), partition.last_known_elr)
    record.replicas = _if_new(replicas, partition.replicas)
    record.adding_replicas = _if_new(adding, partition.adding_replicas)
    record.removing_replicas = _if_new(removing, partition.removing_replicas)
    if recovery_state != partition.leader_recovery_state:
        record.leader_recovery_state = recovery_state
    if wish.directories or replicas != partition.replicas:
        record.directories = _new_directories(partition, replicas, wish.directories)
    return None if record == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else record


def completed_reassignment(
    replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], isr: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Replicas and ISR after a reassignment, or None if there is none or it must wait.

    It waits for the replicas that are added. One that stays may be out of sync, since the reassignment does not make
    that worse (KAFKA-19975), unless there are fewer replicas afterwards: then all of them must be in sync.
    """
    if not adding and not removing:
        return None
    target = tuple(replica for replica in replicas if replica not in removing)
    in_sync = tuple(replica for replica in isr if replica not in removing)
    before = sum(replica not in adding for replica in replicas)
    awaited = target if len(target) < before else adding
    if not target or not in_sync or not set(awaited) <= set(in_sync):
        return None
    return target, in_sync


class _Elected(NamedTuple):
    leader: int
    is_unclean: bool = False


def _elect(
    partition: PartitionImage,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    election: Election,
    rules: Rules,
) -> _Elected:
    """The leader: the current one if it is still valid, else the first valid replica of the list."""
    candidates = isr or elr
    valid = [replica for replica in replicas if replica in candidates and rules.is_acceptable(replica)]
    if election is Election.PREFERRED and replicas[0] in valid:
        return _Elected(replicas[0])
    if partition.leader_id in valid:
        return _Elected(partition.leader_id)
    if valid:
        return _Elected(valid[0])
    last_known = partition.last_known_elr
    if (
        rules.has_elr
        and not candidates
        and len(last_known) == 1
        and last_known[0] in replicas
        and rules.is_acceptable(last_known[0])  # KAFKA-19522
    ):
        # Every replica that was known to have all records has lost some: the last leader has lost the fewest.
        return _Elected(last_known[0], is_unclean=True)
    if election is Election.UNCLEAN:
        for replica in replicas:
            if rules.is_acceptable(replica):
                return _Elected(replica, is_unclean=True)
    return _Elected(NO_LEADER)


def _eligible(
    partition: PartitionImage,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    unclean_replicas: frozenset[int],
    rules: Rules,
) -> tuple[int, ...]:
    """The replicas outside the ISR that have every committed record (KIP-966).

    With fewer than min.insync.replicas in sync nothing more is committed, so a replica that leaves then stays eligible.
    """
    if not rules.has_elr or len(isr) >= min(rules.min_isr, len(replicas)):
        return ()
    candidates = {*partition.elr, *partition.isr} - set(isr) - unclean_replicas
    return tuple(replica for replica in replicas if replica in candidates)


def _last_known(partition: PartitionImage, isr: tuple[int, ...], leader: int, rules: Rules) -> tuple[int, ...]:
    """The last leader of a partition whose ISR is empty; empty as soon as there is a leader."""
    if leader != NO_LEADER or not rules.has_elr:
        return ()
    if isr or not partition.isr:
        return partition.last_known_elr
    return (partition.isr[0] if partition.leader_id == NO_LEADER else partition.leader_id,)


def _new_directories(
    partition: PartitionImage, replicas: tuple[int, ...], reported: Mapping[int, bytes]
) -> list[bytes] | None:
    known = {**dict(zip(partition.replicas, partition.directories, strict=False)), **reported}
    directories = tuple(known.get(replica, UNASSIGNED_DIRECTORY) for replica in replicas)
    return None if directories == partition.directories else list(directories)


def _or(new: tuple[int, ...] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else new


def _or_number(new: int | None, old: int) -> int:
    return old if new is None else new


def _if_new(new: tuple[int, ...], old: tuple[int, ...]) -> list[int] | None:
    return None if new == old else list(new)
