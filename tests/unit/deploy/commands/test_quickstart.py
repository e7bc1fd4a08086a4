from pathlib import Path

import pytest

from deploy.cli import main


@pytest.fixture(autouse=True)
def passing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where passing folders go to."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("CAUDAL_DATA", raising=False)
    return tmp_path


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", "--help"]) == 0
    output = capsys.readouterr().out
    assert [word for word in ("Examples", "--exit", "--no-spark", "CAUDAL_DATA") if word not in output] == []


def test_ports_that_cannot_be_meant_are_refused_and_nothing_is_left(
    passing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quickstart", "--exit", "--ports", "brokr=1"]) == 1
    printed = capsys.readouterr()
    assert "nothing called brokr listens here" in printed.err
    assert "Traceback" not in printed.err
    assert list(passing.iterdir()) == []


@pytest.mark.processes
def test_a_folder_that_is_a_file_is_reported(passing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = passing / "file"
    file.write_text("no folder")

    assert main(["quickstart", "--exit", "--data", str(file), "--ports", "any"]) == 1
    printed = capsys.readouterr()
    assert f"{file} is a file" in printed.out + printed.err
