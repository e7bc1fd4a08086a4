"""Plans the registration of nodes: checks a request as Kafka does, and returns the records that carry it out."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from core_broker.cluster.controller.elections import plan_removal
from core_broker.cluster.features import ELR_FEATURE, METADATA_VERSION
from core_broker.cluster.metadata import BrokerImage, MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.messages.broker_registration import BrokerRegistrationRequest, Listener
from core_broker.protocol.messages.controller_registration import ControllerRegistrationRequest
from core_broker.protocol.messages.controller_registration import Listener as ControllerListener
from core_broker.protocol.stored import metadata as stored
from core_broker.settings import BrokerSettings

CONTROLLERS_SINCE: Final = 15
"""The metadata.version from which controllers register, too (KIP-919)."""
_DIRECTORIES_SINCE: Final = 17
"""The metadata.version from which a broker names its log directories."""
_RESERVED_DIRECTORIES: Final = 100
_SECURITY_PROTOCOLS: Final = range(4)


class Registration(NamedTuple):
    """The epoch of a broker, and the records that register it."""

    epoch: int
    records: list[Message]
    is_clean: bool
    """Whether it has every record that it ever acknowledged: its last incarnation stopped cleanly, or still runs."""


def plan_registration(
    request: BrokerRegistrationRequest,
    image: MetadataImage,
    settings: BrokerSettings,
    *,
    next_offset: int,
    has_session: bool,
) -> Registration:
    """Register a broker; `has_session` says whether its previous incarnation is alive. Raises BrokerError."""
    features = image.features
    existing = image.brokers.get(request.broker_id)
    _check_identity(request, image.cluster_id, existing, has_session=has_session)
    if features.get(METADATA_VERSION, 0) >= _DIRECTORIES_SINCE:
        _check_directories(request, image)
    _check_listeners(request.listeners)
    _check_features(request, features)
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        return Registration(existing.epoch, [_record(request, existing.epoch, existing)], is_clean=True)
    # The epoch is the offset of the record, so it is higher than that of every earlier incarnation.
    epoch = next_offset
    is_clean = existing is not None and request.previous_broker_epoch == existing.epoch
    removal = plan_removal(
        request.broker_id, image, settings, is_unclean=not is_clean and features.get(ELR_FEATURE, 0) > 0
    )
    return Registration(epoch, [_record(request, epoch, None), *removal], is_clean=is_clean)


def plan_controller_registration(request: ControllerRegistrationRequest, image: MetadataImage) -> list[Message]:
    """Register a controller, or change its details. Raises BrokerError."""
    level = image.features.get(METADATA_VERSION, 0)
    if level < CONTROLLERS_SINCE:
        text = f"Controllers can register from metadata.version {CONTROLLERS_SINCE} on; it is {level}."
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, text)
    _check_listeners(request.listeners)
    endpoints = [
        stored.ControllerEndpoint(
            name=item.name, host=item.host, port=item.port, security_protocol=item.security_protocol
        )
        for item in request.listeners
    ]
    features = [
        stored.ControllerFeature(
            name=item.name,
            min_supported_version=item.min_supported_version,
            max_supported_version=item.max_supported_version,
        )
        for item in request.features
    ]
    return [
        stored.RegisterControllerRecord(
            controller_id=request.controller_id,
            incarnation_id=request.incarnation_id,
            end_points=endpoints,
            features=features,
        )
    ]


def plan_unregistration(broker_id: int, image: MetadataImage, settings: BrokerSettings) -> list[Message]:
    """Forget a broker: it leaves every ISR and is not eligible to lead any more. Raises BrokerError."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        text = f"Broker ID {broker_id} is not currently registered"
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
    return [
        *plan_removal(broker_id, image, settings, is_unclean=True),
        stored.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch),
    ]


