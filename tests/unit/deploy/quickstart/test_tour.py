from pathlib import Path

import pytest

from deploy.quickstart.tour import StepFailed, ensure, wait_for


def test_an_answer_is_awaited() -> None:
    answers = iter([1, 2, 3])

    assert wait_for(lambda: next(answers), lambda found: found == 3, otherwise="no 3", pause_s=0) == 3


def test_patience_ends_with_what_was_hoped_for_and_the_log() -> None:
    with pytest.raises(StepFailed, match="no rows came within 0 s") as failed:
        wait_for(list, bool, otherwise="no rows came", log=Path("connect.log"), patience_s=0, pause_s=0)

    assert failed.value.log == Path("connect.log")


def test_a_result_that_is_not_as_it_should_be_fails_the_step() -> None:
    ensure(True, "all is well")
    with pytest.raises(StepFailed, match="seven rows"):
        ensure(False, "seven rows")
