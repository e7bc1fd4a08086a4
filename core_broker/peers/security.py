"""How connections to other nodes are secured: the one place where that is decided, by the listener that they go to.

Brokers connect to each other's inter-broker listener, and every node to the first controller listener. The node that
connects uses its own settings of that listener: its stores, and its credentials for the mechanism.
"""

import asyncio
import logging
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.serialization import Encoding

from core_broker.peers.errors import PeerAuthenticationError, PeerError
from core_broker.peers.login import Login
from core_broker.protocol.principals import ANONYMOUS, Principal
from core_broker.security.principal_mapping import NoRuleApplies
from core_broker.security.sasl.client import login_of
from core_broker.security.stores import StoreError, load_key_store, store_files
from core_broker.security.tls import certificate_principal, client_context, principal_mapping
from core_broker.settings import BrokerSettings
from core_broker.settings.sasl import SASL_PROTOCOLS

log = logging.getLogger(__name__)

_OTHER_HOST: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate of another host name or address."""
_OUR_CERTIFICATE: Final = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")
"""Parts of the alerts with which a server refuses a client's certificate, or that there is none."""
_NOTHING_IN_COMMON: Final = ("PROTOCOL_VERSION", "NO_PROTOCOLS", "UNSUPPORTED_PROTOCOL", "CIPHER", "INSUFFICIENT")
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")


