import os
from pathlib import Path

import pytest

from streams.spark.engine.folder import EngineFolder, FolderLock


def test_the_folder_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    folder = EngineFolder(tmp_path / "deep" / "engine").create()
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_others_lose_the_right_to_write_into_a_folder_that_is_there(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    EngineFolder(tmp_path).create()
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    token = EngineFolder(tmp_path).keep_token(None)
    assert len(token) > 40
    assert EngineFolder(tmp_path).keep_token(None) == token
    assert EngineFolder(tmp_path).token.stat().st_mode & 0o777 == 0o600
    assert EngineFolder(tmp_path).keep_token("given") == "given"
    assert EngineFolder(tmp_path).token.read_text() == "given\n"


def test_a_token_that_others_could_have_read_is_replaced(tmp_path: Path) -> None:
    folder = EngineFolder(tmp_path)
    token = folder.keep_token(None)
    folder.token.chmod(0o644)
    assert folder.keep_token(None) != token
    assert folder.token.stat().st_mode & 0o777 == 0o600


def test_one_process_at_a_time_has_the_lock(tmp_path: Path) -> None:
    folder = EngineFolder(tmp_path)
    assert not folder.is_locked()
    lock = FolderLock.try_acquire(folder)
    assert lock is not None
    lock.sign(4711)
    assert folder.is_locked()
    assert FolderLock.try_acquire(folder) is None
    assert folder.lock.read_text() == "4711\n"
    lock.release()
    assert not folder.is_locked()


@pytest.mark.processes
def test_a_holder_that_died_leaves_no_lock(tmp_path: Path) -> None:
    folder = EngineFolder(tmp_path)
    child = os.fork()
    if child == 0:
        FolderLock.try_acquire(folder)
        os._exit(0)
    os.waitpid(child, 0)
    assert not folder.is_locked()


def test_the_socket_is_in_the_folder_while_its_path_is_short(tmp_path: Path) -> None:
    folder = EngineFolder(Path("/short"))
    assert folder.socket == Path("/short/engine.sock")
    assert folder.choose_socket() == folder.socket


def test_a_socket_whose_path_would_be_too_long_is_elsewhere_and_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(runtime))
    folder = EngineFolder(tmp_path / ("x" * 100)).create()
    chosen = folder.choose_socket()
    assert chosen.parent == runtime / f"caudal-{os.getuid()}"
    assert chosen.parent.stat().st_mode & 0o777 == 0o700
    assert EngineFolder(folder.path).socket == chosen
    assert EngineFolder(tmp_path / ("y" * 100)).create().choose_socket() != chosen


def test_a_folder_for_sockets_that_others_can_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"caudal-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="must be owned by you"):
        EngineFolder(tmp_path / ("x" * 100)).create().choose_socket()
