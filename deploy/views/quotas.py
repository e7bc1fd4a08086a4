"""Quotas: amounts as people write them, whom they are for, and what they are called in the protocol."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from core_broker.client.security import Entity, Quota
from deploy.views.text import size

USER, CLIENT, IP = "user", "client-id", "ip"
PRODUCER: Final = "producer_byte_rate"
CONSUMER: Final = "consumer_byte_rate"
REQUESTS: Final = "request_percentage"
MUTATIONS: Final = "controller_mutation_rate"
CONNECTIONS: Final = "connection_creation_rate"
LIMITS: Final[Mapping[str, str]] = {
    PRODUCER: "producer rate",
    CONSUMER: "consumer rate",
    REQUESTS: "request percentage",
    MUTATIONS: "controller mutations",
    CONNECTIONS: "connection rate",
}
"""What limits are called, by their keys in the protocol."""
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?i?)B?(?:/s)?")
_FACTORS: Final[Mapping[str, int]] = {
    "": 1,
    "k": 1000,
    "K": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "ki": 1024,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
}


class QuotaView(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one entity; null is the default, for all that have no quota of their own."""

    entity: dict[str, str | None]
    limits: dict[str, float]


def parse_rate(text: str) -> float:
    """Bytes per second of `10MB/s`, `512KiB` or `1048576`; raises ValueError."""
    match = _RATE.fullmatch(text.strip())
    if match is None or match[2] not in _FACTORS or not (rate := round(float(match[1]) * _FACTORS[match[2]])):
        raise ValueError(f"{text!r} is not a rate: write 10MB/s, 512KiB/s or a number of bytes")
    return float(rate)


def view(quota: Quota) -> QuotaView:
    """A quota as data."""
    return QuotaView(entity=dict(quota.entity), limits=dict(quota.limits))


def describe_entity(entity: Entity) -> str:
    """`user alice, any client-id`."""
    return ", ".join(f"any {kind}" if name is None else f"{kind} {name}" for kind, name in entity)


def describe_limits(limits: Mapping[str, float]) -> Iterator[str]:
    """`producer rate 10 MB/s`."""
    for key, value in limits.items():
        yield f"{LIMITS.get(key, key)} {_amount(key, value)}"


def _amount(key: str, value: float) -> str:
    match key:
        case "producer_byte_rate" | "consumer_byte_rate":
            return f"{size(int(value))}/s"
        case "request_percentage":
            return f"{value:g} %"
        case "controller_mutation_rate" | "connection_creation_rate":
            return f"{value:g}/s"
        case _:
            return f"{value:g}"
