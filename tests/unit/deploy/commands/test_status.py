from pathlib import Path

import pytest

from deploy.cli import main
from deploy.launcher.lock import PlatformLock


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CAUDAL_DATA", str(tmp_path / "river"))


def test_the_folder_of_the_environment_is_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["status"]) == 3
    assert f"no platform runs in {tmp_path / 'river'}" in capsys.readouterr().err
    assert main(["status", "-o", "json"]) == 3
    assert '"ready": false' in capsys.readouterr().out
    assert main(["down"]) == 0
    assert main(["logs"]) == 1
    assert not (tmp_path / "river").exists()


def test_a_folder_whose_launcher_has_ended_has_no_platform(tmp_path: Path) -> None:
    (tmp_path / "river").mkdir()
    lock = PlatformLock.try_acquire(tmp_path / "river")
    assert lock is not None
    lock.release()
    assert main(["status"]) == 3
