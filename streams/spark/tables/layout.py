"""Paths of a table's files: Hive's partition folders, and file names with the writer and its batch."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from streams.spark.files import FileInfo, Files, join_path

HIDDEN_FOLDER: Final = "_caudal"
"""Below a table: journals and files in preparation; readers skip names that begin with _ or a dot."""
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED: Final = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_UNESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_WRITTEN: Final = re.compile(r"part-(?P<writer>.+)-(?P<batch>\d+)-(?P<index>\d+)\.parquet")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.]")


class WriterBatch(NamedTuple):
    """The writer and batch in the name of an appended file."""

    writer: str
    batch: int


def file_name(writer: str, batch: int, index: int) -> str:
    """Name of a file of a batch; the same if the batch is repeated."""
    return f"part-{safe_writer(writer)}-{batch}-{index}.parquet"


def safe_writer(writer: str) -> str:
    """A writer's name for its file names; no two writers share one."""
    safe = _UNSAFE.sub("_", writer)
    if safe == writer:
        return safe
    return f"{safe}.{hashlib.blake2s(writer.encode(), digest_size=4).hexdigest()}"


def parse_file_name(name: str) -> WriterBatch | None:
    """The writer of a file; None if upkeep or another program wrote it."""
    match = _WRITTEN.fullmatch(name)
    return WriterBatch(match["writer"], int(match["batch"])) if match else None


def partition_path(columns: Sequence[str], partition: Mapping[str, str | None]) -> str:
    """Folder of a partition, relative to the table's; empty without partition columns."""
    return "/".join(f"{_escaped(column)}={_escaped(partition.get(column) or NULL_PARTITION)}" for column in columns)


def parse_partition(path: str, columns: Sequence[str]) -> dict[str, str | None]:
    """The partition values in the path of a folder or of a file in it."""
    values: dict[str, str | None] = {}
    for part in path.split("/"):
        name, equals, value = part.partition("=")
        column = _unescaped(name)
        if equals and column in columns:
            values[column] = None if value == NULL_PARTITION else _unescaped(value)
    return {column: values.get(column) for column in columns}


def data_files(files: Files, location: str) -> list[FileInfo]:
    """The table's files that readers see, in all partitions."""
    found: list[FileInfo] = []
    for entry in files.list(location):
        if entry.name.startswith(("_", ".")):
            continue
        found.extend(data_files(files, entry.path) if entry.is_dir else [entry])
    return found


def latest_batches(found: Sequence[FileInfo]) -> dict[str, int]:
    """The last batch of every writer, the only one that it may repeat."""
    latest: dict[str, int] = {}
    for entry in found:
        known = parse_file_name(entry.name)
        if known is not None:
            latest[known.writer] = max(known.batch, latest.get(known.writer, 0))
    return latest


def may_be_repeated(name: str, latest: Mapping[str, int]) -> bool:
    """Whether the writer of a file may repeat its batch after a crash, and look for this file."""
    known = parse_file_name(name)
    return known is not None and latest.get(known.writer) == known.batch


def hidden_path(location: str, *names: str) -> str:
    """A path in the folder that readers do not see."""
    return join_path(location, HIDDEN_FOLDER, *names)


def _escaped(value: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def _unescaped(value: str) -> str:
    return _UNESCAPED.sub(lambda match: chr(int(match[1], 16)), value)
