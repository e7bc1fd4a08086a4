"""Which brokers are alive, and in which incarnation, by the newest metadata that was applied."""

from collections.abc import Mapping
from typing import Final

from core_broker.cluster.metadata import BrokerImage

NO_EPOCH: Final = -1
"""The broker epoch of a request that has none; it matches every incarnation."""


class Membership:
    """The registered brokers. One object for all partitions, updated when metadata is applied."""

    __slots__ = ("brokers",)

    def __init__(self, brokers: Mapping[int, BrokerImage] | None = None) -> None:
        self.brokers: Mapping[int, BrokerImage] = brokers or {}

    def may_join_isr(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker may become in-sync: not fenced, not stopping, and still the incarnation that fetched."""
        broker = self.brokers.get(broker_id)
        return (
            broker is not None
            and not broker.is_fenced
            and not broker.in_controlled_shutdown
            and broker_epoch in (broker.epoch, NO_EPOCH)
        )

    def is_live(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def epoch_of(self, broker_id: int) -> int:
        """The epoch of a broker's registration, -1 if there is none."""
        broker = self.brokers.get(broker_id)
        return NO_EPOCH if broker is None else broker.epoch
