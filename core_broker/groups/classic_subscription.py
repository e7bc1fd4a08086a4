"""What members of a classic consumer group say they read, as far as the coordinator looks into it."""

import struct
from collections.abc import Iterable
from typing import Final

from core_broker.protocol.fields import decode
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.stored.consumer_protocol import ConsumerProtocolSubscription

_VERSION: Final = struct.Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that members subscribe to; None when one of them says it in a way that cannot be read.

    Clients may put anything there: what cannot be read only means that offsets are kept longer.
    """
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            topics.update(_read(subscription).topics)
        except DecodeError:
            return None
    return frozenset(topics)


def _read(subscription: bytes) -> ConsumerProtocolSubscription:
    if len(subscription) < _VERSION.size:
        raise DecodeError("a subscription without a version")
    version = _VERSION.unpack_from(subscription)[0]
    first, last = ConsumerProtocolSubscription.VERSIONS
    if version < first:
        raise DecodeError(f"subscription version {version}")
    # Later versions only add fields at the end.
    return decode(ConsumerProtocolSubscription, min(version, last), subscription, _VERSION.size)
