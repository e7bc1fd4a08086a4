import pytest

from core_broker.cluster.controller.elections import plan_controlled_shutdown
from core_broker.cluster.controller.registrations import (
    check_broker_epoch,
    plan_controller_registration,
    plan_unregistration,
)
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.metadata_records import records_of
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.messages.broker_registration import Feature, Listener
from core_broker.protocol.messages.controller_registration import ControllerRegistrationRequest
from core_broker.protocol.messages.controller_registration import Feature as ControllerFeature
from core_broker.protocol.messages.controller_registration import Listener as ControllerListener
from core_broker.protocol.stored.metadata import RegisterBrokerRecord
from tests.support.controller_world import ControllerWorld

ALL_FEATURES = [
    Feature("metadata.version", 7, 30),
    Feature("eligible.leader.replicas.version", 0, 1),
    Feature("group.version", 0, 1),
    Feature("transaction.version", 0, 2),
]


@pytest.fixture
def world() -> ControllerWorld:
    world = ControllerWorld()
    world.start(1, 2)
    return world


def refusal(world: ControllerWorld, broker_id: int, **fields: object) -> ErrorCode:
    before = world.image
    with pytest.raises(BrokerError) as refused:
        world.register(broker_id, **fields)  # type: ignore[arg-type] # fields by name
    assert world.image is before
    return refused.value.code


def test_the_epoch_of_a_broker_is_the_offset_of_its_record() -> None:
    world = ControllerWorld()
    first = world.register(1)
    assert first == 5  # after the four features of a new cluster and its min.insync.replicas
    assert world.register(2) == first + 1
    assert world.image.brokers[2].epoch == first + 1
    assert world.image.features["eligible.leader.replicas.version"] == 1


def test_a_new_broker_is_fenced(world: ControllerWorld) -> None:
    world.register(3)
    assert world.broker(3).is_fenced


