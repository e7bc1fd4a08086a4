"""A connection of our own to a broker, for the few requests that the library cannot send.

It is opened for one request and then closed: these are rare administrative requests. It understands the library's
settings for PLAINTEXT, SSL and SASL with PLAIN or SCRAM, and raises Rejected for other mechanisms.
"""

import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Self, TypeVar

from core_broker.client.errors import NotAllowed, Rejected, Unreachable
from core_broker.client.scram import Scram
from core_broker.client.settings import ClientSettings
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.protocol.primitives import DecodeError

R = TypeVar("R", bound=Message)
_RESPONSE_BYTES_MAX = 64 * 1024 * 1024
_SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class Connection:
    """One connection, encrypted and authenticated according to the settings; a context manager that closes it."""

    def __init__(self, settings: ClientSettings, host: str, port: int, *, authenticates: bool = True) -> None:
        self._settings = settings
        self._authenticates = authenticates
        self._properties = {key.lower(): str(value) for key, value in settings.properties.items()}
        self._address = (host, port)
        self._socket: socket.socket | ssl.SSLSocket | None = None
        self._correlation_id = 0

    def __enter__(self) -> Self:
        protocol = self._properties.get("security.protocol", "plaintext").upper()
        try:
            self._socket = socket.create_connection(self._address, timeout=self._settings.timeout_seconds)
            if protocol.endswith("SSL"):
                self._socket = _tls(self._properties).wrap_socket(self._socket, server_hostname=self._address[0])
            if protocol.startswith("SASL") and self._authenticates:
                self._authenticate()
        except OSError as error:
            self.close()
            raise Unreachable(f"{self._name}: {error}") from error
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_timeout(self, seconds: float) -> None:
        """How long the answers to the next requests may take."""
        assert self._socket is not None, "the connection is not open"
        self._socket.settimeout(seconds)

    def close(self) -> None:
        """Close the connection if it is open."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, request: Message, version: int, response: type[R]) -> R:
        """Send a request and wait for its response."""
        assert self._socket is not None, "the connection is not open"
        frame = self._frame(request, version)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            (length,) = struct.unpack(">i", self._receive_exactly(4))
            if not 4 <= length <= _RESPONSE_BYTES_MAX:
                raise Rejected(f"{self._name} sent a response of {length} bytes")
            body = self._receive_exactly(length)
        except OSError as error:
            raise Unreachable(f"{self._name}: {error}") from error
        try:
            # The response to ApiVersions never has tags in its header, so that every client can read it (KIP-511).
            has_tags = version >= request.FLEXIBLE_SINCE and request.API_KEY != ApiVersionsRequest.API_KEY
            return decode(response, version, body, 5 if has_tags else 4)
        except DecodeError as error:
            raise Rejected(f"{self._name} sent a response that cannot be decoded: {error}") from error

    def _frame(self, request: Message, version: int) -> bytes:
        assert request.API_KEY is not None, "only requests can be sent"
        self._correlation_id += 1
        client_id = self._settings.client_id.encode()
        head = struct.pack(">hhih", request.API_KEY, version, self._correlation_id, len(client_id)) + client_id
        try:
            body = bytes(encode(request, version))
        except (ValueError, struct.error) as error:
            raise Rejected(f"the request to {self._name} cannot be encoded: {error}") from error
        return head + (b"\0" if version >= request.FLEXIBLE_SINCE else b"") + body

    @property
    def _name(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def _receive_exactly(self, count: int) -> bytes:
        assert self._socket is not None, "the connection is not open"
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(min(count - len(parts), 1 << 16))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    # --- authentication ---

    def _authenticate(self) -> None:
        mechanism = self._properties.get("sasl.mechanism", self._properties.get("sasl.mechanisms", "")).upper()
        if mechanism != "PLAIN" and mechanism not in _SCRAM_HASHES:
            raise Rejected(f"this request supports the SASL mechanisms PLAIN and SCRAM, not {mechanism}")
        self._check(self.send(SaslHandshakeRequest(mechanism), 1, SaslHandshakeResponse).error_code)
        user = self._properties.get("sasl.username", "")
        password = self._properties.get("sasl.password", "")
        if mechanism == "PLAIN":
            self._prove(f"\0{user}\0{password}".encode())
            return
        scram = Scram(_SCRAM_HASHES[mechanism], user, password)
        scram.check_end(self._prove(scram.proof(self._prove(scram.first()))))

    def _prove(self, proof: bytes) -> bytes:
        response = self.send(SaslAuthenticateRequest(proof), 0, SaslAuthenticateResponse)
        self._check(response.error_code)
        return response.auth_bytes

    def _check(self, code: int) -> None:
        if code:
            raise NotAllowed(f"{self._name} refused to authenticate this user", code=code)


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=properties.get("ssl.ca.location"))
    if properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate := properties.get("ssl.certificate.location"):
        key = properties.get("ssl.key.location")
        context.load_cert_chain(certificate, keyfile=key, password=properties.get("ssl.key.password"))
    return context
