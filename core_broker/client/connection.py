"""A connection of our own to a broker, for the few requests that the library cannot send.

It is opened for one request and then closed: these are rare administrative requests. It understands the library's
settings for PLAINTEXT, SSL and SASL with PLAIN, SCRAM, or OAUTHBEARER with OIDC's client credentials, and raises
Rejected for other mechanisms.
"""

import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Final, Self, TypeVar

from core_broker.client.errors import NotAllowed, Rejected, Unreachable, Untrusted
from core_broker.client.oauth import ENDPOINT, fetch_token, gets_tokens
from core_broker.client.settings import ClientSettings
from core_broker.client.tls import client_context, explain_failure, speaks_tls
from core_broker.errors import ErrorCode
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.messages.api_versions import ApiVersionsRequest
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.scram_client import Scram, ScramError

R = TypeVar("R", bound=Message)
_RESPONSE_BYTES_MAX = 64 * 1024 * 1024
_SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SUPPORTED_MECHANISMS: Final = ("PLAIN", *_SCRAM_HASHES)
"""SASL mechanisms of our own connections that take a user and a password; the library knows more."""
_TOKENS: Final = "OAUTHBEARER"


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
                self._socket = self._encrypt(self._socket)
            if protocol.startswith("SASL") and self._authenticates:
                self._authenticate()
        except OSError as error:
            self.close()
            raise self._failure(error) from error
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
                raise speaks_tls(length, self._name) or Rejected(f"{self._name} sent a response of {length} bytes")
            body = self._receive_exactly(length)
        except OSError as error:
            raise self._failure(error) from error
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

    def _encrypt(self, plain: socket.socket) -> ssl.SSLSocket:
        try:
            return client_context(self._properties).wrap_socket(plain, server_hostname=self._address[0])
        except (ConnectionError, ssl.SSLEOFError) as error:
            text = "the broker ended the connection during the TLS handshake: does this listener speak TLS?"
            raise Untrusted(f"{self._name}: {text}") from error

    def _failure(self, error: OSError) -> Unreachable:
        return explain_failure(error, self._name) or Unreachable(f"{self._name}: {error}")

    # --- authentication ---

    def _authenticate(self) -> None:
        mechanism = mechanism_of(self._properties)
        if not can_log_in(self._settings):
            where = f" without {ENDPOINT}" if mechanism == _TOKENS else ""
            text = f"this request supports the SASL mechanisms PLAIN, SCRAM and OAUTHBEARER, not {mechanism}{where}"
            raise Rejected(text)
        token = self._token() if mechanism == _TOKENS else ""
        self.choose_mechanism(mechanism)
        if token:
            self._show_token(token)
            return
        user = self._properties.get("sasl.username", "")
        password = self._properties.get("sasl.password", "")
        if mechanism == "PLAIN":
            self._prove(f"\0{user}\0{password}".encode())
            return
        scram = Scram(_SCRAM_HASHES[mechanism], user, password)
        try:
            scram.check_end(self._prove(scram.proof(self._prove(scram.first()))))
        except ScramError as error:
            raise NotAllowed(f"{self._name}: {error}") from error

    def _token(self) -> str:
        given = self._settings.token
        return fetch_token(self._properties) if given is None else given()[0]

    def choose_mechanism(self, mechanism: str) -> None:
        """Begin a login; raises NotAllowed if the listener does not have the mechanism."""
        response = self.send(SaslHandshakeRequest(mechanism), 1, SaslHandshakeResponse)
        match response.error_code:
            case 0:
                return
            case ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                there = f"; it has {', '.join(sorted(response.mechanisms))}" if response.mechanisms else ""
                text = f"does not have the SASL mechanism {mechanism}{there}"
            case ErrorCode.ILLEGAL_SASL_STATE:
                text = "has no login at this listener: use another port, or security.protocol PLAINTEXT or SSL"
            case _:
                text = f"refused to authenticate this user (error {response.error_code})"
        raise NotAllowed(f"{self._name} {text}", code=response.error_code)

    def _show_token(self, token: str) -> None:
        response = self.send(
            SaslAuthenticateRequest(f"n,,\1auth=Bearer {token}\1\1".encode()), 0, SaslAuthenticateResponse
        )
        # A broker answers a token that it refuses with what is wrong, and not with an error (RFC 7628).
        if response.error_code or response.auth_bytes:
            raise NotAllowed(
                f"{self._name} refused the token of this client", code=ErrorCode.SASL_AUTHENTICATION_FAILED
            )

    def _prove(self, proof: bytes) -> bytes:
        response = self.send(SaslAuthenticateRequest(proof), 0, SaslAuthenticateResponse)
        if response.error_code:
            user = self._properties.get("sasl.username", "")
            text = f"refused to authenticate this user: the name {user} or its password is wrong"
            raise NotAllowed(f"{self._name} {text}", code=response.error_code)
        return response.auth_bytes


def mechanism_of(properties: Mapping[str, str]) -> str:
    """The SASL mechanism that a client uses."""
    return properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI")).upper()


def can_log_in(settings: ClientSettings) -> bool:
    """Whether our own connections can log in with these settings; the library knows more mechanisms."""
    properties = {key.lower(): value for key, value in settings.properties.items()}
    mechanism = mechanism_of(properties)
    has_token = settings.token is not None or gets_tokens(properties)
    return mechanism in SUPPORTED_MECHANISMS or (mechanism == _TOKENS and has_token)
