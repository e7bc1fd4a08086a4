from pathlib import Path

import pytest

from deploy.cli import main


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A platform's folder with the logs of a cluster."""
    monkeypatch.setenv("CAUDAL_DATA", str(tmp_path))
    (tmp_path / "logs").mkdir()
    for name in ("launcher", "broker-1", "broker-2", "broker-10", "registry"):
        (tmp_path / "logs" / f"{name}.log").write_text(f"said by {name}\n")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["logs", *words]) == 0
    return [line.partition("said by ")[2] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("data")
def test_every_broker_of_a_cluster_has_a_log_and_broker_stands_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys) == ["launcher", "broker-1", "broker-2", "broker-10", "registry"]
    assert said(capsys, "broker") == ["broker-1", "broker-2", "broker-10"]
    assert said(capsys, "broker-2") == ["broker-2"]


@pytest.mark.usefixtures("data")
def test_a_broker_that_never_ran_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "broker-3"]) == 2
    assert "has no log" in capsys.readouterr().err
