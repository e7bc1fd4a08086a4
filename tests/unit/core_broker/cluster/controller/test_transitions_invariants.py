"""Brokers fail, stop, return and lose data in any order: no clean election loses committed records.

Each replica has a length. The leader grows, followers copy it, and what every member of a large enough ISR has is
committed, as a leader counts it. A restart after a crash may shorten a replica.
"""

from collections import defaultdict

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from core_broker.cluster.controller.elections import (
    leads_partitions,
    plan_controlled_shutdown,
    plan_election,
    plan_fencing,
    plan_rebalance,
    plan_unfencing,
)
from core_broker.cluster.controller.heartbeats import BrokerState, Sessions, next_state, state_of
from core_broker.cluster.controller.partition_changes import plan_alter_partition
from core_broker.cluster.controller.reassignments import Reassigner
from core_broker.cluster.controller.registrations import plan_registration, plan_unregistration
from core_broker.cluster.controller.transitions import RECOVERING, Election
from core_broker.cluster.metadata import NO_LEADER, PartitionImage
from core_broker.errors import BrokerError
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tests.support.controller_world import ControllerWorld

BROKERS = (1, 2, 3, 4)
PARTITIONS = (0, 1)
SESSION_SECONDS = 9.0

a_broker = st.sampled_from(BROKERS)
a_partition = st.sampled_from(PARTITIONS)


