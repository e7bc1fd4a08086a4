"""Asked once, remembered for a while, never for ever."""

import asyncio

import pytest

from core_broker.schema_guard.remembered_answers import Answer, Lifetimes, RememberedAnswers
from core_broker.service.clock import ManualClock


class Oracle:
    """Knows even numbers; answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.go = asyncio.Event()
        self.go.set()
        self.failure: Exception | None = None

    async def __call__(self, key: int) -> str | None:
        self.asked.append(key)
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return str(key) if key % 2 == 0 else None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def answers(oracle: Oracle, clock: ManualClock) -> RememberedAnswers[int, str]:
    return RememberedAnswers(oracle, lifetimes=Lifetimes(size_max=3, found_s=60, missing_s=1), clock=clock)


async def test_a_yes_is_remembered_for_minutes_and_a_no_for_a_second(
    answers: RememberedAnswers[int, str], clock: ManualClock
) -> None:
    assert answers.recall(2) is None
    await asyncio.gather(answers.ask(2), answers.ask(3))
    assert (answers.recall(2), answers.recall(3)) == (Answer("2"), Answer(None))
    clock.advance(1000)
    assert (answers.recall(2), answers.recall(3)) == (Answer("2"), None)
    clock.advance(59_000)
    assert answers.recall(2) is None


async def test_those_who_ask_at_the_same_time_share_one_question(
    answers: RememberedAnswers[int, str], oracle: Oracle
) -> None:
    oracle.go.clear()
    tasks = [answers.ask(2) for _ in range(50)]
    oracle.go.set()
    await asyncio.gather(*tasks)
    assert oracle.asked == [2]


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others(
    answers: RememberedAnswers[int, str], oracle: Oracle
) -> None:
    oracle.go.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.wait([answers.ask(2)])
    oracle.go.set()
    await answers.ask(2)
    assert oracle.asked == [2]
    assert answers.recall(2) == Answer("2")


async def test_a_failure_is_told_to_all_and_remembered_by_nobody(
    answers: RememberedAnswers[int, str], oracle: Oracle
) -> None:
    oracle.failure = OSError("gone")
    first, second = answers.ask(2), answers.ask(2)
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [str(result) for result in results] == ["gone", "gone"]
    oracle.failure = None
    await answers.ask(2)
    assert answers.recall(2) == Answer("2")


async def test_the_oldest_answers_make_room(answers: RememberedAnswers[int, str]) -> None:
    for key in (2, 4, 6, 2, 8):
        await answers.ask(key)
    assert len(answers) == 3
    assert [key for key in (2, 4, 6, 8) if answers.recall(key)] == [2, 6, 8]


async def test_closing_gives_up_what_is_being_asked(answers: RememberedAnswers[int, str], oracle: Oracle) -> None:
    oracle.go.clear()
    task = answers.ask(2)
    await answers.close()
    assert task.cancelled()
