"""The quotas of the metadata: which limit holds for a client, and which clients share it.

An entity names a user, a client id, or both; each by name or as the default for all that have no quota by name. An
address has quotas of its own kind. The records are in the metadata of the cluster and the same on every node.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import ClientQuotaRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


class QuotaKey(StrEnum):
    """What can be limited."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"


Part: TypeAlias = tuple[str | None, ...]
"""A part of an entity: its name, the default, or none at all."""

ABSENT: Final[Part] = ()
DEFAULT: Final[Part] = (None,)


class Limit(msgspec.Struct, frozen=True):
    """The limit of a client, and whose use counts for it together."""

    bound: float
    user: str | None
    """None: that of all users."""
    client_id: str | None
    """None: that of all client ids."""


class QuotaLimits:
    """The limits of one state of the metadata."""

    def __init__(self, records: Iterable[ClientQuotaRecord] = ()) -> None:
        self._by_entity: dict[tuple[str, Part, Part], float] = {}
        self._by_address: dict[str | None, float] = {}
        for record in records:
            parts = {part.entity_type: (part.entity_name,) for part in record.entity}
            if IP not in parts:
                entity = (record.key, parts.get(USER, ABSENT), parts.get(CLIENT_ID, ABSENT))
                self._by_entity[entity] = record.value
            elif record.key == QuotaKey.CONNECTION_CREATION_RATE:
                name = parts[IP][0]
                self._by_address[None if name is None else canonical_address(name)] = record.value

    @classmethod
    def of_metadata(cls, carried: Mapping[tuple[object, ...], Message]) -> "QuotaLimits":
        """The limits among the records that the metadata keeps for security."""
        return cls(record for record in carried.values() if isinstance(record, ClientQuotaRecord))

    @property
    def has_clients(self) -> bool:
        """Whether there is any limit for users or client ids."""
        return bool(self._by_entity)

    @property
    def has_addresses(self) -> bool:
        """Whether there is any limit for addresses."""
        return bool(self._by_address)

    def find(self, key: str, user: str, client_id: str) -> Limit | None:
        """The limit of a client: that of the most specific entity which has this key; None if there is none."""
        by_entity = self._by_entity
        for user_part in ((user,), DEFAULT, ABSENT):
            for client_part in ((client_id,), DEFAULT, ABSENT):
                bound = by_entity.get((key, user_part, client_part))
                if bound is not None:
                    return Limit(bound, user if user_part else None, client_id if client_part else None)
        return None

    def find_address(self, address: str) -> float | None:
        """How many connections per second an address may open; None for any number."""
        bound = self._by_address.get(canonical_address(address))
        return self._by_address.get(None) if bound is None else bound


def canonical_address(address: str) -> str:
    """One text for each address: an IPv4 client of an IPv6 socket has its IPv4 address. Anything else is unchanged."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
