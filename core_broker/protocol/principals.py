"""Principals, and how an Envelope carries them with the addresses of clients: as Kafka's default principal builder."""

import ipaddress
import struct
from typing import Final

import msgspec
from typing_extensions import override

from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.envelope import DefaultPrincipalData
from core_broker.protocol.primitives import DecodeError

_VERSION: Final = 0


class Principal(msgspec.Struct, frozen=True):
    """Who sends a request, written as `User:alice`."""

    kind: str
    name: str
    is_by_token: bool = False
    """Whether it logged in with a delegation token, which does not allow it to handle tokens."""

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Principal) and (self.kind, self.name) == (other.kind, other.name)

    @override
    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    @override
    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""The principal of clients of listeners without authentication."""


def parse_principal(text: str) -> Principal:
    """Read `User:alice`; raises ValueError."""
    kind, colon, name = text.partition(":")
    if not kind or not colon:
        raise ValueError(f"a principal is written as User:name, not {text!r}")
    return Principal(kind, name)


def encode_principal(principal: Principal) -> bytes:
    """Encode a principal."""
    data = DefaultPrincipalData(principal.kind, principal.name, principal.is_by_token)
    return struct.pack(">h", _VERSION) + encode(data, _VERSION)


def decode_principal(data: bytes | None) -> Principal:
    """Decode a principal; raises DecodeError."""
    if data is None or len(data) < 2:
        raise DecodeError("the principal is missing")
    (version,) = struct.unpack_from(">h", data)
    if version != _VERSION:
        raise DecodeError(f"the principal has version {version}; only version {_VERSION} is supported")
    principal = decode(DefaultPrincipalData, version, data, 2)
    return Principal(principal.type, principal.name, principal.token_authenticated)


def encode_host(host: str) -> bytes:
    """The 4 or 16 bytes of an IP address; an IPv4 client of an IPv6 socket has 4, as in Java."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).packed


def decode_host(data: bytes) -> str:
    """The IP address with these bytes; raises DecodeError."""
    try:
        return str(ipaddress.ip_address(data))
    except ValueError as error:
        raise DecodeError(f"an IP address cannot have {len(data)} bytes") from error
