import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.log.checkpoints import (
    CorruptCheckpoint,
    read_lines,
    read_offsets,
    read_topic_id,
    write_lines,
    write_offsets,
    write_topic_id,
)

OFFSETS = {("orders", 0): 17, ("orders", 11): 0, ("a.b-c_d", 3): 2**62}


def test_offsets_come_back(tmp_path: Path) -> None:
    write_offsets(tmp_path / "recovery-point-offset-checkpoint", OFFSETS)
    assert read_offsets(tmp_path / "recovery-point-offset-checkpoint") == OFFSETS


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    write_offsets(tmp_path / "c", {("orders", 0): 17, ("x", 1): 2})
    assert (tmp_path / "c").read_text() == "0\n2\norders 0 17\nx 1 2\n"


def test_no_file_means_no_offsets(tmp_path: Path) -> None:
    assert read_offsets(tmp_path / "c") == {}


def test_nothing_temporary_stays(tmp_path: Path) -> None:
    write_offsets(tmp_path / "c", OFFSETS)
    write_offsets(tmp_path / "c", {})
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0\n",
        "1\n0\n",
        "0\nx\n",
        "0\n2\norders 0 17\n",
        "0\n1\norders 0 17",
        "0\n1\norders 0\n",
        "0\n1\norders zero 17\n",
        "0\n1\norders 0 -5\n",
        "0\n1\n 0 17\n",
    ],
)
def test_damaged_checkpoint_is_told_and_ignored(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "c").write_text(text)
    with caplog.at_level(logging.ERROR):
        assert read_offsets(tmp_path / "c") == {}
    assert [record.message for record in caplog.records] == ["corrupt checkpoint ignored"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(0, 40), junk=st.binary(max_size=10))
def test_cut_or_overwritten_checkpoints_never_raise_anything_else(tmp_path: Path, size: int, junk: bytes) -> None:
    write_lines(tmp_path / "c", ["orders 0 17", "payments 3 99"], sync=False)
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:size] + junk)
    try:
        read_lines(tmp_path / "c")
    except CorruptCheckpoint:
        pass
    read_offsets(tmp_path / "c")


def test_topic_id_comes_back(tmp_path: Path) -> None:
    topic_id = bytes(range(240, 256))
    write_topic_id(tmp_path, topic_id)
    assert read_topic_id(tmp_path) == topic_id
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w"


@pytest.mark.parametrize(
    "text", ["", "version: 0", "version: 0\ntopic_id: !!", "version: 0\ntopic_id: AAAA", "garbage"]
)
def test_damaged_topic_id_is_told_and_ignored(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    assert read_topic_id(tmp_path) == bytes(16)
    assert caplog.messages == ["corrupt partition metadata ignored"]


def test_no_topic_id_is_all_zeros(tmp_path: Path) -> None:
    assert read_topic_id(tmp_path) == bytes(16)