class PeerSecurity:
    """The security of connections to one listener of other nodes."""

    def __init__(
        self,
        listener: str,
        protocol: str,
        *,
        login: Login | None = None,
        user: str = "",
        settings: BrokerSettings | None = None,
    ) -> None:
        """`login` is for the protocols with SASL, and `user` whose login it is, if known; the settings of the listener
        are for the protocols with TLS."""
        self.listener = listener
        self.protocol = protocol
        self.login = login
        self._user = user
        self._settings = settings
        self._tls: _Context | None = None

    @classmethod
    def for_brokers(cls, settings: BrokerSettings) -> "PeerSecurity":
        """The security of connections between brokers."""
        return cls._of(settings, settings.inter_broker_listener, settings.sasl_mechanism_inter_broker_protocol)

    @classmethod
    def for_controllers(cls, settings: BrokerSettings) -> "PeerSecurity":
        """The security of connections to controllers, of brokers and of other controllers."""
        name = settings.controller_listener_names[0]
        return cls._of(settings, name, settings.sasl_mechanism_controller_protocol)

    @classmethod
    def _of(cls, settings: BrokerSettings, listener: str, mechanism: str) -> "PeerSecurity":
        protocol = settings.security_protocol(listener) or "PLAINTEXT"
        login, user = _login(settings, listener, mechanism) if protocol in SASL_PROTOCOLS else (None, "")
        return cls(listener, protocol, login=login, user=user, settings=settings.for_listener(listener))

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def lacks_login(self) -> bool:
        """Whether SASL is needed, but there are no credentials."""
        return self.login is None and self.protocol in SASL_PROTOCOLS

    def principal(self) -> Principal | None:
        """Who this node is for nodes with the same settings; None if only they know. Raises StoreError.

        Reads the certificate, if it is that.
        """
        if self.protocol in SASL_PROTOCOLS:
            return Principal("User", self._user) if self._user else None
        if self.protocol == "PLAINTEXT" or self._settings is None or self._settings.ssl_client_auth == "none":
            return ANONYMOUS
        store = load_key_store(self._settings)
        der = None if store is None else store.certificate.public_bytes(Encoding.DER)
        with suppress(NoRuleApplies, ValueError):
            return certificate_principal(der, principal_mapping(self._settings))
        return None

    def configure(self, settings: BrokerSettings) -> None:
        """Open new connections with the settings in effect; the protocol and the mechanism do not change."""
        if self._settings is not None:
            self._settings = settings.for_listener(self.listener)

    async def tls_context(self) -> ssl.SSLContext | None:
        """What to open a connection with; None if it is not encrypted. Raises PeerAuthenticationError.

        Stores are read again when their files have changed, so that a new certificate needs no restart.
        """
        if not self.uses_tls:
            return None
        assert self._settings is not None, "TLS needs settings"
        self._tls = await asyncio.to_thread(self._load, self._settings, self._tls)
        return self._tls.context

    def _load(self, settings: BrokerSettings, known: "_Context | None") -> "_Context":
        state = (settings, tuple(_stamp(path) for path in store_files(settings)))
        if known is not None and known.state == state:
            return known
        try:
            context = client_context(settings)
        except StoreError as error:
            if known is None:
                raise PeerAuthenticationError(f"no TLS for listener {self.listener}: {error}") from None
            # Files that are being replaced do not fit together for a moment.
            extra = {"listener": self.listener, "reason": str(error)}
            log.warning("changed certificates cannot be used; the previous ones stay in use", extra=extra)
            context = known.context
        return _Context(context, state)

    @property
    def mismatch(self) -> str:
        """What to look at when the other node seems to speak another protocol."""
        where = f"this node uses {self.protocol} for listener {self.listener}"
        certificate = " and, if ssl.client.auth is required there, ssl.keystore.location here" if self.uses_tls else ""
        return f"{where}; check that listener.security.protocol.map is the same on both nodes{certificate}"

    def tls_failure(self, address: str, error: ssl.SSLError) -> PeerError:
        """What it means to an operator that a connection ended with an error of TLS before the first response."""
        if isinstance(error, ssl.SSLEOFError):  # the other node may just have ended
            return PeerError(f"{address} closed the connection before the first response; {self.mismatch}")
        return PeerAuthenticationError(f"no TLS connection to {address}: {self._explain(error)}")

    def _explain(self, error: ssl.SSLError) -> str:
        prefix = f"listener.name.{self.listener.lower()}."
        if isinstance(error, ssl.SSLCertVerificationError):
            if error.verify_code in _OTHER_HOST:
                return (
                    f"{error.verify_message.rstrip('.')}; give that node a certificate with this host as a subject "
                    f"alternative name, or set {prefix}ssl.endpoint.identification.algorithm= to accept any"
                )
            return (
                f"its certificate is not accepted ({error.verify_message}); "
                f"check {prefix}ssl.truststore.location here and {prefix}ssl.keystore.location there"
            )
        reason = error.reason or str(error)
        if any(part in reason for part in _NO_TLS):
            return f"it does not speak TLS ({reason}); {self.mismatch}"
        if any(part in reason for part in _NOTHING_IN_COMMON):
            return f"{reason}; check {prefix}ssl.enabled.protocols and {prefix}ssl.cipher.suites on both nodes"
        if any(part in reason for part in _OUR_CERTIFICATE):
            return (
                f"it does not accept the certificate of this node ({reason}); "
                f"check {prefix}ssl.keystore.location here and {prefix}ssl.truststore.location there"
            )
        return reason


def _login(settings: BrokerSettings, listener: str, mechanism: str) -> tuple[Login | None, str]:
    """How this node logs in at a listener of others, None without credentials; and as whom, if that is known.

    Settings without them are refused at the start, unless this node is alone and never connects to another.
    """
    try:
        login = login_of(settings, listener, mechanism)
    except ValueError:
        return None, ""
    jaas = settings.for_mechanism(listener, mechanism).jaas_login
    is_token = jaas is None or "tokenauth" in jaas.options
    return login, "" if jaas is None or is_token else jaas.username


class _Context(msgspec.Struct, frozen=True):
    """A context, and what it was made of."""

    context: ssl.SSLContext
    state: tuple[BrokerSettings, object]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with a file."""
    with suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino
    return None


PLAINTEXT: Final = PeerSecurity("PLAINTEXT", "PLAINTEXT")
"""No security."""
