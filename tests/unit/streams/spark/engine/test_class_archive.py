"""Where the archive of Spark's classes is, and the errors of writing it; that Java uses it: tests/integration."""

import sys
from pathlib import Path

import pytest

from streams.errors import EngineUnavailable, JavaMissing
from streams.spark.engine import class_archive
from streams.spark.engine.class_archive import archive_file, archive_options, make_archive, recording_options
from tests.support.made_up_java import made_up_java


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "installed"))
    return tmp_path / "installed"


def test_each_java_has_a_file_of_its_own_in_the_installation(prefix: Path, tmp_path: Path) -> None:
    first, second = made_up_java(tmp_path / "first"), made_up_java(tmp_path / "second")
    assert archive_file(first) == archive_file(first) != archive_file(second)
    assert archive_file(first).is_relative_to(prefix)


def test_a_file_that_is_not_there_is_not_named_to_java(tmp_path: Path) -> None:
    file = tmp_path / "with a space.jsa"
    assert archive_options(file) == []
    file.touch()
    assert archive_options(file)[0] == f'"-XX:SharedArchiveFile={file}"'


def test_a_missing_java_is_reported_first(prefix: Path, tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="there is no Java on this machine"):
        make_archive({"PATH": str(tmp_path)})
    assert not prefix.exists()


@pytest.mark.processes
@pytest.mark.parametrize(
    "rehearsal", ["import sys; print('Unrecognized VM option'); sys.exit(1)", "print('Unrecognized VM option')"]
)
def test_a_java_that_archives_nothing_is_reported_with_its_output(
    prefix: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rehearsal: str,
) -> None:
    (tmp_path / "poor_rehearsal.py").write_text(rehearsal)
    monkeypatch.setattr(class_archive, "_REHEARSAL", "poor_rehearsal")
    environment = {**made_up_java(tmp_path / "java"), "PYTHONPATH": str(tmp_path)}
    expected = "Java 17 did not archive Spark's classes; its output ends with:\nUnrecognized VM option"
    with pytest.raises(EngineUnavailable, match=expected):
        make_archive(environment)
    assert list((prefix / "var" / "caudal").iterdir()) == []


@pytest.mark.processes
def test_what_was_made_takes_the_place_of_what_was_there(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good_rehearsal.py").write_text("import sys; open(sys.argv[2], 'w').write('new')")
    monkeypatch.setattr(class_archive, "_REHEARSAL", "good_rehearsal")
    environment = {**made_up_java(tmp_path / "java"), "PYTHONPATH": str(tmp_path)}
    file = archive_file(environment)
    file.parent.mkdir(parents=True)
    file.write_text("old")
    assert make_archive(environment) == file
    assert file.read_text() == "new"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.processes
def test_an_installation_that_cannot_be_written_is_reported(prefix: Path, tmp_path: Path) -> None:
    environment = made_up_java(tmp_path / "java")
    prefix.write_text("no folder")
    with pytest.raises(EngineUnavailable, match="Spark's classes cannot be stored in .*caudal: "):
        make_archive(environment)


def test_java_writes_to_the_file_that_is_named(tmp_path: Path) -> None:
    assert recording_options(tmp_path / "a b.jsa")[0] == f'"-XX:ArchiveClassesAtExit={tmp_path}/a b.jsa"'
