"""The comparison of replicas finds every byte that differs below the high watermark."""

import struct
from pathlib import Path

from crc32c import crc32c

from tests.chaos.replicas import METADATA, compare_replicas

NODES = (1, 2, 3)


def batch(base_offset: int, payload: bytes, *, epoch: int = 0, count: int = 1, sequence: int = -1) -> bytes:
    producer = struct.pack(">qhii", 7 if sequence >= 0 else -1, 0, sequence, count)
    body = struct.pack(">hiqq", 0, count - 1, 0, 0) + producer + payload
    return struct.pack(">qiibI", base_offset, 9 + len(body), epoch, 2, crc32c(body)) + body


def replicas(directory: Path, contents: dict[int, bytes], name: str = "t-0") -> dict[int, Path]:
    for node, content in contents.items():
        folder = directory / f"broker-{node}" / "data" / name
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(content)
    return {node: directory / f"broker-{node}" / "data" for node in contents}


def differences(directory: Path, contents: dict[int, bytes], high_watermark: int) -> list[str]:
    return compare_replicas(
        replicas(directory, contents), {("t", 0): high_watermark}, {("t", 0): list(contents)}
    ).differences


def test_equal_replicas(tmp_path: Path) -> None:
    log = batch(0, b"a", count=2) + batch(2, b"b")
    assert differences(tmp_path, dict.fromkeys(NODES, log), 3) == []


def test_records_above_the_high_watermark_may_differ(tmp_path: Path) -> None:
    log = batch(0, b"a")
    assert differences(tmp_path, {1: log + batch(1, b"b"), 2: log + batch(1, b"c"), 3: log}, 1) == []


def test_a_replica_with_other_bytes(tmp_path: Path) -> None:
    contents = {1: batch(0, b"a"), 2: batch(0, b"b"), 3: batch(0, b"a")}
    assert differences(tmp_path, contents, 1) == ["t-0: nodes 1 and 2 differ at offset 0"]


def test_a_replica_with_another_leader_epoch(tmp_path: Path) -> None:
    contents = {1: batch(0, b"a"), 2: batch(0, b"a"), 3: batch(0, b"a", epoch=1)}
    assert differences(tmp_path, contents, 1) == ["t-0: nodes 1 and 3 differ at offset 0"]


def test_a_replica_that_ends_below_the_high_watermark(tmp_path: Path) -> None:
    log = batch(0, b"a")
    found = differences(tmp_path, {1: log + batch(1, b"b"), 2: log, 3: log + batch(1, b"b")}, 2)
    assert found == ["t-0: node 2 ends at 1, below the high watermark 2"]


def test_a_replica_that_is_missing(tmp_path: Path) -> None:
    directories = replicas(tmp_path, {1: batch(0, b"a"), 2: batch(0, b"a")})
    found = compare_replicas({**directories, 3: tmp_path / "broker-3"}, {("t", 0): 1}, {("t", 0): [1, 2, 3]})
    assert found.differences == ["t-0: node 3 ends at 0, below the high watermark 1"]


def test_a_node_that_is_no_replica_has_nothing(tmp_path: Path) -> None:
    directories = replicas(tmp_path, {1: batch(0, b"a"), 2: batch(0, b"a")})
    found = compare_replicas({**directories, 3: tmp_path / "broker-3"}, {("t", 0): 1}, {("t", 0): [1, 2]})
    assert found.differences == []


def test_a_replica_with_a_gap(tmp_path: Path) -> None:
    log = batch(0, b"a") + batch(2, b"c")
    assert len(differences(tmp_path, dict.fromkeys(NODES, log), 3)) == 3


def test_a_batch_with_a_wrong_checksum(tmp_path: Path) -> None:
    log = batch(0, b"a")
    found = differences(tmp_path, {1: log[:-1] + b"x", 2: log, 3: log}, 1)
    assert any("no sound batch at byte 0" in difference for difference in found)


def test_metadata_logs_that_disagree_about_an_offset(tmp_path: Path) -> None:
    log = batch(0, b"a") + batch(1, b"b")
    directories = replicas(tmp_path, {1: log, 2: log, 3: batch(0, b"c") + batch(1, b"b")}, METADATA)
    assert compare_replicas(directories, {}, {}).differences == [f"{METADATA}: offset 0 differs"]


def test_offsets_that_a_coordinator_wrote_for_a_producer_have_no_sequences(tmp_path: Path) -> None:
    log = batch(0, b"a", sequence=0) + batch(1, b"b", sequence=0)
    directories = replicas(tmp_path, dict.fromkeys(NODES, log), "__t-0")
    assert compare_replicas(directories, {("__t", 0): 2}, {("__t", 0): NODES}).differences == []


def test_a_producer_whose_sequence_is_there_twice(tmp_path: Path) -> None:
    log = batch(0, b"a", sequence=0) + batch(1, b"b", sequence=1) + batch(2, b"b", sequence=1)
    found = differences(tmp_path, dict.fromkeys(NODES, log), 3)
    assert found == ["t-0 offset 2: sequence 1 of 7/0, expected 2"]
