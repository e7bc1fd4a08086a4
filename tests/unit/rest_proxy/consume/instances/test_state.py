import os
from pathlib import Path

import msgspec
import pytest

from core_broker.service.clock import SystemClock
from rest_proxy.consume.instances.config import InstanceConfig
from rest_proxy.consume.instances.state import InstanceFiles, Key, Position, SavedInstance
from rest_proxy.formats.formats import Format

CONFIG = InstanceConfig(
    format=Format.JSON,
    auto_offset_reset="earliest",
    auto_commit_enable=False,
    fetch_min_bytes=1,
    request_timeout_ms=1000,
    properties={"isolation.level": "read_committed"},
)
SAVED = SavedInstance(
    group="g/ü",
    name="../n",
    config=CONFIG,
    topics=["a"],
    assigned=[("a", 0)],
    positions=[Position("a", 0, 5), Position("a", 1, 2**62, is_explicit=True)],
)


@pytest.fixture
def files(tmp_path: Path) -> InstanceFiles:
    return InstanceFiles(str(tmp_path / "deep" / "state"), timeout_ms=60_000, clock=SystemClock())


def only_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "deep" / "state").iterdir()
    return path


def age(path: Path) -> None:
    os.utime(path, (0, 0))


def test_instance_comes_back_as_it_was(files: InstanceFiles, tmp_path: Path) -> None:
    assert not (tmp_path / "deep").exists()
    files.save(SAVED)
    assert files.load(SAVED.key) == SAVED
    assert files.load(Key("", "g", "n")) is None
    assert only_file(tmp_path).parent == tmp_path / "deep" / "state"
    files.remove(SAVED.key)
    assert files.load(SAVED.key) is None
    files.remove(SAVED.key)


def test_instances_of_the_same_name_belong_to_their_owners(files: InstanceFiles, tmp_path: Path) -> None:
    own = msgspec.structs.replace(SAVED, owner="User:alice")
    files.save(SAVED)
    files.save(own)
    assert len(list((tmp_path / "deep" / "state").iterdir())) == 2
    assert files.load(own.key) == own
    assert files.load(SAVED.key) == SAVED
    assert files.load(Key("User:bob", SAVED.group, SAVED.name)) is None


def test_instance_that_has_expired_is_gone(files: InstanceFiles, tmp_path: Path) -> None:
    files.save(SAVED)
    age(only_file(tmp_path))
    assert files.is_expired(SAVED.key)
    assert files.load(SAVED.key) is None
    files.touch(SAVED.key)
    assert files.load(SAVED.key) == SAVED


def test_sweep_removes_what_has_expired_and_is_not_in_use(files: InstanceFiles, tmp_path: Path) -> None:
    files.sweep(())
    files.save(SAVED)
    files.sweep(())
    age(only_file(tmp_path))
    files.sweep([SAVED.key])
    assert only_file(tmp_path).exists()
    files.sweep(())
    assert list((tmp_path / "deep" / "state").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"group":"g"}', b"\xff", b"[]"])
def test_an_invalid_file_is_ignored(files: InstanceFiles, tmp_path: Path, content: bytes) -> None:
    files.save(SAVED)
    only_file(tmp_path).write_bytes(content)
    assert files.load(SAVED.key) is None


def test_the_file_of_another_instance_is_ignored(files: InstanceFiles, tmp_path: Path) -> None:
    files.save(SAVED)
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"../n", b"../m"))
    assert files.load(SAVED.key) is None


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"state\.dir"):
        InstanceFiles(str(tmp_path / "file" / "state"), timeout_ms=1, clock=SystemClock())


def test_folder_that_vanishes_is_made_again(files: InstanceFiles, tmp_path: Path) -> None:
    files.save(SAVED)
    only_file(tmp_path).unlink()
    (tmp_path / "deep" / "state").rmdir()
    files.save(SAVED)
    assert files.load(SAVED.key) == SAVED


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = InstanceFiles("", timeout_ms=60_000, clock=SystemClock())
    files.save(SAVED)
    files.touch(SAVED.key)
    files.sweep(())
    assert files.load(SAVED.key) is None
    assert not files.is_kept
    assert list(tmp_path.iterdir()) == []
