"""Delegation tokens (KIP-48), as they are in the metadata of the cluster.

A token is an id, an owner and a time at which it expires. Its HMAC over the id, made with a secret that all nodes have,
is the password with which a client logs in as the owner (SCRAM). The HMAC is not stored: each node computes it.
"""

import hashlib
import hmac
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from core_broker.protocol.fields import Message
from core_broker.protocol.principals import Principal, parse_principal
from core_broker.protocol.stored.metadata import DelegationTokenRecord
from core_broker.security.credentials import Carried
from core_broker.security.sasl.scram import BY_NAME, ITERATIONS_MIN, ScramCredential, make_credential, token_password
from core_broker.security.sasl.scram_server import TokenCredential
from core_broker.service.clock import Clock

_CREDENTIALS_MAX: Final = 10_000
"""Derived credentials that are kept, some 400 bytes each."""


class DelegationToken(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a token, except for its HMAC."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...] = ()
    issued_ms: int
    max_ms: int
    """It cannot be renewed beyond this."""
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether it is no longer valid; such a token is kept until the controller removes it."""
        return self.expires_ms <= now_ms

    def may_be_changed_by(self, principal: Principal) -> bool:
        """Whether a principal may renew it and let it expire."""
        return principal == self.owner or principal in self.renewers

    @property
    def record(self) -> DelegationTokenRecord:
        """As the metadata log stores it."""
        return DelegationTokenRecord(
            owner=str(self.owner),
            requester=str(self.requester),
            renewers=[str(renewer) for renewer in self.renewers],
            issue_timestamp=self.issued_ms,
            max_timestamp=self.max_ms,
            expiration_timestamp=self.expires_ms,
            token_id=self.token_id,
        )


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The HMAC of a token; with it, anyone can log in as the owner."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


class TokenStore:
    """Finds tokens in the newest metadata of this node. Only what takes long to compute is kept."""

    def __init__(self, carried: Carried, *, secret_key: str | None, clock: Clock) -> None:
        """Without a secret key there are no tokens."""
        self._carried = carried
        self._secret_key = secret_key or ""
        self._clock = clock
        self._indexed: Mapping[tuple[object, ...], Message] | None = None
        self._ids: dict[bytes, str] = {}
        """The id of each token by a hash of its HMAC: how long a search takes says nothing about the HMACs."""
        self._credentials: OrderedDict[tuple[str, str], ScramCredential] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def is_enabled(self) -> bool:
        """Whether this cluster has delegation tokens."""
        return bool(self._secret_key)

    def __iter__(self) -> Iterator[DelegationToken]:
        """All tokens, expired ones included."""
        if self.is_enabled:
            found = (_read(record) for record in self._carried().values() if isinstance(record, DelegationTokenRecord))
            yield from (token for token in found if token is not None)

    def get(self, token_id: str) -> DelegationToken | None:
        """A token, even if it has expired."""
        record = self._carried().get(("token", token_id)) if self.is_enabled else None
        return _read(record) if isinstance(record, DelegationTokenRecord) else None

    def find_by_id(self, token_id: str) -> DelegationToken | None:
        """A token that is valid at present."""
        token = self.get(token_id)
        return None if token is None or token.is_expired(self._clock.now_ms()) else token

    def find_by_hmac(self, secret: bytes) -> DelegationToken | None:
        """The token with this HMAC, even if it has expired."""
        token_id = self._index().get(_digest(secret))
        token = None if token_id is None else self.get(token_id)
        if token is None or not hmac.compare_digest(self.hmac_of(token.token_id), secret):
            return None
        return token

    def hmac_of(self, token_id: str) -> bytes:
        """The HMAC of a token."""
        return token_hmac(self._secret_key, token_id)

    def find(self, token_id: str, mechanism: str) -> TokenCredential | None:
        """What a client must prove to know, to log in with a token; it is refused if the token has expired.

        The first call for a token takes milliseconds; it may be made in a thread. A credential is derived only if its
        token is used on this node, and kept.
        """
        token = self.get(token_id)
        # The session belongs to a user with the owner's name, so an owner of another type would become a user.
        if token is None or token.owner.kind != "User" or mechanism not in BY_NAME:
            return None
        return TokenCredential(self._credential(token_id, mechanism), token.owner, token.expires_ms)

    def _credential(self, token_id: str, mechanism: str) -> ScramCredential:
        key = (token_id, mechanism)
        with self._lock:
            found = self._credentials.get(key)
            if found is not None:
                self._credentials.move_to_end(key)
                return found
        made = make_credential(token_password(self.hmac_of(token_id)), mechanism, ITERATIONS_MIN)
        with self._lock:
            found = self._credentials.setdefault(key, made)
            while len(self._credentials) > _CREDENTIALS_MAX:
                self._credentials.popitem(last=False)
        return found

    def _index(self) -> Mapping[bytes, str]:
        """The ids of all tokens; only new ones are computed anew."""
        carried = self._carried()
        if carried is not self._indexed:
            known = {token_id: digest for digest, token_id in self._ids.items()}
            ids = [token.token_id for token in self]
            self._ids = {known.get(token_id) or _digest(self.hmac_of(token_id)): token_id for token_id in ids}
            self._indexed = carried
        return self._ids


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _read(record: DelegationTokenRecord) -> DelegationToken | None:
    """A token from its record; None if one of its principals cannot be read."""
    try:
        return DelegationToken(
            token_id=record.token_id,
            owner=parse_principal(record.owner),
            requester=parse_principal(record.requester),
            renewers=tuple(map(parse_principal, record.renewers)),
            issued_ms=record.issue_timestamp,
            max_ms=record.max_timestamp,
            expires_ms=record.expiration_timestamp,
        )
    except ValueError:
        return None
