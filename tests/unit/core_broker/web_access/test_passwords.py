"""Passwords: what is asked, what is remembered and for how long, and who has to wait."""

import asyncio

import pytest
from typing_extensions import override

from core_broker.service.clock import ManualClock
from core_broker.web_access import passwords as module
from core_broker.web_access.errors import TooManyFailures, Unavailable
from core_broker.web_access.failure_limits import FailureLimits
from core_broker.web_access.passwords import Passwords, PasswordVerifier, Verdict
from tests.support.web_login import KnownUsers

HOST = "10.0.0.1"


class World:
    """Passwords of known users, with a clock to move."""

    def __init__(self, *verifiers: PasswordVerifier, ttl_seconds: float = 60, entries_max: int = 100) -> None:
        self.users = KnownUsers()
        self.clock = ManualClock()
        self.limits = FailureLimits(self.clock, per_minute=3)
        self.passwords = Passwords(
            verifiers or (self.users,), self.clock, self.limits, ttl_seconds=ttl_seconds, entries_max=entries_max
        )

    async def try_(self, password: str = "secret", user: str = "alice", host: str = HOST) -> bool:
        return await self.passwords.are_right(user, password, host)


async def test_a_right_password_is_asked_about_once() -> None:
    world = World()
    assert await world.try_()
    assert await world.try_()
    assert world.users.asked == 1


async def test_a_changed_password_is_noticed_when_its_time_is_over() -> None:
    world = World()
    assert await world.try_()
    world.users.passwords["alice"] = "new"
    assert await world.try_()
    world.clock.advance(60_000)
    assert not await world.try_()
    assert await world.try_("new")


async def test_without_a_time_every_request_is_asked_about() -> None:
    world = World(ttl_seconds=0)
    assert [await world.try_() for _ in range(5)] == [True] * 5
    assert world.users.asked == 5


async def test_a_wrong_password_is_wrong_for_seconds_only() -> None:
    world = World()
    world.users.passwords["alice"] = "other"
    assert not await world.try_()
    assert not await world.try_()
    assert world.users.asked == 1
    world.users.passwords["alice"] = "secret"
    world.clock.advance(5_000)
    assert await world.try_()


async def test_guesses_have_to_wait() -> None:
    world = World()
    for number in range(3):
        assert not await world.try_(f"guess-{number}")
    with pytest.raises(TooManyFailures) as refused:
        await world.try_("secret", host="10.9.9.9")
    assert refused.value.retry_after_seconds == 20
    assert world.users.asked == 3


async def test_guesses_at_the_same_time_have_to_wait_as_well() -> None:
    world = World(_Slow(KnownUsers()))
    async with asyncio.timeout(10):
        found = await asyncio.gather(*(world.try_(f"guess-{n}") for n in range(8)), return_exceptions=True)
    assert found.count(False) == 3
    assert sum(isinstance(answer, TooManyFailures) for answer in found) == 5


async def test_an_attacker_cannot_keep_out_who_has_been_here() -> None:
    world = World()
    assert await world.try_()
    for number in range(3):
        assert not await world.try_(f"guess-{number}")
    world.clock.advance(60_000)
    world.limits.add("alice", HOST)
    for _ in range(5):
        world.limits.add("alice", HOST)
    assert await world.try_()


async def test_a_password_that_is_no_longer_right_is_a_guess_again() -> None:
    world = World()
    assert await world.try_()
    world.users.passwords["alice"] = "new"
    for _ in range(4):
        world.clock.advance(60_000)
        assert not await world.try_()
    for _ in range(4):
        world.limits.add("alice", HOST)
    world.clock.advance(6_000)
    with pytest.raises(TooManyFailures):
        await world.try_()


async def test_verifiers_are_asked_until_one_knows_the_user() -> None:
    world = World(KnownUsers({"bob": "b"}), KnownUsers({"alice": "a", "bob": "other"}))
    assert await world.try_("a")
    assert await world.try_("b", user="bob")
    assert not await world.try_("other", user="bob")
    assert not await world.try_("x", user="nobody", host="10.0.0.2")


async def test_when_nobody_can_say_it_is_no_failure_and_not_remembered() -> None:
    world = World()
    world.users.is_available = False
    for _ in range(10):
        with pytest.raises(Unavailable):
            await world.try_()
    world.users.is_available = True
    assert await world.try_()


async def test_requests_at_the_same_time_share_one_check() -> None:
    users = KnownUsers()
    world = World(_Slow(users))
    async with asyncio.timeout(10):
        assert await asyncio.gather(*(world.try_() for _ in range(50))) == [True] * 50
    assert users.asked == 1


async def test_requests_that_share_a_check_share_its_failure() -> None:
    users = KnownUsers()
    users.is_available = False
    world = World(_Slow(users))
    async with asyncio.timeout(10):
        found = await asyncio.gather(*(world.try_() for _ in range(5)), return_exceptions=True)
    assert [type(answer) for answer in found] == [Unavailable] * 5


async def test_names_and_passwords_are_not_confused() -> None:
    world = World(KnownUsers({"ab": "c"}))
    assert await world.try_("c", user="ab")
    assert not await world.try_("bc", user="a")


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WRONG_MAX", 2)
    world = World(KnownUsers({str(n): "p" for n in range(10)}), entries_max=3)
    for number in range(10):
        assert await world.try_("p", user=str(number), host=f"10.0.1.{number}")
        assert not await world.try_("q", user=str(number), host=f"10.0.1.{number}")
    assert len(world.passwords._right._until) == 3
    assert len(world.passwords._wrong._until) == 2


async def test_no_password_is_in_memory() -> None:
    world = World(KnownUsers({"alice": "unmistakable"}))
    assert await world.try_("unmistakable")
    assert "unmistakable" not in repr(vars(world.passwords)) + repr(vars(world.passwords._right))


class _Slow(PasswordVerifier):
    def __init__(self, users: KnownUsers) -> None:
        self._users = users

    @override
    async def verify(self, user: str, password: str) -> Verdict:
        for _ in range(10):
            await asyncio.sleep(0)
        return await self._users.verify(user, password)
