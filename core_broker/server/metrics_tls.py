"""TLS of the metrics page: with https, only those who show a certificate of ssl.truststore.* read it."""

import logging
import ssl

from core_broker.errors import BrokerError, ErrorCode
from core_broker.security.stores import StoreError
from core_broker.security.tls import server_context, server_store
from core_broker.server.certificates import Signature, signature_of
from core_broker.service.metrics import Tls
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)


def metrics_tls(settings: BrokerSettings) -> Tls | None:
    """TLS of metrics.listener; None for one without https. Raises BrokerError."""
    if not settings.metrics_listener.startswith("https:"):
        return None
    try:
        return _RenewedContext(settings.replace(ssl_client_auth="required"))
    except StoreError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"metrics.listener with https: {error}") from None


class _RenewedContext:
    """Gives a context with the certificates that the files have at the time."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._signature: Signature = signature_of(settings)
        self._context = self._load()

    def __call__(self) -> ssl.SSLContext:
        found = signature_of(self._settings)
        if found != self._signature:
            self._signature = found  # files that cannot be used are tried again when they change
            try:
                self._context = self._load()
            except StoreError as error:
                message = "cannot use the new certificates; the metrics page still shows the old one"
                log.error(message, extra={"reason": str(error)})
        return self._context

    def _load(self) -> ssl.SSLContext:
        return server_context(self._settings, server_store(self._settings))
