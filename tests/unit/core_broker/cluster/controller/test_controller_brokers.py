"""Several brokers at one controller: registrations, heartbeats, sessions, and the changes that follow from them."""

import asyncio
from collections.abc import Sequence

import pytest

from core_broker.cluster.controller.configs import ConfigChange
from core_broker.cluster.controller.controller import Controller, LeaderRebalance
from core_broker.cluster.controller.topics import CreatedTopic, NewTopic
from core_broker.cluster.controller.transitions import Election
from core_broker.cluster.features import SUPPORTED_FEATURES
from core_broker.cluster.metadata import PartitionImage, ResourceType
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import alter_partition_reassignments as reassignments
from core_broker.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from core_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from core_broker.raft.roles import Contact, Leader
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings

SESSION_MS = 9000


class Brokers:
    """Brokers 2 and 3 as far as the controller sees them; broker 1 is registered by the fixture."""

    def __init__(self, controller: Controller, quorum: MetadataQuorum, clock: ManualClock) -> None:
        self.controller = controller
        self.quorum = quorum
        self.clock = clock
        self.incarnation = 0

    async def register(self, broker_id: int, previous_epoch: int = -1) -> int:
        self.incarnation += 1
        return await self.controller.register_broker(
            BrokerRegistrationRequest(
                broker_id=broker_id,
                cluster_id="test-cluster",
                incarnation_id=self.incarnation.to_bytes(16, "big"),
                features=[Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
                log_dirs=[broker_id.to_bytes(1, "big") * 16],
                previous_broker_epoch=previous_epoch,
            )
        )

    async def heartbeat(
        self, broker_id: int, *, offset: int | None = None, want_fence: bool = False, want_shut_down: bool = False
    ) -> BrokerHeartbeatResponse:
        applied = self.quorum.image.offset if offset is None else offset
        epoch = self.quorum.image.brokers[broker_id].epoch
        request = BrokerHeartbeatRequest(broker_id, epoch, applied, want_fence, want_shut_down)
        return await self.controller.heartbeat(request)

    async def start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            await self.register(broker_id)
            assert not (await self.heartbeat(broker_id)).is_fenced

    async def create(self, *replicas: int) -> None:
        configs = {"min.insync.replicas": "2"}
        (result,) = await self.controller.create_topics(
            [NewTopic(name="t", assignments={0: list(replicas)}, configs=configs)]
        )
        assert isinstance(result, CreatedTopic)

    @property
    def partition(self) -> PartitionImage:
        return self.quorum.image.topics["t"].partitions[0]


@pytest.fixture
async def brokers(controller: Controller, quorum: MetadataQuorum, clock: ManualClock) -> Brokers:
    brokers = Brokers(controller, quorum, clock)
    await brokers.start(2, 3)
    return brokers


async def test_a_broker_is_unfenced_when_it_has_applied_its_registration(
    controller: Controller, quorum: MetadataQuorum, clock: ManualClock
) -> None:
    brokers = Brokers(controller, quorum, clock)
    epoch = await brokers.register(2)
    assert epoch == quorum.image.offset
    early = await brokers.heartbeat(2, offset=epoch - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    waiting = await brokers.heartbeat(2, offset=epoch, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    ready = await brokers.heartbeat(2, offset=epoch)
    assert (ready.is_fenced, ready.should_shut_down) == (False, False)
    assert not quorum.image.brokers[2].is_fenced


async def test_a_heartbeat_of_another_epoch_is_stale(brokers: Brokers) -> None:
    with pytest.raises(BrokerError) as refused:
        await brokers.controller.heartbeat(BrokerHeartbeatRequest(2, 1))
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_an_ordinary_heartbeat_writes_nothing(brokers: Brokers) -> None:
    end_offset = brokers.quorum.end_offset
    for _ in range(10):
        await brokers.heartbeat(2)
    assert brokers.quorum.end_offset == end_offset


async def test_a_heartbeat_does_not_report_a_state_before_it_is_committed(brokers: Brokers) -> None:
    epoch = brokers.quorum.image.brokers[2].epoch
    fencing = asyncio.ensure_future(brokers.heartbeat(2, want_fence=True))
    await asyncio.sleep(0)
    proposed = brokers.quorum.image.brokers[2]
    response = await brokers.controller.heartbeat(BrokerHeartbeatRequest(2, epoch, 0, want_fence=True))
    committed = brokers.quorum.image.brokers[2]
    assert (proposed.is_fenced, response.is_fenced, committed.is_fenced) == (False, True, True)
    await fencing


@pytest.mark.parametrize(("silent_seconds", "left_ms"), [(3, 6000), (1000, 4500)])
async def test_the_broker_that_died_with_the_last_controller_does_not_get_a_whole_session(
    brokers: Brokers, silent_seconds: float, left_ms: int
) -> None:
    role = brokers.quorum.node.role
    assert isinstance(role, Leader)
    role.predecessor = Contact(2, asyncio.get_running_loop().time() - silent_seconds)
    for listener in brokers.quorum.on_leadership:
        listener(True)
    for passed_ms, fenced in ((left_ms - 1000, []), (1000, [2])):
        brokers.clock.advance(passed_ms)
        await brokers.controller.fence_silent_brokers()
        assert [broker.broker_id for broker in brokers.quorum.image.brokers.values() if broker.is_fenced] == fenced


async def test_a_silent_broker_is_fenced_and_comes_back_with_its_next_heartbeat(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    brokers.clock.advance(SESSION_MS - 1)
    await brokers.heartbeat(3)
    await brokers.controller.fence_silent_brokers()
    assert brokers.partition.leader_id == 2
    brokers.clock.advance(1)
    await brokers.controller.fence_silent_brokers()
    assert (brokers.partition.leader_id, brokers.partition.isr, brokers.partition.elr) == (3, (3,), (2,))
    assert brokers.quorum.image.brokers[2].is_fenced
    assert not (await brokers.heartbeat(2)).is_fenced


async def test_the_broker_of_this_node_is_never_fenced_before_its_first_heartbeat(brokers: Brokers) -> None:
    brokers.clock.advance(10 * SESSION_MS)
    await brokers.controller.fence_silent_brokers()
    assert not brokers.quorum.image.brokers[1].is_fenced
    assert brokers.quorum.image.brokers[2].is_fenced


async def test_a_second_process_may_register_only_after_the_session_of_the_first(brokers: Brokers) -> None:
    with pytest.raises(BrokerError) as refused:
        await brokers.register(2)
    assert refused.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    brokers.clock.advance(SESSION_MS)
    assert await brokers.register(2) == brokers.quorum.image.brokers[2].epoch


async def test_a_new_active_controller_gives_every_broker_a_fresh_session(brokers: Brokers) -> None:
    brokers.clock.advance(SESSION_MS - 1)
    for listener in brokers.quorum.on_leadership:
        listener(False)
        listener(True)
    brokers.clock.advance(SESSION_MS - 1)
    await brokers.controller.fence_silent_brokers()
    assert not brokers.quorum.image.brokers[2].is_fenced
    with pytest.raises(BrokerError):
        await brokers.register(2)


async def test_a_controlled_shutdown_waits_until_the_other_brokers_know_of_it(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    await brokers.heartbeat(1)
    await brokers.heartbeat(3)
    leaving = await brokers.heartbeat(2, want_shut_down=True)
    assert (leaving.is_fenced, leaving.should_shut_down) == (False, False)
    assert (brokers.partition.leader_id, brokers.partition.isr) == (3, (3,))
    behind = await brokers.heartbeat(2, want_shut_down=True)
    assert not behind.should_shut_down
    await brokers.heartbeat(1)
    await brokers.heartbeat(3)
    done = await brokers.heartbeat(2, want_shut_down=True)
    assert (done.is_fenced, done.should_shut_down) == (True, True)
    assert brokers.quorum.image.brokers[2].is_fenced


async def test_a_broker_that_leads_nothing_stops_at_once(brokers: Brokers) -> None:
    await brokers.create(3, 2)
    assert (await brokers.heartbeat(2, want_shut_down=True)).should_shut_down
    assert brokers.partition.isr == (3,)


async def test_changes_are_planned_against_everything_proposed_before(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    partition, image = brokers.partition, brokers.quorum.image
    members = [BrokerState(2, image.brokers[2].epoch)]
    proposal = PartitionData(0, 0, [], members, 0, partition.partition_epoch)
    request = AlterPartitionRequest(2, image.brokers[2].epoch, [TopicData(image.topics["t"].topic_id, [proposal])])
    fencing, response = await asyncio.gather(
        brokers.heartbeat(2, want_fence=True), brokers.controller.alter_partition(request)
    )
    assert fencing.is_fenced
    assert response.topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (brokers.partition.leader_id, brokers.partition.isr) == (3, (3,))


async def test_leaders_are_elected_and_rebalanced(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    controller, wanted = brokers.controller, [("t", 0), ("t", 9)]
    results = await controller.elect_leaders(Election.PREFERRED, wanted)
    assert [error.code for error in results.values() if error] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert await controller.elect_leaders(Election.PREFERRED, None) == {}
    await brokers.heartbeat(2, want_fence=True)
    await brokers.heartbeat(2)
    assert list(await controller.elect_leaders(Election.PREFERRED, None)) == [("t", 0)]
    assert await controller.rebalance_leaders(10) == 0  # not in sync yet
    epochs = [BrokerState(broker_id, -1) for broker_id in (3, 2)]
    partition, image = brokers.partition, brokers.quorum.image
    proposal = PartitionData(0, partition.leader_epoch, [], epochs, 0, partition.partition_epoch)
    request = AlterPartitionRequest(3, image.brokers[3].epoch, [TopicData(image.topics["t"].topic_id, [proposal])])
    await controller.alter_partition(request)
    assert await controller.rebalance_leaders(10) == 1
    assert brokers.partition.leader_id == 2


async def test_a_reassignment_is_started_and_cancelled(brokers: Brokers) -> None:
    await brokers.create(2)

    async def reassign(*replicas: list[int] | None) -> list[int]:
        partitions = [reassignments.ReassignablePartition(0, target) for target in replicas]
        request = reassignments.AlterPartitionReassignmentsRequest(
            topics=[reassignments.ReassignableTopic("t", partitions)]
        )
        response = await brokers.controller.reassign(request)
        return [partition.error_code for partition in response.responses[0].partitions]

    assert await reassign([3]) == [0]
    assert brokers.partition.adding_replicas == (3,)
    assert await reassign(None) == [0]
    assert brokers.partition.replicas == (2,)
    assert await reassign(None) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]


async def test_a_lower_min_isr_is_written_together_with_what_it_means(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    await brokers.heartbeat(3, want_fence=True)
    assert brokers.partition.elr == (3,)
    seen: list[tuple[int, ...]] = []
    brokers.quorum.subscribe(lambda image, records: seen.append(image.topics["t"].partitions[0].elr))
    change = ConfigChange(key="min.insync.replicas", value="1")
    assert await brokers.controller.alter_configs([((ResourceType.TOPIC, "t"), [change])]) == [None]
    assert seen == [()]


async def test_a_feature_waits_for_every_broker(brokers: Brokers) -> None:
    with pytest.raises(BrokerError, match="share.version"):
        await brokers.controller.update_features({"share.version": 1})
    await brokers.controller.update_features({"transaction.version": 1})
    assert brokers.quorum.image.features["transaction.version"] == 1


async def test_producer_ids_go_to_registered_brokers_only(brokers: Brokers) -> None:
    epoch = brokers.quorum.image.brokers[2].epoch
    first = await brokers.controller.allocate_producer_ids(broker_id=2, broker_epoch=epoch)
    second = await brokers.controller.allocate_producer_ids(broker_id=2, broker_epoch=epoch)
    assert (first, second) == (range(1000), range(1000, 2000))
    with pytest.raises(BrokerError) as refused:
        await brokers.controller.allocate_producer_ids(broker_id=2, broker_epoch=epoch + 1)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_an_unregistered_broker_is_gone(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    await brokers.controller.unregister_broker(2)
    assert 2 not in brokers.quorum.image.brokers
    assert (brokers.partition.leader_id, brokers.partition.isr, brokers.partition.elr) == (3, (3,), ())
    with pytest.raises(BrokerError) as refused:
        await brokers.controller.unregister_broker(1)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


async def test_a_topic_is_planned_again_if_a_broker_fails_while_its_files_are_prepared(
    quorum: MetadataQuorum, controller: Controller, clock: ManualClock, settings: BrokerSettings
) -> None:
    fast = Brokers(controller, quorum, clock)
    prepared: list[int] = []

    async def prepare(records: Sequence[Message]) -> None:
        prepared.append(len(records))
        if len(prepared) == 1:
            await fast.heartbeat(2, want_fence=True)

    slow = Controller(quorum, settings, clock, prepare=prepare)
    await fast.start(2)
    (result,) = await slow.create_topics([NewTopic(name="t", assignments={0: [2, 1]})])
    assert isinstance(result, CreatedTopic)
    assert len(prepared) == 2
    assert (fast.partition.leader_id, fast.partition.isr) == (1, (1,))


async def test_nothing_is_changed_by_a_node_that_is_not_the_active_controller(brokers: Brokers) -> None:
    brokers.quorum.node.resign(0.0)
    changes = (
        brokers.controller.create_topics([NewTopic(name="t")]),
        brokers.controller.heartbeat(BrokerHeartbeatRequest(2, 0)),
        brokers.controller.allocate_producer_ids(),
        brokers.controller.rebalance_leaders(10),
    )
    for change in changes:
        with pytest.raises(BrokerError) as refused:
            await change
        assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_lost_change_fails_with_the_error_of_the_quorum(brokers: Brokers) -> None:
    brokers.quorum._failure = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
    with pytest.raises(BrokerError, match="disk full"):
        await brokers.controller.create_topics([NewTopic(name="t")])
    brokers.quorum._failure = None


async def test_the_background_task_fences_and_rebalances(
    quorum: MetadataQuorum, controller: Controller, clock: ManualClock, settings: BrokerSettings
) -> None:
    rebalance = LeaderRebalance(interval_seconds=0.0, imbalance_percentage=0)
    active = Controller(quorum, settings, clock, session_seconds=0.08, rebalance=rebalance)
    brokers = Brokers(active, quorum, clock)
    await brokers.start(2)
    fenced = asyncio.get_running_loop().create_future()

    def notice(image: object, records: object) -> None:
        if quorum.image.brokers[2].is_fenced and not fenced.done():
            fenced.set_result(None)

    quorum.subscribe(notice)
    task = asyncio.ensure_future(active.run())
    try:
        while not fenced.done():
            clock.advance(20)
            await asyncio.sleep(0.005)
    finally:
        task.cancel()


async def test_elections_are_counted_and_unclean_ones_apart(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    controller = brokers.controller
    assert (controller.elections, controller.unclean_elections) == (0, 0)
    brokers.clock.advance(SESSION_MS // 2)
    await brokers.heartbeat(3)
    brokers.clock.advance(SESSION_MS // 2)
    await controller.fence_silent_brokers()
    assert brokers.partition.leader_id == 3
    assert (controller.elections, controller.unclean_elections) == (1, 0)
    brokers.clock.advance(SESSION_MS)
    await controller.fence_silent_brokers()
    assert brokers.partition.leader_id == -1, "the loss of a leader is not an election"
    assert (controller.elections, controller.unclean_elections) == (1, 0)


async def test_an_election_that_may_lose_records_is_counted_as_unclean(brokers: Brokers) -> None:
    await brokers.create(2, 3)
    configs = [ConfigChange(key="min.insync.replicas", value="1")]
    await brokers.controller.alter_configs([((ResourceType.TOPIC, "t"), configs)])
    for broker_id in (3, 2):
        await brokers.heartbeat(broker_id, want_fence=True)
    await brokers.heartbeat(3)
    assert brokers.partition.leader_id == -1
    await brokers.controller.elect_leaders(Election.UNCLEAN, [("t", 0)])
    assert brokers.partition.leader_id == 3
    assert (brokers.controller.elections, brokers.controller.unclean_elections) == (1, 1)
