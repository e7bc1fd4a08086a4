"""Principals and addresses of clients inside an Envelope, in the format of Kafka's default principal builder."""

import ipaddress
import struct
from typing import Final

from core_broker.protocol.fields import decode, encode
from core_broker.protocol.messages.envelope import DefaultPrincipalData
from core_broker.protocol.primitives import DecodeError

_VERSION: Final = 0


def encode_principal(principal: str) -> bytes:
    """Encode a principal such as `User:alice`."""
    kind, _, name = principal.partition(":")
    return struct.pack(">h", _VERSION) + encode(DefaultPrincipalData(kind, name), _VERSION)


def decode_principal(data: bytes | None) -> str:
    """Decode a principal; raises DecodeError."""
    if data is None or len(data) < 2:
        raise DecodeError("the principal is missing")
    (version,) = struct.unpack_from(">h", data)
    if version != _VERSION:
        raise DecodeError(f"the principal has version {version}; only version {_VERSION} is supported")
    principal = decode(DefaultPrincipalData, version, data, 2)
    return f"{principal.type}:{principal.name}"


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
