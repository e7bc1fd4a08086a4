import json

import msgspec
import pytest

from deploy.terminal.output import failure, print_json, table


def test_long_names_in_a_table_are_not_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a" * 90, "b" * 120]
    table("", ["Name", "Other"], [names])
    assert names in [line.split() for line in capsys.readouterr().out.splitlines()]


class _Point(msgspec.Struct):
    x: int
    rest: tuple[str, ...] = ()


def test_values_of_our_own_are_written_as_json_objects(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"points": (_Point(1), _Point(2, ("a",)))})
    written = json.loads(capsys.readouterr().out)
    assert written == {"points": [{"x": 1, "rest": []}, {"x": 2, "rest": ["a"]}]}


def test_next_steps_show_their_commands_without_backticks_or_markup(capsys: pytest.CaptureFixture[str]) -> None:
    failure("it failed [here]", ["see:  `caudal logs [x]`", "or wait"])
    assert capsys.readouterr().err.splitlines() == ["✗ it failed [here]", "  → see:  caudal logs [x]", "  → or wait"]
