"""Rules of the product that can be switched off, one at a time, to prove that the simulator notices."""

from collections.abc import Callable
from typing import Any

from core_broker.cluster.controller import elections, partition_changes, registrations, transitions
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.metadata_log import QuorumStateFile
from core_broker.cluster.partition import Partition
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.replicas import follower
from core_broker.cluster.replicas.leader import FollowerProgress, LeaderReplica
from core_broker.cluster.replicas.membership import Membership
from core_broker.cluster.replication import fetchers
from core_broker.errors import ErrorCode
from core_broker.handlers import fetch
from core_broker.log.leader_epochs import LeaderEpochs
from core_broker.log.partition_log import PartitionLog
from core_broker.log.producer_state import ProducerStates
from core_broker.raft.node import RaftNode
from core_broker.raft.roles import Leader
from core_broker.transactions.marker_delivery import MarkerDelivery
from tests.simulation.determinism import replace


def commit_on_the_leader_alone() -> None:
    """I4: the high watermark counts only the leader."""

    def advance(self: LeaderReplica, end_offset: int, **_: object) -> bool:
        has_risen = end_offset > self.high_watermark
        self.high_watermark = max(self.high_watermark, end_offset)
        return has_risen

    replace(LeaderReplica, "advance", advance)


def commit_below_min_isr() -> None:
    """I4, KAFKA-15583: the high watermark moves although too few replicas are in sync."""
    advance = LeaderReplica.advance

    def advance_anyway(self: LeaderReplica, end_offset: int, *, min_in_sync: int, now: float) -> bool:
        return advance(self, end_offset, min_in_sync=1, now=now)

    replace(LeaderReplica, "advance", advance_anyway)


def forget_the_proposed_isr() -> None:
    """I4, I6: a member of the ISR that is being removed does not count any more before the controller agrees."""

    def set_maximal(self: LeaderReplica) -> None:
        self._maximal_isr = frozenset(self.isr if self.proposal is None else self.proposal.isr)

    replace(LeaderReplica, "_set_maximal_isr", set_maximal)


def join_isr_at_any_offset() -> None:
    """I5, KAFKA-7128: a follower joins the ISR although it has not everything that is committed."""

    def may_join(self: LeaderReplica, replica: int, progress: FollowerProgress, now: float) -> bool:
        return (
            replica not in self.isr
            and progress.end_offset >= 0
            and self._membership.may_join_isr(replica, progress.broker_epoch)
        )

    replace(LeaderReplica, "_may_join", may_join)


def trust_every_incarnation() -> None:
    """I5, KIP-903: the fetches of a broker's last run count for the present one."""
    replace(Membership, "may_join_isr", lambda self, broker_id, broker_epoch: self.is_live(broker_id))
    replace(Membership, "epoch_of", lambda self, broker_id: -1)
    replace(partition_changes, "_check_eligibility", lambda members, image: None)


def truncate_to_the_high_watermark() -> None:
    """I2, KIP-101: a follower truncates to its high watermark when the leader changes, and not by epochs."""
    update = Partition.update

    def truncate_first(self: Partition, image: Any) -> None:
        is_new = image.leader_epoch != self.leader_epoch
        update(self, image)
        if is_new and not self.is_leader:
            self.truncate(self.high_watermark)

    replace(Partition, "update", truncate_first)
    replace(fetch, "_diverges", lambda partition, entry, result: False)


def never_truncate() -> None:
    """I2: a follower keeps what another leader never had."""
    replace(fetch, "_diverges", lambda partition, entry, result: False)


def accept_fetches_of_any_epoch() -> None:
    """I1, KIP-320: a leader does not compare the epoch of a fetch with its own."""
    replace(Partition, "check_leader_epoch", lambda self, epoch: None)


