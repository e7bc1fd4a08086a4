"""Plans changes of delegation tokens (KIP-48): creation, renewal, expiry, and the removal of expired ones."""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from core_broker.cluster.features import DELEGATION_TOKENS_SINCE, metadata_version
from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.log_directory import new_id
from core_broker.protocol.fields import Message
from core_broker.protocol.principals import Principal
from core_broker.protocol.stored.metadata import RemoveDelegationTokenRecord
from core_broker.security.tokens import DelegationToken, TokenStore
from core_broker.service.settings import LONG_MAX
from core_broker.settings import BrokerSettings

REMOVALS_MAX: Final = 1000
"""Expired tokens that are removed in one batch, as in Kafka."""
_RENEWERS_MAX: Final = 1000
_NAME_BYTES_MAX: Final = 1024
"""Limits of a token, which every node keeps in memory; Kafka has none."""


class Expiry(NamedTuple):
    """What a renewal or an expiry writes, and when the token expires then."""

    records: list[Message]
    expires_ms: int


def plan_token(
    *,
    owner: Principal,
    requester: Principal,
    renewers: Sequence[Principal],
    lifetime_ms: int,
    image: MetadataImage,
    settings: BrokerSettings,
    now_ms: int,
) -> DelegationToken:
    """A new token, which lives as long as the settings allow unless `lifetime_ms` is less. Raises BrokerError."""
    check_supported(image, settings)
    # A client with a token acts as the user with the owner's name, so an owner of another type would become a user.
    if any(principal.kind != "User" for principal in (owner, *renewers)):
        raise BrokerError(ErrorCode.INVALID_PRINCIPAL_TYPE, "owner and renewers must be of type User")
    names = [principal.name for principal in (owner, *renewers)]
    if len(renewers) > _RENEWERS_MAX or any(len(name.encode()) > _NAME_BYTES_MAX for name in names):
        text = f"a token may have up to {_RENEWERS_MAX} renewers, and names up to {_NAME_BYTES_MAX} bytes"
        raise BrokerError(ErrorCode.INVALID_REQUEST, text)
    longest_ms = settings.delegation_token_max_lifetime_ms
    max_ms = _later(now_ms, min(longest_ms, lifetime_ms) if lifetime_ms > 0 else longest_ms)
    return DelegationToken(
        token_id=new_id(),
        owner=owner,
        requester=requester,
        renewers=tuple(renewers),
        issued_ms=now_ms,
        max_ms=max_ms,
        expires_ms=min(max_ms, _later(now_ms, settings.delegation_token_expiry_time_ms)),
    )


def plan_renewal(
    token: DelegationToken | None, requester: Principal, period_ms: int, settings: BrokerSettings, *, now_ms: int
) -> Expiry:
    """A later expiry: the period, or that of the settings if it is shorter or none is given. Raises BrokerError."""
    token = _found(token)
    if token.is_expired(now_ms):
        raise _expired()
    _check_requester(token, requester)
    longest_ms = settings.delegation_token_expiry_time_ms
    return _with_expiry(token, _later(now_ms, min(longest_ms, period_ms) if period_ms > 0 else longest_ms))


def plan_expiry(token: DelegationToken | None, requester: Principal, period_ms: int, *, now_ms: int) -> Expiry:
    """An expiry in `period_ms`; with a negative one the token is removed at once. Raises BrokerError."""
    token = _found(token)
    _check_requester(token, requester)
    if period_ms < 0:
        return Expiry([RemoveDelegationTokenRecord(token_id=token.token_id)], period_ms)
    if token.is_expired(now_ms):
        raise _expired()
    return _with_expiry(token, _later(now_ms, period_ms))


def plan_removals(tokens: TokenStore, *, now_ms: int) -> list[Message]:
    """The removal of expired tokens, of the first ones if there are many."""
    expired = (token.token_id for token in tokens if token.is_expired(now_ms))
    return [RemoveDelegationTokenRecord(token_id=token_id) for token_id in islice(expired, REMOVALS_MAX)]


def check_supported(image: MetadataImage, settings: BrokerSettings) -> None:
    """Raise BrokerError if this cluster has no delegation tokens."""
    if not settings.delegation_token_secret_key:
        text = "delegation tokens are not enabled: set delegation.token.secret.key, the same on all nodes"
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, text)
    level = metadata_version(image.features)
    if level < DELEGATION_TOKENS_SINCE:
        text = f"delegation tokens need metadata.version={DELEGATION_TOKENS_SINCE}; it is {level}"
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, text)


def _with_expiry(token: DelegationToken, wanted_ms: int) -> Expiry:
    expires_ms = min(token.max_ms, wanted_ms)
    return Expiry([replace(token, expires_ms=expires_ms).record], expires_ms)


def _found(token: DelegationToken | None) -> DelegationToken:
    if token is None:
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no delegation token with this HMAC")
    return token


def _check_requester(token: DelegationToken, requester: Principal) -> None:
    if not token.may_be_changed_by(requester):
        text = f"{requester} is neither the owner of the token nor one of its renewers"
        raise BrokerError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, text)


def _expired() -> BrokerError:
    return BrokerError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the delegation token has expired")


def _later(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, LONG_MAX)
