"""Tokens: remembered until they expire or keys change, and waiting for keys that are new."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from core_broker.security.sasl.jwks import JsonWebKeys, KeysUnavailable, RefreshTimes
from core_broker.security.sasl.jwt import TokenRules
from core_broker.service.clock import ManualClock
from core_broker.web_access.errors import Refused, Unavailable
from core_broker.web_access.tokens import Tokens
from tests.support.sasl_world import key_set, signed_token, signing_key

OLD, NEW = signing_key("old"), signing_key("new", "ES256")
NOW_S = 1_000_000
AT_ONCE = RefreshTimes(interval_seconds=3600, retry_seconds=0.001, retry_seconds_max=0.002, gap_seconds=0)


class World:
    """Tokens of an identity provider whose keys may change."""

    def __init__(self, keys: bytes | None, *, entries_max: int = 100) -> None:
        self.clock = ManualClock(NOW_S * 1000)
        self.served = keys
        self.fetched = 0
        self.was_read = asyncio.Event()
        self.keys = JsonWebKeys("https://id/keys", self.clock, AT_ONCE, fetch=self._fetch)
        self.tokens = Tokens(self.keys, TokenRules(clock_skew_seconds=0), self.clock, entries_max=entries_max)

    async def _fetch(self) -> bytes:
        self.fetched += 1
        await asyncio.sleep(0)
        self.was_read.set()
        if self.served is None:
            raise KeysUnavailable("it is down")
        return self.served


@asynccontextmanager
async def running(keys: bytes | None, *, entries_max: int = 100) -> AsyncIterator[World]:
    world = World(keys, entries_max=entries_max)
    async with asyncio.timeout(30), world.tokens.running():
        await world.was_read.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        yield world


def token(key: RSAKey | ECKey = OLD, algorithm: str = "RS256", **changes: Any) -> str:
    claims: Mapping[str, Any] = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 100, **changes}
    return signed_token(claims, key, algorithm)


async def test_a_token_says_who_sends_it() -> None:
    async with running(key_set(OLD)) as world:
        assert (await world.tokens.check(token())).subject == "alice"


async def test_a_remembered_token_expires_all_the_same() -> None:
    async with running(key_set(OLD)) as world:
        shown = token()
        await world.tokens.check(shown)
        world.clock.advance(99_999)
        await world.tokens.check(shown)
        world.clock.advance(1)
        with pytest.raises(Refused) as refused:
            await world.tokens.check(shown)
    assert refused.value.token_error == "invalid_token"
    assert "expired" in refused.value.reason


async def test_a_remembered_token_ends_with_its_key() -> None:
    async with running(key_set(OLD)) as world:
        shown = token()
        await world.tokens.check(shown)
        world.served = key_set(NEW)
        await world.tokens.check(token(NEW, "ES256"))
        with pytest.raises(Refused):
            await world.tokens.check(shown)


async def test_a_token_with_a_new_key_waits_until_the_key_is_read() -> None:
    async with running(key_set(OLD)) as world:
        world.served = key_set(OLD, NEW)
        shown = [token(NEW, "ES256", number=number) for number in range(20)]
        found = await asyncio.gather(*map(world.tokens.check, shown))
        assert [valid.subject for valid in found] == ["alice"] * 20
        assert world.fetched == 2


async def test_a_token_with_an_invented_key_is_refused_after_one_look() -> None:
    async with running(key_set(OLD)) as world:
        for _ in range(5):
            with pytest.raises(Refused):
                await world.tokens.check(token(signing_key("invented")))
        assert world.fetched == 2


async def test_without_any_keys_nobody_knows_whether_a_token_is_valid() -> None:
    async with running(None) as world:
        with pytest.raises(Unavailable):
            await world.tokens.check(token())


@pytest.mark.parametrize("wrong", ["", "x", "a.b.c", "ä.ö.ü", "." * 8000, token()[:-5] + "AAAAA", token(exp=NOW_S - 1)])
async def test_what_is_no_valid_token_is_refused(wrong: str) -> None:
    async with running(key_set(OLD)) as world:
        with pytest.raises(Refused, match="The token is not valid"):
            await world.tokens.check(wrong)


async def test_what_is_remembered_is_bounded() -> None:
    async with running(key_set(OLD), entries_max=3) as world:
        for number in range(10):
            await world.tokens.check(token(number=number))
        assert len(world.tokens._valid) == 3


async def test_keys_in_a_file_must_be_there_at_the_start(tmp_path: Path) -> None:
    clock = ManualClock()
    keys = JsonWebKeys((tmp_path / "missing.json").as_uri(), clock, AT_ONCE)
    with pytest.raises(ValueError, match=r"jwks\.endpoint\.url=file:.*missing\.json"):
        async with Tokens(keys, TokenRules(), clock, entries_max=1).running():
            pass
