"""Finds out whether a broker accepts a client's TLS and login, before anything else is asked.

The library tries again for as long as a call may take, and then says only that it took too long.
"""

from dataclasses import replace
from typing import Final

from core_broker.client.connection import Connection, can_log_in, mechanism_of
from core_broker.client.errors import ClientError, NotAllowed, Unreachable, Untrusted
from core_broker.client.settings import ClientSettings
from core_broker.errors import ErrorCode
from core_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from core_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse

_PATIENCE_MS: Final = 2_000
_SERVERS_MAX: Final = 4
_METADATA_VERSION: Final = 4


def check_handshake(settings: ClientSettings) -> None:
    """Raise Untrusted or NotAllowed if the brokers that answer refuse this client; silence is no refusal."""
    quick = replace(settings, timeout_ms=min(settings.timeout_ms, _PATIENCE_MS))
    refusal: ClientError | None = None
    for server in settings.bootstrap_servers.split(",")[:_SERVERS_MAX]:
        host, _, port = server.strip().rpartition(":")
        try:
            _shake_hands(quick, host.rpartition("//")[2].strip("[]"), int(port))
            return
        except (Untrusted, NotAllowed) as error:
            refusal = refusal or error
        except (Unreachable, ValueError):
            continue  # the library says what is wrong with the address, or finds another broker
    if refusal is not None:
        raise refusal


def _shake_hands(settings: ClientSettings, host: str, port: int) -> None:
    properties = {key.lower(): value for key, value in settings.properties.items()}
    protocol = properties.get("security.protocol", "plaintext").upper()
    logs_in = protocol.startswith("SASL")
    has_login = can_log_in(settings)
    name = f"{host}:{port}"
    try:
        with Connection(settings, host, port, authenticates=has_login) as connection:
            if logs_in and not has_login:
                connection.choose_mechanism(mechanism_of(properties))
                return
            connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse)
            if not logs_in:
                _check_open(connection, name)
    except Unreachable as error:
        if not isinstance(error, Untrusted) and not protocol.endswith("SSL") and _was_closed(error):
            raise Untrusted(
                f"{name}: the broker closed the connection at once: does this listener speak TLS?"
            ) from error
        raise


def _check_open(connection: Connection, name: str) -> None:
    """Raise if a listener does not answer without a login."""
    try:
        connection.send(MetadataRequest([]), _METADATA_VERSION, MetadataResponse)
    except Unreachable as error:
        if not _was_closed(error):
            raise
        text = f"{name}: this listener asks for a login: set security.protocol to SASL_SSL or SASL_PLAINTEXT"
        raise NotAllowed(text, code=ErrorCode.ILLEGAL_SASL_STATE) from error


def _was_closed(error: Unreachable) -> bool:
    return isinstance(error.__cause__, ConnectionError) and not isinstance(error.__cause__, ConnectionRefusedError)
