from pathlib import Path

import pytest

from deploy.cli import main


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CAUDAL_DATA", str(tmp_path / "river"))


@pytest.mark.parametrize("command", ["up", "status", "logs", "down"])
def test_every_command_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"caudal {command}" in text.partition("Examples")[2]
    assert "CAUDAL_DATA" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--without", "zookeeper"], "there is no such service"),
        (["--without", "broker"], "--bootstrap HOST:PORT"),
        (["--ports", "broker"], "must be `any` or NAME=PORT"),
        (["--set", "num.partitions=3"], "must look like SERVICE:key=value"),
        (["--detach", "--set", "kafka:a=b"], "no service called kafka runs here"),
    ],
)
def test_a_request_that_cannot_work_is_refused_before_anything_is_created(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["up", *words]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert "Traceback" not in error
    assert not (tmp_path / "river").exists()


def test_whoever_opens_the_platform_to_others_must_insist_and_is_warned(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "river").write_text("")
    assert main(["up", "--host", "0.0.0.0", "--ports", "any"]) == 1
    refusal = capsys.readouterr().err
    assert "everyone who reaches this machine" in refusal
    assert "--secure" in refusal
    assert main(["up", "--host", "0.0.0.0", "--ports", "any", "--insecure"]) == 1
    assert "it asks for no passwords" in capsys.readouterr().err
    assert main(["up", "--ports", "any"]) == 1
    assert "passwords" not in capsys.readouterr().err


def test_two_brokers_come_with_a_warning_because_neither_can_be_missed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "river").write_text("")
    assert main(["up", "--brokers", "2", "--ports", "any"]) == 1
    assert "two brokers need each other" in capsys.readouterr().err
    assert main(["up", "--brokers", "3", "--ports", "any"]) == 1
    assert "need each other" not in capsys.readouterr().err
