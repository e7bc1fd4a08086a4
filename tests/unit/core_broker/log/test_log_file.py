import gc
import os
from pathlib import Path

from core_broker.log.log_file import LogFile, OpenFiles, reserve


def open_file_names() -> list[str]:
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(entry.readlink()))
        except FileNotFoundError:  # the one that lists the directory
            continue
    return names


def test_the_file_is_closed_when_nobody_refers_to_it(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "f", create=True)
    (tmp_path / "f").unlink()
    assert open_file_names().count(f"{tmp_path / 'f'} (deleted)") == 1
    del file
    gc.collect()
    assert open_file_names().count(f"{tmp_path / 'f'} (deleted)") == 0


def test_a_deleted_file_can_be_read_while_it_is_referred_to(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"still here")
    file = LogFile(tmp_path / "f")
    (tmp_path / "f").unlink()
    assert file.read(6, 10) == b"here"


def test_reserved_space_does_not_show_in_the_size(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "f", create=True)
    assert reserve(file, 0, 1 << 20)
    status = os.fstat(file.fd)
    assert status.st_size == 0
    assert status.st_blocks * 512 >= 1 << 20
    file.cut(0)
    assert os.fstat(file.fd).st_blocks == 0


def test_space_that_is_not_there_is_not_reserved(tmp_path: Path) -> None:
    assert not reserve(LogFile(tmp_path / "f", create=True), 0, 1 << 62)


class Holder:
    released = False

    def release_files(self) -> None:
        self.released = True


def test_the_first_to_open_is_the_first_to_let_go() -> None:
    files = OpenFiles(2)
    holders = [Holder() for _ in range(4)]
    for holder in holders:
        files.note_opened(holder)
    assert [holder.released for holder in holders] == [True, True, False, False]
    assert len(files) == 2


def test_those_who_open_files_are_not_kept_alive() -> None:
    files = OpenFiles(1)
    files.note_opened(Holder())
    gc.collect()
    last = Holder()
    files.note_opened(last)
    assert not last.released
