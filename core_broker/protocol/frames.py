"""Frames: the length and the header around every request and response."""

import struct
from typing import Final

from core_broker.protocol.fields import Message, encoder
from core_broker.protocol.primitives import DecodeError, skip_tagged_fields, type_of_buffer

SIZE_BYTES: Final = 4
CORRELATION_ID_BYTES: Final = 4
HEADER_BYTES_MIN: Final = 8
"""Key, version and correlation id: no request is shorter."""

_unpack_client_id_length = struct.Struct(">h").unpack_from
_pack_request = struct.Struct(">hhih").pack
_pack_size = struct.Struct(">i").pack_into
_pack_plain = struct.Struct(">ii").pack
_pack_flexible = struct.Struct(">iib").pack
unpack_header: Final = struct.Struct(">hhi").unpack_from
"""Key, version and correlation id of a frame of at least HEADER_BYTES_MIN bytes: `unpack_header(frame, 0)`."""


def parse_client_id(frame: type_of_buffer, *, flexible: bool) -> tuple[str | None, int]:
    """The client id and the position of the body (request header v1, or v2 when flexible).

    The client id has the same encoding in both, so that a broker can read it before it knows the version (KIP-482).
    """
    try:
        (length,) = _unpack_client_id_length(frame, HEADER_BYTES_MIN)
        position = 10 + max(length, 0)
        if length < -1 or position > len(frame):
            raise DecodeError(f"client id of {length} bytes in a frame of {len(frame)} bytes")
        client_id = str(frame[10:position], "utf-8") if length >= 0 else None
        if flexible:
            if frame[position]:
                position = skip_tagged_fields(frame, position, len(frame))
            else:
                position += 1
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"request header: {error}") from error
    return client_id, position


def start_response(correlation_id: int, *, flexible: bool) -> bytearray:
    """The beginning of a response; `finish_response` fills in the length."""
    if flexible:
        return bytearray(_pack_flexible(0, correlation_id, 0))
    return bytearray(_pack_plain(0, correlation_id))


def finish_response(out: bytearray, extra_bytes: int = 0) -> bytearray:
    """Write the frame length, including `extra_bytes` that are sent after this buffer."""
    _pack_size(out, 0, len(out) - SIZE_BYTES + extra_bytes)
    return out


def encode_response(message: Message, version: int, correlation_id: int, *, flexible_header: bool) -> bytearray:
    """A complete response frame for one message."""
    out = start_response(correlation_id, flexible=flexible_header)
    encoder(type(message), version)(message, out)
    return finish_response(out)


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request with its header, without the length in front."""
    assert message.API_KEY is not None, "only requests have a header"
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(_pack_request(message.API_KEY, version, correlation_id, -1 if client_id is None else len(name)))
    out += name
    if version >= message.FLEXIBLE_SINCE:
        out.append(0)
    encoder(type(message), version)(message, out)
    return bytes(out)
