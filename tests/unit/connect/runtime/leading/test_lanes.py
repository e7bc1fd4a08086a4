"""Work for connectors: in order for each, side by side for all, and nobody waits for code that hangs."""

import threading
from concurrent.futures import wait

import pytest

from connect.runtime.leading.lanes import Lanes
from tests.support.patience import PATIENCE_S


def _ignored(_: object) -> None:
    """Work gives nothing back."""


def test_work_of_one_name_is_done_in_order() -> None:
    lanes, done = Lanes(), list[int]()
    futures = [lanes.submit("a", lambda number=number: done.append(number)) for number in range(100)]  # type: ignore[misc]  # the default is the number
    wait(futures, PATIENCE_S)
    assert done == list(range(100))


def test_work_of_different_names_is_done_side_by_side() -> None:
    lanes, met = Lanes(), threading.Barrier(3)
    futures = [lanes.submit(name, lambda: _ignored(met.wait(PATIENCE_S))) for name in "abc"]
    for future in futures:
        future.result(PATIENCE_S)


def test_work_that_fails_is_told_and_the_next_is_done() -> None:
    lanes, done = Lanes(), threading.Event()

    def fail() -> None:
        raise ValueError("no")

    failed = lanes.submit("a", fail)
    lanes.submit("a", done.set)
    with pytest.raises(ValueError, match="no"):
        failed.result(PATIENCE_S)
    assert done.wait(PATIENCE_S)


def test_code_that_hangs_does_not_hold_up_other_names() -> None:
    lanes, for_ever, done = Lanes(at_once=1), threading.Event(), threading.Event()
    lanes.submit("hangs", lambda: _ignored(lanes.limited(for_ever.wait, PATIENCE_S)))
    lanes.submit("other", done.set)
    assert done.wait(PATIENCE_S)
    for_ever.set()


def test_code_that_hangs_is_given_up_when_its_time_is_over() -> None:
    lanes, for_ever = Lanes(), threading.Event()
    hanging = lanes.submit("hangs", lambda: _ignored(lanes.limited(for_ever.wait, 0.01)))
    with pytest.raises(TimeoutError):
        hanging.result(PATIENCE_S)
    for_ever.set()


def test_code_that_hangs_is_given_up_when_there_is_something_else_to_do() -> None:
    lanes, for_ever, hurry = Lanes(), threading.Event(), threading.Event()
    hurry.set()
    hanging = lanes.submit("hangs", lambda: _ignored(lanes.limited(for_ever.wait, 3600, hurry=hurry)))
    with pytest.raises(TimeoutError):
        hanging.result(PATIENCE_S)
    for_ever.set()


def test_what_has_not_begun_is_dropped_at_the_end() -> None:
    lanes, begun, go_on = Lanes(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    first, second = lanes.submit("a", slow), lanes.submit("a", lambda: None)
    assert begun.wait(PATIENCE_S)
    threading.Timer(0.05, go_on.set).start()
    assert lanes.close(PATIENCE_S)
    assert first.done()
    assert second.cancelled()
    assert lanes.submit("a", lambda: None).cancelled()
