"""Folders of partitions and names of files."""

import pytest

from streams.spark.files import FileInfo
from streams.spark.tables.layout import (
    file_name,
    latest_batches,
    may_be_repeated,
    parse_file_name,
    parse_partition,
    partition_path,
    safe_writer,
)

VALUES = ["2024-01-01", "a b", "a/b", "50%", "x=y", "it's", 'say "so"', "{[^]}", "ünïcode", "tab\there", "#?*:\\"]


@pytest.mark.parametrize("value", VALUES)
def test_a_partition_is_found_again_from_its_folder(value: str) -> None:
    partition = {"day": value, "k": None}
    folder = partition_path(["day", "k"], partition)
    assert folder.count("/") == 1
    assert parse_partition(f"/{folder}/part-w-0-0.parquet", ["day", "k"]) == partition


def test_folders_are_escaped_as_hive_does() -> None:
    assert partition_path(["k"], {"k": "a b/c:d"}) == "k=a b%2Fc%3Ad"
    assert partition_path(["k"], {"k": ""}) == "k=__HIVE_DEFAULT_PARTITION__"


def test_a_files_name_says_who_wrote_it() -> None:
    name = file_name("query_1.e", 17, 3)
    assert name == "part-query_1.e-17-3.parquet"
    assert parse_file_name(name) == ("query_1.e", 17)
    assert parse_file_name("compacted-0af-0.parquet") is None


def test_writers_whose_names_differ_in_odd_characters_only_do_not_overwrite_each_other() -> None:
    writers = ["orders-sink", "orders_sink", "orders sink", "orders/sink"]
    names = [file_name(writer, 1, 0) for writer in writers]
    assert len(set(names)) == len(writers)
    assert [parse_file_name(name) for name in names] == [(safe_writer(writer), 1) for writer in writers]
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-") for name in names)


def test_only_the_last_batch_of_each_writer_may_come_again() -> None:
    names = [file_name("a", 9, 0), file_name("a", 10, 0), file_name("b", 2, 1), "other.parquet"]
    latest = latest_batches([FileInfo(name, 1, 1, is_dir=False) for name in names])
    assert [may_be_repeated(name, latest) for name in names] == [False, True, True, False]
