import pytest

from deploy.cli import main


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--help"]) == 0
    text = capsys.readouterr().out
    assert "caudal doctor -o json" in text
    assert "exit code" in text
