"""The machine's own files; tests/integration/test_spark_tables.py has the same for Hadoop's file systems."""

from pathlib import Path

import pytest

from streams.spark.files import Files, join_path


@pytest.fixture
def files() -> Files:
    """Files without a session."""
    return Files()


def test_a_new_file_is_written_once(files: Files, tmp_path: Path) -> None:
    path = join_path(str(tmp_path), "deep", "manifest.json")
    assert files.write_new(path, b"first")
    assert not files.write_new(path, b"second")
    assert files.read(path) == b"first"
    assert [entry.name for entry in files.list(join_path(str(tmp_path), "deep"))] == ["manifest.json"]


def test_a_written_file_replaces_what_was_there(files: Files, tmp_path: Path) -> None:
    path = f"file:{tmp_path}/state"
    files.write(path, b"old")
    files.write(path, b"new")
    assert files.read(path) == b"new"
    assert (tmp_path / "state").read_bytes() == b"new"


def test_a_move_makes_the_folders_and_may_be_repeated(files: Files, tmp_path: Path) -> None:
    source, target = join_path(str(tmp_path), "a"), join_path(str(tmp_path), "x", "y", "b")
    files.write(source, b"rows")
    files.move(source, target)
    files.move(source, target)
    assert files.read(target) == b"rows"
    assert not files.exists(source)


def test_a_move_of_nothing_to_nowhere_is_an_error(files: Files, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.move(join_path(str(tmp_path), "a"), join_path(str(tmp_path), "b"))


def test_what_is_missing_is_no_error_unless_it_is_read(files: Files, tmp_path: Path) -> None:
    path = join_path(str(tmp_path), "nothing")
    assert files.list(path) == []
    assert files.info(path) is None
    files.delete(path)
    with pytest.raises(FileNotFoundError):
        files.read(path)


def test_listings_show_folders_sizes_and_times(files: Files, tmp_path: Path) -> None:
    files.write(join_path(str(tmp_path), "f"), b"1234")
    files.write(join_path(str(tmp_path), "d", "g"), b"1")
    folder, file = files.list(str(tmp_path))
    assert (folder.name, folder.is_dir) == ("d", True)
    assert (file.name, file.is_dir, file.size) == ("f", False, 4)
    assert file.modified_ms > 0
    assert [entry.path for entry in files.walk(str(tmp_path))] == [f"{tmp_path}/d/g", f"{tmp_path}/f"]


def test_a_folder_is_deleted_with_everything_in_it(files: Files, tmp_path: Path) -> None:
    files.write(join_path(str(tmp_path), "d", "e", "f"), b"1")
    files.delete(join_path(str(tmp_path), "d"))
    assert not files.exists(join_path(str(tmp_path), "d"))


def test_names_with_percent_signs_and_spaces_are_taken_as_they_are(files: Files, tmp_path: Path) -> None:
    path = join_path(f"file://{tmp_path}", "day=a b%2Fc", "f")
    files.write(path, b"1")
    assert (tmp_path / "day=a b%2Fc" / "f").exists()


def test_other_file_systems_need_a_session(files: Files) -> None:
    with pytest.raises(ValueError, match="session"):
        files.exists("hdfs://name/path")