@pytest.mark.parametrize(
    "fields,code",
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(15) + b"\x63"]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [b"x" * 16, b"x" * 16]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [b"\x01" * 16]}, ErrorCode.INVALID_REGISTRATION),  # that of broker 1
        ({"listeners": [Listener("", "h", 1, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [Listener("A", "h", 1, 0), Listener("A", "h", 2, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": [Listener("A", "h", 1, 9)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [Feature("metadata.version", 7, 25), *ALL_FEATURES[1:]]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": ALL_FEATURES[1:]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": ALL_FEATURES[:-1]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [*ALL_FEATURES, Feature("share.version", 1, 1)]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_broker_that_does_not_fit_is_refused(
    world: ControllerWorld, fields: dict[str, object], code: ErrorCode
) -> None:
    assert refusal(world, 3, **fields) is code


@pytest.mark.parametrize("release,highest", [("4.0", 25), ("4.1", 27), ("4.2", 29), ("4.3", 30)])
def test_a_cluster_formed_for_a_release_takes_brokers_of_it_and_none_that_are_older(release: str, highest: int) -> None:
    world = ControllerWorld(initial_release_version=release)
    world.start(1)
    world.register(2, features=[Feature("metadata.version", 7, highest), *ALL_FEATURES[1:]])
    older = [Feature("metadata.version", 7, highest - 1), *ALL_FEATURES[1:]]
    assert refusal(world, 3, features=older) is ErrorCode.UNSUPPORTED_VERSION


def test_the_cluster_id_is_checked_before_the_session(world: ControllerWorld) -> None:
    assert refusal(world, 1, has_session=True, cluster_id="other") is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_second_process_with_the_same_id_is_refused_until_the_session_is_over(world: ControllerWorld) -> None:
    assert refusal(world, 1, has_session=True) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert world.register(1) > world.broker(2).epoch


def test_a_broker_that_stopped_cleanly_need_not_wait_for_the_end_of_its_session(world: ControllerWorld) -> None:
    epoch = world.broker(1).epoch
    assert refusal(world, 1, has_session=True, previous_broker_epoch=epoch - 1) is (
        ErrorCode.DUPLICATE_BROKER_REGISTRATION
    )
    assert world.register(1, has_session=True, previous_broker_epoch=epoch) > epoch


def test_the_successor_of_a_stopping_broker_need_not_wait(world: ControllerWorld) -> None:
    world.apply(plan_controlled_shutdown(world.broker(1), world.image, world.settings))
    world.register(1, has_session=True)
    assert (world.broker(1).is_fenced, world.broker(1).in_controlled_shutdown) == (True, False)


def test_the_same_incarnation_changes_its_details_and_keeps_epoch_and_state(world: ControllerWorld) -> None:
    before = world.broker(1)
    world.register(1, has_session=True, incarnation_id=before.incarnation_id, rack="b", log_dirs=[b"new" + bytes(13)])
    after = world.broker(1)
    assert (after.epoch, after.is_fenced, after.rack) == (before.epoch, False, "b")


def test_a_broker_that_stopped_cleanly_stays_eligible(world: ControllerWorld) -> None:
    world.create([1, 2], min_insync_replicas="2")
    world.register(1, previous_broker_epoch=world.broker(1).epoch)
    assert (world.partition.leader_id, world.partition.isr, world.partition.elr) == (2, (2,), (1,))


@pytest.mark.parametrize("previous_epoch", [-1, 3])
def test_kafka_18106_a_broker_that_crashed_loses_leadership_isr_and_eligibility(
    world: ControllerWorld, previous_epoch: int
) -> None:
    world.create([1, 2], min_insync_replicas="2")
    epoch = world.partition.leader_epoch
    world.register(1, previous_broker_epoch=previous_epoch)
    assert (world.partition.leader_id, world.partition.isr, world.partition.elr) == (2, (2,), ())
    assert world.partition.leader_epoch == epoch + 1


def test_kafka_18635_a_crashed_broker_is_removed_where_it_was_only_eligible(world: ControllerWorld) -> None:
    world.create([1, 2], min_insync_replicas="2")
    world.fence(1)
    before = world.partition
    world.register(1, previous_broker_epoch=-1)
    assert (before.elr, world.partition.elr) == ((1,), ())


def test_an_unregistered_broker_is_in_no_isr_and_not_eligible(world: ControllerWorld) -> None:
    world.create([1, 2], [2, 1], min_insync_replicas="2")
    world.fence(1)
    world.apply(plan_unregistration(1, world.image, world.settings))
    assert list(world.image.brokers) == [2]
    assert all((p.leader_id, p.isr, p.elr) == (2, (2,), ()) for p in world.topic.partitions.values())
    with pytest.raises(BrokerError) as refused:
        plan_unregistration(1, world.image, world.settings)
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize("broker_id,delta", [(9, 0), (1, 1), (1, -1)])
def test_a_stale_broker_epoch_is_refused(world: ControllerWorld, broker_id: int, delta: int) -> None:
    with pytest.raises(BrokerError) as refused:
        check_broker_epoch(broker_id, world.broker(1).epoch + delta, world.image)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_the_record_has_what_the_broker_announced(world: ControllerWorld) -> None:
    world.register(3, rack="r")
    broker = world.broker(3)
    assert (broker.rack, broker.log_dirs, broker.endpoints[0].listener) == ("r", (b"\x03" * 16,), "PLAINTEXT")
    assert RegisterBrokerRecord.VERSIONS == (0, 4)


# -- controllers -------------------------------------------------------------------------------------------------------


def controller(**fields: object) -> ControllerRegistrationRequest:
    values: dict[str, object] = {
        "controller_id": 7,
        "incarnation_id": b"i" * 16,
        "listeners": [ControllerListener("CONTROLLER", "here", 9093, 1)],
        "features": [ControllerFeature("metadata.version", 7, 30)],
        **fields,
    }
    return ControllerRegistrationRequest(**values)  # type: ignore[arg-type] # fields by name


def test_a_controller_is_registered_with_its_listeners_and_features(world: ControllerWorld) -> None:
    world.apply(plan_controller_registration(controller(), world.image))
    registered = world.image.controllers[7]
    assert (registered.incarnation_id, registered.features) == (b"i" * 16, (("metadata.version", 7, 30),))
    endpoint = registered.endpoint("CONTROLLER")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port, endpoint.security_protocol) == ("here", 9093, 1)
    restored = ControllerWorld()
    restored.apply(list(records_of(world.image)))
    assert restored.image.controllers == world.image.controllers


@pytest.mark.parametrize("listeners", [[ControllerListener("", "h", 1, 0)], [ControllerListener("A", "h", 1, 0)] * 2])
def test_a_controller_with_unusable_listeners_is_refused(
    world: ControllerWorld, listeners: list[ControllerListener]
) -> None:
    with pytest.raises(BrokerError) as refused:
        plan_controller_registration(controller(listeners=listeners), world.image)
    assert refused.value.code is ErrorCode.INVALID_REGISTRATION


def test_a_controller_cannot_register_before_its_record_is_known() -> None:
    old = MetadataImage(cluster_id="c", features={"metadata.version": 14})
    with pytest.raises(BrokerError) as refused:
        plan_controller_registration(controller(), old)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
