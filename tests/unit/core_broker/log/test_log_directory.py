"""A directory of log.dirs: its lock, its identity, its names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core_broker.errors import BrokerError
from core_broker.log.log_directory import (
    CLEAN_SHUTDOWN_FILE,
    META_FILE,
    LogDirectory,
    TopicPartitionName,
    is_marked,
    marked_name,
    new_id,
    parse_partition_name,
)


def test_second_broker_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    first = LogDirectory(tmp_path)
    with pytest.raises(BrokerError, match=rf"in use by another broker \(pid {os.getpid()}\)"):
        LogDirectory(tmp_path)
    first.close()
    LogDirectory(tmp_path).close()


@pytest.mark.processes
def test_directory_locked_as_java_does_it_is_in_use(tmp_path: Path) -> None:
    lock = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    script = f"{lock}; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BrokerError, match="in use by another broker"):
            LogDirectory(tmp_path)
        holder.communicate(b"")
    LogDirectory(tmp_path).close()


def test_identity_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / META_FILE).write_text("version=2\ncluster.id=xyz\nnode.id=1\ndirectory.id=dir\n")
    directory = LogDirectory(tmp_path)
    with pytest.raises(BrokerError, match="has version 2"):
        directory.identify(node_id=1, cluster_id="xyz")
    directory.close()


def test_new_directory_is_claimed_and_known_again(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path / "new" / "one")
    meta = directory.identify(node_id=3, cluster_id="abc")
    directory.close()
    text = (tmp_path / "new" / "one" / META_FILE).read_text()
    assert text == f"cluster.id=abc\ndirectory.id={meta.directory_id}\nnode.id=3\nversion=1\n"
    again = LogDirectory(tmp_path / "new" / "one")
    assert again.identify(node_id=3, cluster_id="abc") == meta
    again.close()


def test_cluster_id_is_learnt_from_the_directory(tmp_path: Path) -> None:
    (tmp_path / META_FILE).write_text("# Kafka wrote this\nversion=1\ncluster.id=xyz\nnode.id=1\ndirectory.id=dir\n")
    directory = LogDirectory(tmp_path)
    meta = directory.identify(node_id=1, cluster_id=None)
    assert (meta.cluster_id, meta.directory_id) == ("xyz", "dir")
    directory.close()


@pytest.mark.parametrize(
    "node_id, cluster_id, message",
    [(2, "abc", r"belongs to node.id=1, but this broker has node.id=2"), (1, "other", r"belongs to cluster.id=abc")],
)
def test_directory_of_another_broker_is_refused(tmp_path: Path, node_id: int, cluster_id: str, message: str) -> None:
    directory = LogDirectory(tmp_path)
    directory.identify(node_id=1, cluster_id="abc")
    with pytest.raises(BrokerError, match=message):
        directory.identify(node_id=node_id, cluster_id=cluster_id)
    directory.close()


def test_unreadable_identity_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / META_FILE).write_bytes(b"\xff\xfe\x00")
    directory = LogDirectory(tmp_path)
    with pytest.raises(BrokerError, match=META_FILE):
        directory.identify(node_id=1, cluster_id=None)
    directory.close()


def test_clean_marker_is_found_once(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    assert not directory.take_clean_marker()
    directory.leave_clean_marker(broker_epoch=9)
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).read_text() == '{"version": 0, "brokerEpoch": 9}'
    assert directory.take_clean_marker()
    assert not directory.take_clean_marker()
    directory.close()


@pytest.mark.parametrize(
    "marker, epoch",
    [
        ('{"version":0,"brokerEpoch":9}', 9),
        ('{"version": 0, "brokerEpoch": -1}', -1),
        ('{"version": 1, "brokerEpoch": 9}', -1),
        ('{"version": 0, "brokerEpoch": "9"}', -1),
        ('{"version": 0}', -1),
        ("[]", -1),
        ("{", -1),
        ("\0\0\0", -1),
        ("", -1),
    ],
)
def test_broker_epoch_of_the_last_run_is_in_the_clean_marker(tmp_path: Path, marker: str, epoch: int) -> None:
    (tmp_path / CLEAN_SHUTDOWN_FILE).write_text(marker)
    directory = LogDirectory(tmp_path)
    assert directory.take_clean_marker()
    assert directory.previous_broker_epoch == epoch
    directory.close()


def test_directory_of_a_node_without_a_cluster_keeps_its_id_when_the_node_joins_one(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    before = directory.identify(node_id=3, cluster_id=None)
    assert (tmp_path / META_FILE).read_text() == f"directory.id={before.directory_id}\nnode.id=3\nversion=1\n"
    after = directory.identify(node_id=3, cluster_id="abc")
    assert (after.cluster_id, after.directory_id) == ("abc", before.directory_id)
    directory.close()


@pytest.mark.parametrize(
    "name, expected",
    [
        ("orders-0", TopicPartitionName("orders", 0)),
        ("a-b-c-12", TopicPartitionName("a-b-c", 12)),
        ("__consumer_offsets-49", TopicPartitionName("__consumer_offsets", 49)),
        ("orders", None),
        ("orders-", None),
        ("-1", None),
        ("orders-01", None),
        ("or ders-1", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("orders-0.0123456789abcdef0123456789abcdef-stray", None),
    ],
)
def test_partition_directories_are_told_by_their_names(name: str, expected: TopicPartitionName | None) -> None:
    assert parse_partition_name(name) == expected


def test_longest_topic_name_can_be_marked_for_deletion() -> None:
    name = marked_name("t" * 249 + "-12", "-delete")
    assert len(name) <= 255
    assert is_marked(name)
    assert "-12." in name


def test_partition_directories_are_listed_without_files_and_marked_ones(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-1").touch()
    doomed = tmp_path / marked_name("orders-2", "-delete")
    doomed.mkdir()
    assert directory.partition_directories() == {TopicPartitionName("orders", 0): tmp_path / "orders-0"}
    assert directory.deleted_directories() == [doomed]
    directory.close()


def test_new_ids_look_like_those_of_kafka() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)