class Cluster(RuleBasedStateMachine):
    """Four brokers and two partitions with three replicas each."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ControllerWorld()
        self.sessions = Sessions(SESSION_SECONDS)
        self.now = 0.0
        self.lengths: dict[tuple[int, int], int] = defaultdict(int)
        self.committed = dict.fromkeys(PARTITIONS, 0)
        self.min_isr = 2
        self.targets: dict[int, tuple[int, ...]] = {}

    @initialize(min_isr=st.integers(1, 3))
    def begin(self, min_isr: int) -> None:
        self.min_isr = min_isr
        self.world.start(*BROKERS)
        self.world.create([1, 2, 3], [2, 3, 4], min_insync_replicas=str(min_isr))
        for broker_id in BROKERS:
            self.sessions.touch(broker_id, self.world.broker(broker_id).epoch, self.now)

    def apply(self, records: list[Message]) -> None:
        """Apply records, and judge every new leader."""
        before = dict(self.world.topic.partitions)
        self.world.apply(records)
        for index, partition in self.world.topic.partitions.items():
            old = before[index]
            if partition.leader_id == NO_LEADER or partition.leader_id == old.leader_id:
                continue
            length = self.lengths[index, partition.leader_id]
            if old.isr or old.elr:
                assert length >= self.committed[index], "a clean election lost committed records"
            else:
                assert partition.leader_recovery_state == RECOVERING
                self.committed[index] = min(self.committed[index], length)

    def partition(self, index: int) -> PartitionImage:
        return self.world.topic.partitions[index]

    # -- data --

    @rule(index=a_partition)
    def produce(self, index: int) -> None:
        leader = self.partition(index).leader_id
        if leader != NO_LEADER:
            self.lengths[index, leader] += 1

    @rule(index=a_partition, follower=a_broker)
    def replicate(self, index: int, follower: int) -> None:
        partition = self.partition(index)
        if partition.leader_id != NO_LEADER and follower in partition.replicas:
            self.lengths[index, follower] = self.lengths[index, partition.leader_id]

    @rule(index=a_partition)
    def commit(self, index: int) -> None:
        partition = self.partition(index)
        if partition.leader_id != NO_LEADER and len(partition.isr) >= min(self.min_isr, len(partition.replicas)):
            everywhere = min(self.lengths[index, replica] for replica in partition.isr)
            self.committed[index] = max(self.committed[index], everywhere)

    @rule(index=a_partition)
    def write_with_acks_all(self, index: int) -> None:
        self.produce(index)
        for replica in self.partition(index).isr:
            self.replicate(index, replica)
        self.commit(index)

    # -- brokers --

    @rule(broker_id=a_broker, after_session=st.booleans(), was_clean=st.booleans(), lost=st.integers(1, 3))
    def restart(self, broker_id: int, after_session: bool, was_clean: bool, lost: int) -> None:
        known = self.world.image.brokers.get(broker_id)
        if after_session:
            self.sessions.remove(broker_id)
        has_session = known is not None and self.sessions.is_valid(broker_id, known.epoch, self.now)
        previous = known.epoch if known is not None and was_clean else -1
        old = dict(self.lengths)
        if not was_clean or known is None:
            for index in PARTITIONS:
                self.lengths[index, broker_id] = max(0, self.lengths[index, broker_id] - lost)
        try:
            plan = plan_registration(
                self.world.request(broker_id, previous_broker_epoch=previous),
                self.world.image,
                self.world.settings,
                next_offset=self.world.next_offset,
                has_session=has_session,
            )
        except BrokerError:
            self.lengths.update(old)
            return
        self.apply(plan.records)
        assert self.world.broker(broker_id).is_fenced
        self.sessions.touch(broker_id, plan.epoch, self.now)

    @rule(broker_id=a_broker, is_behind=st.booleans(), want_fence=st.booleans(), want_shut_down=st.booleans())
    def heartbeat(self, broker_id: int, is_behind: bool, want_fence: bool, want_shut_down: bool) -> None:
        image, settings = self.world.image, self.world.settings
        broker = image.brokers.get(broker_id)
        if broker is None:
            return
        offset = broker.epoch - 1 if is_behind else image.offset
        request = BrokerHeartbeatRequest(broker_id, broker.epoch, offset, want_fence, want_shut_down)
        self.sessions.touch(broker_id, broker.epoch, self.now, metadata_offset=offset)
        state = next_state(
            broker,
            request,
            leads=lambda: leads_partitions(broker_id, image),
            is_handover_known=lambda: True,
        )
        if state is state_of(broker):
            return
        match state:
            case BrokerState.UNFENCED:
                assert not is_behind
                self.apply(plan_unfencing(broker, image, settings))
            case BrokerState.CONTROLLED_SHUTDOWN:
                self.apply(plan_controlled_shutdown(broker, image, settings))
                assert not leads_partitions(broker_id, self.world.image)
            case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
                self.apply(plan_fencing(broker, image, settings))

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for broker_id in self.sessions.expired(self.now):
            self.sessions.remove(broker_id)
            broker = self.world.image.brokers.get(broker_id)
            if broker is not None and not broker.is_fenced:
                self.apply(plan_fencing(broker, self.world.image, self.world.settings))

    @rule(broker_id=a_broker)
    def unregister(self, broker_id: int) -> None:
        broker = self.world.image.brokers.get(broker_id)
        if broker is not None and broker.is_fenced:
            self.apply(plan_unregistration(broker_id, self.world.image, self.world.settings))

    # -- partitions --

    @rule(index=a_partition, replica=a_broker, joins=st.booleans())
    def change_isr(self, index: int, replica: int, joins: bool) -> None:
        partition = self.partition(index)
        if partition.leader_id in (NO_LEADER, replica) or replica not in partition.replicas:
            return
        others = [member for member in partition.isr if member != replica]
        has_everything = self.lengths[index, replica] >= self.lengths[index, partition.leader_id]
        if joins and not has_everything:
            return
        isr = [*others, replica] if joins else others
        request = self.world.proposal(*isr, index=index)
        records, response = plan_alter_partition(request, self.world.image, self.world.settings)
        self.apply([*records])
        (answer,) = response.topics[0].partitions
        if answer.error_code == 0:
            after = self.partition(index)
            assert (answer.leader_id, tuple(answer.isr)) == (after.leader_id, after.isr)
            assert (answer.leader_epoch, answer.partition_epoch) == (after.leader_epoch, after.partition_epoch)

    @rule(index=a_partition, wanted=st.lists(a_broker, min_size=1, max_size=4, unique=True))
    def reassign(self, index: int, wanted: list[int]) -> None:
        try:
            record = Reassigner(self.world.image, self.world.rules).plan("t", index, wanted)
        except BrokerError:
            return
        self.targets[index] = tuple(wanted)
        self.apply([] if record is None else [record])

    @rule(index=a_partition)
    def cancel(self, index: int) -> None:
        partition = self.partition(index)
        try:
            record = Reassigner(self.world.image, self.world.rules).plan("t", index, None)
        except BrokerError:
            return
        assert record is not None
        self.apply([record])
        kept = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
        assert self.partition(index).replicas == kept
        self.targets.pop(index, None)

    @rule(index=a_partition)
    def elect_preferred(self, index: int) -> None:
        try:
            record = plan_election("t", index, Election.PREFERRED, self.world.image, self.world.rules)
        except BrokerError:
            return
        self.apply([record])

    @rule()
    def rebalance(self) -> None:
        self.apply([*plan_rebalance(self.world.image, self.world.settings, imbalance_percentage=10)])

    @rule(min_isr=st.integers(1, 3))
    def configure(self, min_isr: int) -> None:
        self.world.configure(min_insync_replicas=str(min_isr))
        self.min_isr = min_isr

    # -- what holds --

    @precondition(lambda self: self.world.image.topics)
    @invariant()
    def eligible_replicas_exist_only_below_the_minimum(self) -> None:
        for partition in self.world.topic.partitions.values():
            if partition.elr and partition.leader_id != NO_LEADER:
                assert len(partition.isr) < min(self.min_isr, len(partition.replicas))

    @precondition(lambda self: self.world.image.topics)
    @invariant()
    def eligible_replicas_have_everything(self) -> None:
        for index, partition in self.world.topic.partitions.items():
            for replica in (*partition.isr, *partition.elr):
                assert self.lengths[index, replica] >= self.committed[index]

    @precondition(lambda self: self.world.image.topics)
    @invariant()
    def a_complete_reassignment_has_the_replicas_of_its_target(self) -> None:
        for index, target in list(self.targets.items()):
            partition = self.world.topic.partitions[index]
            if not partition.adding_replicas and not partition.removing_replicas:
                assert partition.replicas == target
                del self.targets[index]


def test_no_clean_election_loses_committed_records() -> None:
    run_state_machine_as_test(
        Cluster, settings=hypothesis_settings(max_examples=150, stateful_step_count=50, deadline=None)
    )
