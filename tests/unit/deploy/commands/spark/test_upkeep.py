from pathlib import Path

import pytest
import typer

from deploy.cli import main
from deploy.commands.spark.upkeep import parse_age, parse_size

COMMANDS = ("sql", "tables", "describe", "compact", "expire", "reload", "status", "stop", "engine")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CAUDAL_SPARK_CAUDAL_DATA_DIR", str(tmp_path / "engine"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", command, "--help"]) == 0
    assert f"caudal spark {command}" in capsys.readouterr().out.partition("Example")[2]


def test_the_status_of_no_engine_says_how_it_starts_and_starts_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "status"]) == 1
    assert f"no engine runs in {tmp_path / 'engine'}; it starts on first use" in capsys.readouterr().err
    assert main(["spark", "status", "-o", "json"]) == 1
    assert '"running": false' in capsys.readouterr().out
    assert not (tmp_path / "engine").exists()


def test_an_engine_that_does_not_run_need_not_be_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "stop"]) == 0
    assert "no engine runs in" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["sql", "SELECT 1"], ["tables"], ["describe", "x"], ["compact", "x"]])
def test_a_missing_java_is_reported_with_how_to_install_it(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["spark", *command]) == 1
    assert "apt-get install openjdk-17-jre-headless" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sql", "SELECT 1", "--set", "spark.caudal.port=1"], "spark.caudal.port=1: unknown setting; known are"),
        (["sql", "SELECT 1", "--set", "spark.driver.memory=much"], "spark.driver.memory=much: must be a number"),
        (["sql", "  "], "the statement is empty"),
        (["sql", "SELECT 1", "--json", "--csv"], "choose one format only"),
        (["sql", "SELECT 1", "--json", "-o", "csv"], "choose one format only"),
        (["sql", "SELECT 1", "--limit", "0"], "--limit"),
        (["expire", "orders", "--older-than", "soon"], "'soon' is not an age; write 30d, 2w, 12h, 90m or 60s"),
        (["compact", "orders", "--target-size", "big"], "'big' is not a size; write 128m or 1g"),
        (["expire", "orders"], "--older-than"),
        (["reload", "sink", "-t", "x", "-p", "0", "--from", "5", "--to", "5"], "--from 5 must be before --to 5"),
    ],
)
def test_what_cannot_work_is_reported_before_anything_starts(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", *words]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "engine").exists()


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("90m", 5_400_000), ("30d", 2_592_000_000), ("2 W", 1_209_600_000), ("1s", 1000)]
)
def test_ages(text: str, milliseconds: int) -> None:
    assert parse_age(text) == milliseconds


@pytest.mark.parametrize(("text", "count"), [("128m", 128 << 20), ("1GB", 1 << 30), ("4096", 4096), ("1 k", 1024)])
def test_sizes(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "0d", "-1d", "1y", "d", "1.5d", "1" * 20 + "d"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_age(text)
