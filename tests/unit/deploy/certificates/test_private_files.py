import os
import stat
from pathlib import Path

import pytest

from deploy.certificates.private_files import is_private, private_folder, write_private


def test_a_file_is_for_its_owner_whatever_the_umask_and_its_old_rights_are(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    before = os.umask(0)
    try:
        write_private(file, b"one")
        file.chmod(0o666)
        write_private(file, b"two")
    finally:
        os.umask(before)
    assert file.read_bytes() == b"two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_not_to_be_replaced_stays(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    write_private(file, b"one", replaces=False)
    with pytest.raises(FileExistsError):
        write_private(file, b"two", replaces=False)
    assert file.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "secret"
    elsewhere.write_text("mine")
    file.symlink_to(elsewhere)
    assert not is_private(file)
    write_private(file, b"secret")
    assert elsewhere.read_text() == "mine"
    assert is_private(file)


def test_from_a_folder_that_is_there_others_are_shut_out(tmp_path: Path) -> None:
    folder = tmp_path / "security"
    folder.mkdir(mode=0o755)
    assert not is_private(folder)
    assert is_private(private_folder(folder))
