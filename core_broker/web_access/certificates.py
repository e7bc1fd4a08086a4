"""Who the certificate of a TLS connection belongs to, by the same rules as at the broker."""

from collections import OrderedDict
from typing import Final

import msgspec
from cryptography import x509

from core_broker.protocol.principals import Principal
from core_broker.security.principal_mapping import NoRuleApplies, PrincipalMapping
from core_broker.security.tls import certificate_principal
from core_broker.service.clock import Clock
from core_broker.web_access.errors import Refused

_REMEMBERED_MAX: Final = 1000


class _Owner(msgspec.Struct, frozen=True):
    principal: Principal
    expires_at_ms: float


class Certificates:
    """Finds the users of certificates that TLS has verified."""

    def __init__(self, mapping_rules: str, clock: Clock) -> None:
        """Raises ValueError if a rule cannot be read."""
        self._mapping = PrincipalMapping(mapping_rules)
        self._clock = clock
        self._owners: OrderedDict[bytes, _Owner] = OrderedDict()

    def owner_of(self, der: bytes) -> Principal:
        """The user of a certificate. Raises Refused."""
        owner = self._owners.get(der)
        if owner is None:
            owner = self._owners[der] = self._read(der)
            if len(self._owners) > _REMEMBERED_MAX:
                self._owners.popitem(last=False)
        if owner.expires_at_ms <= self._clock.now_ms():
            # TLS looked at the time when the connection was opened, which may be long ago.
            raise Refused("The certificate has expired", reason="the certificate has expired")
        return owner.principal

    def _read(self, der: bytes) -> _Owner:
        try:
            principal = certificate_principal(der, self._mapping)
            return _Owner(principal, x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp() * 1000)
        except (NoRuleApplies, ValueError) as error:
            raise Refused("The certificate belongs to no user", reason=str(error)) from None
