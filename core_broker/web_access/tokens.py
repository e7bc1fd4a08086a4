"""Checks the signed tokens of callers, and remembers those that are valid until they expire."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from core_broker.security.sasl.jwks import JsonWebKeys, KeysUnavailable, times_of
from core_broker.security.sasl.jwt import InvalidToken, TokenRules, TokenValidator, UnknownKey, ValidToken, rules_of
from core_broker.service.clock import Clock
from core_broker.web_access.errors import Refused, Unavailable
from core_broker.web_access.settings import AccessSettings

_INVALID: Final = "invalid_token"


def tokens_of(settings: AccessSettings, clock: Clock) -> "Tokens":
    """Tokens by the settings, which name the place of their keys."""
    url = settings.sasl_oauthbearer_jwks_endpoint_url
    assert url is not None, "settings without keys are refused"
    keys = JsonWebKeys(url, clock, times_of(settings))
    return Tokens(keys, rules_of(settings), clock, entries_max=settings.authentication_cache_max_entries)


class Tokens:
    """Tokens of one identity provider."""

    def __init__(self, keys: JsonWebKeys, rules: TokenRules, clock: Clock, *, entries_max: int) -> None:
        self._keys = keys
        self._clock = clock
        self._entries_max = entries_max
        self._skew_ms = rules.clock_skew_seconds * 1000
        self._validator = TokenValidator(keys, rules, clock)
        self._valid: OrderedDict[bytes, ValidToken] = OrderedDict()
        """By a digest of the token, the oldest first."""
        self._generation = 0
        """Of the keys by which they are valid."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the keys up to date while the block runs. Raises ValueError if they are a file that cannot be read."""
        if self._keys.is_required_at_start:
            try:
                await self._keys.load()
            except KeysUnavailable as error:
                raise ValueError(f"sasl.oauthbearer.jwks.endpoint.url={self._keys.url}: {error}") from None
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._keys.run())
            try:
                yield
            finally:
                task.cancel()

    async def check(self, token: str) -> ValidToken:
        """What a token says. Raises Refused or Unavailable."""
        if self._generation != self._keys.generation:
            self._generation = self._keys.generation
            self._valid.clear()
        digest = hashlib.sha256(token.encode()).digest()
        known = self._valid.get(digest)
        if known is not None and known.expires_at_ms + self._skew_ms > self._clock.now_ms():
            return known
        valid = await self._validate(token)
        self._valid[digest] = valid
        if len(self._valid) > self._entries_max:
            self._valid.popitem(last=False)
        return valid

    async def _validate(self, token: str) -> ValidToken:
        try:
            try:
                return self._validator.validate(token)
            except UnknownKey:
                # The identity provider may just have begun to use it.
                if not await self._keys.refreshed():
                    raise
            return self._validator.validate(token)
        except InvalidToken as error:
            if not self._keys.generation:
                raise Unavailable("Tokens cannot be checked, because the keys for them cannot be read") from None
            raise Refused("The token is not valid", token_error=_INVALID, reason=str(error)) from None