def accept_answers_of_any_epoch() -> None:
    """I1, KAFKA-18991, KAFKA-13207: a follower takes the answer of an earlier leader."""

    def remove(self: fetchers.Source, key: tuple[bytes, int]) -> None:
        for table in (self._changed, self._delayed):
            table.pop(key, None)

    def decide(sent: Any, answer: Any, *, leader_epoch: int, epochs: Any, end_offset: int) -> Any:
        return kept(sent, answer, leader_epoch=sent.leader_epoch, epochs=epochs, end_offset=end_offset)

    kept = follower.decide
    replace(fetchers, "decide", decide)
    replace(fetchers.Source, "remove", remove)


def trust_unclean_brokers() -> None:
    """I9, KAFKA-18106: a broker that crashed stays in the ISR, and eligible, when it registers again."""
    plan = elections.plan_removal

    def remove(broker_id: int, image: MetadataImage, settings: Any, *, is_unclean: bool) -> Any:
        return [] if is_unclean else plan(broker_id, image, settings, is_unclean=False)

    replace(registrations, "plan_removal", remove)


def elect_anyone() -> None:
    """I8: any live replica is elected, as if every topic allowed unclean elections."""
    elect = transitions._elect

    def elect_uncleanly(partition: Any, replicas: Any, isr: Any, elr: Any, election: Any, rules: Any) -> Any:
        found = elect(partition, replicas, isr, elr, election, rules)
        others = [replica for replica in replicas if rules.is_acceptable(replica)]
        return transitions._Elected(others[0], is_unclean=True) if found.leader < 0 and others else found

    replace(transitions, "_elect", elect_uncleanly)


def keep_every_former_member_eligible() -> None:
    """I9: replicas stay eligible to lead although more was committed without them."""

    def eligible(partition: Any, replicas: Any, isr: Any, unclean: Any, rules: Any) -> tuple[int, ...]:
        candidates = {*partition.elr, *partition.isr} - set(isr) - unclean
        return tuple(replica for replica in replicas if replica in candidates)

    replace(transitions, "_eligible", eligible)


def apply_stale_isr_proposals() -> None:
    """I1, KAFKA-14617: the controller takes an ISR from a leader of an earlier epoch."""
    replace(partition_changes, "_check_leader", lambda proposal, partition, leader_id: None)
    plan = partition_changes._plan

    def plan_anyway(proposal: Any, topic_id: bytes, leader_id: int, image: Any, rules: Any) -> Any:
        proposal.partition_epoch = 1 << 30
        return plan(proposal, topic_id, leader_id, image, rules)

    replace(partition_changes, "_plan", plan_anyway)


def begin_with_everything_committed() -> None:
    """I3: a new leader takes the end of its log for the high watermark."""
    lead = Partition._lead

    def lead_with_all(self: Partition, image: Any, *, is_new_epoch: bool, was_leader: bool) -> None:
        if is_new_epoch or not was_leader:
            self.high_watermark = self.log.end_offset
        lead(self, image, is_new_epoch=is_new_epoch, was_leader=was_leader)

    replace(Partition, "_lead", lead_with_all)


def forget_the_start_of_an_epoch() -> None:
    """I3, KAFKA-7415: a new leader does not note where its epoch begins before it appends."""
    lead, assign = Partition._lead, LeaderEpochs.assign

    def lead_silently(self: Partition, image: Any, *, is_new_epoch: bool, was_leader: bool) -> None:
        replace(LeaderEpochs, "assign", lambda *_, **__: None)
        lead(self, image, is_new_epoch=is_new_epoch, was_leader=was_leader)
        replace(LeaderEpochs, "assign", assign)

    replace(Partition, "_lead", lead_silently)


def acknowledge_before_commit() -> None:
    """I7: `acks=all` is answered as soon as the leader has the records."""

    async def wait(self: Partition, offset: int, **_: object) -> None:
        return

    replace(Partition, "wait_committed", wait)


def show_uncommitted_records() -> None:
    """I12: consumers read up to the end of the log."""
    read = fetch._Fetch._read_for_consumer

    def read_all(self: Any, topic: str, entry: Any) -> Any:
        partition = self._context.services.partitions.find(topic, entry.partition)
        if partition is None:
            return read(self, topic, entry)
        kept, partition.high_watermark = partition.high_watermark, partition.log.end_offset
        try:
            return read(self, topic, entry)
        finally:
            partition.high_watermark = kept

    replace(fetch._Fetch, "_read_for_consumer", read_all)


