"""Whether this node could connect to the others: what the settings of a listener must have for the side that connects.

A node that listens itself has most of that for the side that listens; a broker has nothing else for controllers.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from core_broker.settings.network import ENCRYPTED
from core_broker.settings.sasl import OFFERED, SASL_PROTOCOLS, SaslSettings, client_problems
from core_broker.settings.tls import TlsSettings, has_truststore, store_problems

MECHANISM_OF_BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
MECHANISM_OF_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"


class NodeConnection(NamedTuple):
    """How this node connects to a listener of others."""

    listener: str
    protocol: str
    mechanism_key: str
    """The key of the SASL mechanism."""
    mechanism: str
    is_own: bool
    """Whether this node has such a listener, too, so that its settings are checked for that."""


def tls_problems(connection: NodeConnection, settings: TlsSettings) -> Iterator[tuple[str, str]]:
    """Keys, with the reason, that keep this node from connecting, given the settings of the listener."""
    if connection.protocol not in ENCRYPTED:
        return
    if not has_truststore(settings):
        reason = "must be set: the authorities that certificates of other nodes come from"
        yield "ssl.truststore.location", f"{reason} ({connection.listener} uses {connection.protocol})"
    if not connection.is_own:
        yield from store_problems(settings)


def login_problems(connection: NodeConnection, settings: SaslSettings) -> Iterator[tuple[str, str]]:
    """Keys, with the reason, that keep this node from logging in, given the settings of the mechanism.

    An empty key stands for the one of the mechanism.
    """
    if connection.protocol not in SASL_PROTOCOLS:
        return
    if connection.mechanism not in OFFERED:
        yield "", f"must be one of {', '.join(OFFERED)}, because {connection.listener} uses {connection.protocol}"
        return
    try:
        login = settings.jaas_login
    except ValueError as error:
        yield "sasl.jaas.config", str(error)
        return
    if login is not None and not login.accepts(connection.mechanism):
        yield "sasl.jaas.config", f"must name the login module of {connection.mechanism}"
        return
    for key, reason in client_problems(connection.mechanism, settings):
        yield key, f"{reason} ({connection.mechanism_key}={connection.mechanism})"
