"""Plans changes of feature levels (KIP-584): every registered broker and controller must support the new ones."""

from collections.abc import Iterator, Mapping

from core_broker.cluster.controller.elections import plan_end_of_elr, plan_start_of_elr
from core_broker.cluster.features import (
    ELR_FEATURE,
    KRAFT_VERSION,
    METADATA_VERSION,
    NEEDED_METADATA_VERSION,
    NEW_RECORDS_SINCE,
    SUPPORTED_FEATURES,
)
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import FeatureLevelRecord
from core_broker.settings import BrokerSettings


def plan_feature_updates(
    levels: Mapping[str, int], image: MetadataImage, settings: BrokerSettings, *, kraft_version: int
) -> list[Message]:
    """Finalise features at levels, all or none; 0 removes a feature. Raises BrokerError."""
    current = {**image.features, KRAFT_VERSION: kraft_version}
    changed = {name: level for name, level in levels.items() if current.get(name, 0) != level}
    proposed = {**image.features, **changed}
    for name, level in changed.items():
        _check_support(name, level, image, kraft_version)
        _check_metadata_version(name, level, proposed)
    if METADATA_VERSION in changed:
        _check_records(changed[METADATA_VERSION], image)
    effects: list[Message] = []
    if ELR_FEATURE in changed:
        effects = plan_start_of_elr(image, settings) if changed[ELR_FEATURE] else plan_end_of_elr(image)
    # metadata.version comes first: it decides how the records after it are written.
    names = sorted(changed, key=lambda name: (name != METADATA_VERSION, name))
    return [*(FeatureLevelRecord(name=name, feature_level=changed[name]) for name in names), *effects]


def _check_support(name: str, level: int, image: MetadataImage, kraft_version: int) -> None:
    if name == KRAFT_VERSION:
        raise _invalid(f"{name}={level}: the level is {kraft_version} since the quorum was formed, and cannot change")
    if name not in SUPPORTED_FEATURES:
        known = ", ".join(sorted(SUPPORTED_FEATURES))
        raise _invalid(f"{name}={level}: there is no such feature; name those to change one by one (there are {known})")
    low, high = SUPPORTED_FEATURES[name]
    if not low <= level <= high:
        raise _invalid(f"{name}={level}: this broker supports levels {low} to {high}")
    for node, features in _registered(image):
        ranges = {feature: (low, high) for feature, low, high in features}
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            supported = f"supports levels {low} to {high}" if name in ranges else "does not support this feature"
            raise _invalid(f"{name}={level}: {node} {supported}")


def _registered(image: MetadataImage) -> Iterator[tuple[str, tuple[tuple[str, int, int], ...]]]:
    """The nodes with their features. Fenced brokers count, too: they could not return, unless unregistered first.

    A controller that is gone counts until another one registers with its id: Kafka has no way to unregister it either.
    """
    for broker in image.brokers.values():
        yield f"broker {broker.broker_id}", broker.features
    for controller in image.controllers.values():
        yield f"controller {controller.controller_id}", controller.features


def _check_metadata_version(name: str, level: int, proposed: Mapping[str, int]) -> None:
    """A feature needs its metadata.version, whichever of the two is changed."""
    metadata_version = proposed.get(METADATA_VERSION, 0)
    if name != METADATA_VERSION:
        needed = NEEDED_METADATA_VERSION.get(name, 0)
        if level and metadata_version < needed:
            raise _invalid(f"{name}={level}: metadata.version must be at least {needed}; it is {metadata_version}")
        return
    for feature, needed in NEEDED_METADATA_VERSION.items():
        if proposed.get(feature, 0) and level < needed:
            raise _invalid(f"{name}={level}: {feature} is in use and needs at least {needed}")


def _check_records(level: int, image: MetadataImage) -> None:
    current = image.features.get(METADATA_VERSION, 0)
    crossed = [changed for changed in NEW_RECORDS_SINCE if level < changed <= current]
    if crossed:
        text = f"the metadata may have records that only level {crossed[-1]} and above can read"
        raise _invalid(f"{METADATA_VERSION}={level}: {text}")


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_UPDATE_VERSION, message)