def check_broker_epoch(broker_id: int, epoch: int, image: MetadataImage) -> BrokerImage:
    """The broker with this id and epoch. Raises STALE_BROKER_EPOCH."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        text = f"Expected broker {broker_id} to be registered, but it is not."
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, text)
    if broker.epoch != epoch:
        text = f"Expected epoch {broker.epoch} of broker {broker_id}, but got {epoch}."
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, text)
    return broker


def _check_identity(
    request: BrokerRegistrationRequest, cluster_id: str, existing: BrokerImage | None, *, has_session: bool
) -> None:
    if request.cluster_id != cluster_id:
        text = f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}"
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    if existing is None or existing.incarnation_id == request.incarnation_id:
        is_alive = False
    else:
        # A broker that is stopping leads nothing and is in no ISR: its successor need not wait (KAFKA-19047). Nor if
        # it knows the epoch of its predecessor, which is written at the end of a clean stop.
        has_ended = existing.in_controlled_shutdown or request.previous_broker_epoch == existing.epoch
        is_alive = has_session and not has_ended
    if is_alive:
        text = f"Another broker is registered with broker id {request.broker_id}, and its session is not over."
        raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    if request.is_migrating_zk_broker:
        text = f"Broker {request.broker_id} is a ZooKeeper broker; migration from ZooKeeper is not supported."
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)


def _check_directories(request: BrokerRegistrationRequest, image: MetadataImage) -> None:
    if not request.log_dirs:
        raise _invalid("No directories specified in request")
    owners = {
        directory: broker.broker_id
        for broker in image.brokers.values()
        if broker.broker_id != request.broker_id
        for directory in broker.log_dirs
    }
    for directory, count in Counter(request.log_dirs).items():
        if int.from_bytes(directory, "big") < _RESERVED_DIRECTORIES:
            raise _invalid(f"Reserved directory ID in request: {directory.hex()}")
        if count > 1:
            raise _invalid(f"Duplicate directory ID in request: {directory.hex()}")
        if directory in owners:
            raise _invalid(f"Broker {owners[directory]} is already registered with directory {directory.hex()}")


def _check_listeners(listeners: Sequence[Listener] | Sequence[ControllerListener]) -> None:
    names = [listener.name for listener in listeners]
    if not all(names) or len(set(names)) != len(names):
        raise _invalid(f"The names of listeners must be unique and not empty: {names}")
    for listener in listeners:
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            raise _invalid(f"Unknown security protocol {listener.security_protocol} in listener {listener.name}")


def _check_features(request: BrokerRegistrationRequest, finalized: dict[str, int]) -> None:
    for feature in request.features:
        level = finalized.get(feature.name, 0)
        if not feature.min_supported_version <= level <= feature.max_supported_version:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {feature.name}. "
                f"The broker wants a version between {feature.min_supported_version} and "
                f"{feature.max_supported_version}, inclusive.",
            )
    offered = {feature.name for feature in request.features}
    if METADATA_VERSION not in offered:
        raise _invalid("Request features do not contain 'metadata.version'")
    for name, level in finalized.items():
        if level and name not in offered:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. "
                "The broker does not support the feature.",
            )


def _record(
    request: BrokerRegistrationRequest, epoch: int, existing: BrokerImage | None
) -> stored.RegisterBrokerRecord:
    """The registration; one that is amended keeps its state, a new one is fenced until it has caught up."""
    return stored.RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            stored.BrokerEndpoint(
                name=item.name, host=item.host, port=item.port, security_protocol=item.security_protocol
            )
            for item in request.listeners
        ],
        features=[
            stored.BrokerFeature(
                name=item.name,
                min_supported_version=item.min_supported_version,
                max_supported_version=item.max_supported_version,
            )
            for item in request.features
        ],
        rack=request.rack,
        fenced=existing is None or existing.is_fenced,
        in_controlled_shutdown=existing is not None and existing.in_controlled_shutdown,
        log_dirs=list(request.log_dirs),
    )


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REGISTRATION, message)
