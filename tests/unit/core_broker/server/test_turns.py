"""Large pieces of work take turns with everything else."""

import asyncio
import socket

from core_broker.server.turns import Turns


async def test_what_became_ready_meanwhile_goes_before_the_next_large_piece() -> None:
    loop = asyncio.get_running_loop()
    turns = Turns(loop)
    near, far = socket.socketpair()
    done: list[str] = []
    finished = asyncio.Event()

    def on_readable() -> None:
        near.recv(1)
        done.append("small")

    def work(number: int) -> None:
        done.append(f"large {number}")
        far.send(b"x")
        if number < 3:
            turns.add(lambda: work(number + 1))  # as a connection does that has more to read
        else:
            loop.call_later(0.05, finished.set)

    loop.add_reader(near, on_readable)
    turns.add(lambda: work(1))
    await asyncio.wait_for(finished.wait(), 30)
    loop.remove_reader(near)
    near.close()
    far.close()
    assert done == ["large 1", "small", "large 2", "small", "large 3", "small"]


async def test_each_takes_a_turn_before_one_takes_a_second() -> None:
    turns = Turns(asyncio.get_running_loop())
    done: list[str] = []
    finished = asyncio.Event()

    def work(name: str, left: int) -> None:
        done.append(name)
        if left:
            turns.add(lambda: work(name, left - 1))
        elif len(done) == 4:
            finished.set()

    turns.add(lambda: work("a", 1))
    turns.add(lambda: work("b", 1))
    await asyncio.wait_for(finished.wait(), 30)
    assert done == ["a", "b", "a", "b"]


async def test_a_piece_that_fails_holds_nothing_up() -> None:
    loop = asyncio.get_running_loop()
    reported: list[object] = []
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    turns = Turns(loop)
    finished = asyncio.Event()

    def fail() -> None:
        raise OSError

    turns.add(fail)
    turns.add(finished.set)
    await asyncio.wait_for(finished.wait(), 30)
    assert [type(error) for error in reported] == [OSError]