def accept_duplicates() -> None:
    """S4: the sequence numbers of idempotent producers are not checked."""
    replace(ProducerStates, "check", lambda self, *arguments, **options: None)


def append_below_min_isr() -> None:
    """I7: `acks=all` is not refused although too few replicas are in sync."""
    append = Partition.append

    def append_anyway(self: Partition, buffer: Any, *, acks_all: bool, **options: Any) -> Any:
        return append(self, buffer, acks_all=False, **options)

    replace(Partition, "append", append_anyway)


def append_after_a_failed_write() -> None:
    """I11, KAFKA-10778: a log that failed to write takes the next append."""
    append = PartitionLog.append

    def append_anyway(self: PartitionLog, buffer: Any, **options: Any) -> Any:
        kept, self._failure = self._failure, None
        try:
            return append(self, buffer, **options)
        finally:
            if kept is not None:
                self._failure = kept

    replace(PartitionLog, "append", append_anyway)


def let_producers_wait_for_a_former_leader() -> None:
    """I13: requests that wait are not answered when the leader changes."""

    def stop_leading(self: Partition) -> None:
        self.replication = None

    replace(Partition, "_stop_leading", stop_leading)


def forget_aborted_transactions() -> None:
    """S5: read-committed consumers do not learn which transactions were aborted."""
    replace(PartitionLog, "aborted_transactions", lambda self, *_: [])


def read_open_transactions() -> None:
    """S5: read-committed consumers read up to the high watermark."""
    replace(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def give_up_on_markers() -> None:
    """S6: the coordinator does not try again to write a marker."""
    write = MarkerDelivery.write

    async def write_once(self: MarkerDelivery, topic: str, index: int, marker: Any) -> ErrorCode:
        await write(self, topic, index, marker)
        return ErrorCode.NONE

    replace(MarkerDelivery, "write", write_once)


def vote_twice() -> None:
    """Raft: the vote of an epoch is forgotten in a crash."""
    replace(QuorumStateFile, "save", lambda self, state: None)


def acknowledge_metadata_before_the_disk_has_it() -> None:
    """Raft: a node counts metadata that it has not synced."""

    def report_at_once(self: MetadataQuorum, end_offset: int) -> None:
        self.node.on_flushed(end_offset, self.node._now)

    replace(MetadataQuorum, "_flush", report_at_once)


def lead_before_the_epoch_begins() -> None:
    """Raft: a new leader commits what it has of earlier epochs, before its own epoch is committed."""
    lead = RaftNode._lead

    def lead_at_once(self: RaftNode[Any], role: Any) -> None:
        lead(self, role)
        if isinstance(self.role, Leader):
            self.role.start_offset = 0

    replace(RaftNode, "_lead", lead_at_once)


RULES: dict[str, Callable[[], None]] = {
    rule.__name__: rule
    for rule in (
        commit_on_the_leader_alone,
        commit_below_min_isr,
        forget_the_proposed_isr,
        join_isr_at_any_offset,
        trust_every_incarnation,
        truncate_to_the_high_watermark,
        never_truncate,
        trust_unclean_brokers,
        elect_anyone,
        keep_every_former_member_eligible,
        begin_with_everything_committed,
        forget_the_start_of_an_epoch,
        acknowledge_before_commit,
        show_uncommitted_records,
        accept_duplicates,
        acknowledge_metadata_before_the_disk_has_it,
        lead_before_the_epoch_begins,
        accept_fetches_of_any_epoch,
        accept_answers_of_any_epoch,
        apply_stale_isr_proposals,
        append_below_min_isr,
        append_after_a_failed_write,
        let_producers_wait_for_a_former_leader,
        forget_aborted_transactions,
        read_open_transactions,
        give_up_on_markers,
        vote_twice,
    )
}
"""Rules whose absence a few seeds notice."""
