import pytest

from deploy.quickstart import screen


def test_columns_of_a_table_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    screen.rows(["id#", "name"], [(7, "Ana"), (1001, "河"), (None, "Chloé")])

    assert capsys.readouterr().out.splitlines() == [
        "         id   name",
        "          7   Ana",
        "       1001   河",
        "          –   Chloé",
    ]


def test_values_from_outside_neither_steer_the_terminal_nor_are_markup(capsys: pytest.CaptureFixture[str]) -> None:
    screen.pairs([("message", "[bold]\x1b[31mred")])

    (line,) = capsys.readouterr().out.splitlines()
    assert "\x1b" not in line
    assert "[bold]" in line


def test_a_long_reason_is_reported_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen.skipped("there is no Java\napt-get install openjdk-17-jre-headless")

    first, second = capsys.readouterr().out.splitlines()
    assert first.strip() == "– there is no Java"
    assert second.strip() == "apt-get install openjdk-17-jre-headless"


def test_lines_that_are_too_long_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    screen.command("curl " + "x" * 500)

    assert "x" * 500 in capsys.readouterr().out


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with screen.progress("waiting") as tell:
        tell("3 of 5 rows")

    printed = capsys.readouterr()
    assert printed.out + printed.err == ""
