"""Plans changes of feature levels (KIP-584): every registered broker must support the new one."""

from typing import Final

from core_broker.cluster.controller.elections import plan_end_of_elr
from core_broker.cluster.controller.transitions import ELR_FEATURE
from core_broker.cluster.features import KRAFT_VERSION, SUPPORTED_FEATURES
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import FeatureLevelRecord

_METADATA_VERSION: Final = "metadata.version"
_NEW_RECORDS_SINCE: Final = (7, 8, 11, 13, 14, 15, 17, 23, 30)
"""Levels of metadata.version that brought records or fields which lower levels cannot read."""
_NEEDED_METADATA_VERSION: Final = {
    ELR_FEATURE: 23,
    "group.version": 22,
    "transaction.version": 24,
}


def plan_feature_update(name: str, level: int, image: MetadataImage, *, kraft_version: int) -> list[Message]:
    """Finalise a feature at a level; 0 removes it. Raises BrokerError."""
    if name == KRAFT_VERSION and level != kraft_version:
        raise _invalid(f"{name}={level}: the level is {kraft_version} since the quorum was formed, and cannot change")
    low, high = SUPPORTED_FEATURES.get(name, (0, -1))
    if not low <= level <= high:
        allowed = f"levels {low} to {high}" if name in SUPPORTED_FEATURES else "no such feature"
        raise _invalid(f"{name}={level}: this broker supports {allowed}")
    if name == KRAFT_VERSION or image.features.get(name, 0) == level:
        return []
    _check_brokers(name, level, image)
    _check_metadata_version(name, level, image)
    ending = plan_end_of_elr(image) if name == ELR_FEATURE and not level else []
    return [FeatureLevelRecord(name=name, feature_level=level), *ending]


def _check_brokers(name: str, level: int, image: MetadataImage) -> None:
    """Fenced brokers count, too: they could not return. One that never will must be unregistered first."""
    for broker in image.brokers.values():
        ranges = {feature: (low, high) for feature, low, high in broker.features}
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            supported = f"supports levels {low} to {high}" if name in ranges else "does not support this feature"
            raise _invalid(f"{name}={level}: broker {broker.broker_id} {supported}")


def _check_metadata_version(name: str, level: int, image: MetadataImage) -> None:
    current = image.features.get(_METADATA_VERSION, 0)
    if name != _METADATA_VERSION:
        needed = _NEEDED_METADATA_VERSION.get(name, 0)
        if level and current < needed:
            raise _invalid(f"{name}={level}: metadata.version must be at least {needed}; it is {current}")
        return
    crossed = [changed for changed in _NEW_RECORDS_SINCE if level < changed <= current]
    if crossed:
        raise _invalid(
            f"{name}={level}: the metadata may have records that only level {crossed[-1]} and above can read"
        )
    for feature, needed in _NEEDED_METADATA_VERSION.items():
        if image.features.get(feature, 0) and level < needed:
            raise _invalid(f"{name}={level}: {feature} is in use and needs at least {needed}")


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_UPDATE_VERSION, message)
