"""Where the files of a table are: folders of partitions as Hive names them, and names that tell who wrote what."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from streams.spark.files import FileInfo, Files, joined

HIDDEN_FOLDER: Final = "_caudal"
"""Below a table: journals and files that are being made; readers skip names that begin with _ or a dot."""
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED: Final = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_UNESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_WRITTEN: Final = re.compile(r"part-(?P<writer>.+)-(?P<batch>\d+)-(?P<index>\d+)\.parquet")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.]")


class Written(NamedTuple):
    """What the name of a file that was appended says."""

    writer: str
    batch: int


def file_name(writer: str, batch: int, index: int) -> str:
    """Name of a file of a batch; the same whenever the batch is written again."""
    return f"part-{safe_writer(writer)}-{batch}-{index}.parquet"


def safe_writer(writer: str) -> str:
    """A writer's name as it stands in the names of its files; no two writers have the same."""
    safe = _UNSAFE.sub("_", writer)
    if safe == writer:
        return safe
    return f"{safe}.{hashlib.blake2s(writer.encode(), digest_size=4).hexdigest()}"


def written(name: str) -> Written | None:
    """Who wrote a file; None when it was no writer, but upkeep or somebody else."""
    match = _WRITTEN.fullmatch(name)
    return Written(match["writer"], int(match["batch"])) if match else None


def partition_path(columns: Sequence[str], partition: Mapping[str, str | None]) -> str:
    """Folder of a partition below the table's, empty without partition columns."""
    return "/".join(f"{_escaped(column)}={_escaped(partition.get(column) or NULL_PARTITION)}" for column in columns)


def partition_of(path: str, columns: Sequence[str]) -> dict[str, str | None]:
    """The values that a folder's path, or a file's in it, stands for."""
    values: dict[str, str | None] = {}
    for part in path.split("/"):
        name, equals, value = part.partition("=")
        column = _unescaped(name)
        if equals and column in columns:
            values[column] = None if value == NULL_PARTITION else _unescaped(value)
    return {column: values.get(column) for column in columns}


def data_files(files: Files, location: str) -> list[FileInfo]:
    """The table's files as its readers see them, in all its partitions."""
    found: list[FileInfo] = []
    for entry in files.list(location):
        if entry.name.startswith(("_", ".")):
            continue
        found.extend(data_files(files, entry.path) if entry.is_dir else [entry])
    return found


def latest_batches(found: Sequence[FileInfo]) -> dict[str, int]:
    """The last batch of every writer: only that one may ever be written again."""
    latest: dict[str, int] = {}
    for entry in found:
        known = written(entry.name)
        if known is not None:
            latest[known.writer] = max(known.batch, latest.get(known.writer, 0))
    return latest


def may_be_repeated(name: str, latest: Mapping[str, int]) -> bool:
    """Could the writer of a file come again with the same batch after a crash, and look for this file?"""
    known = written(name)
    return known is not None and latest.get(known.writer) == known.batch


def hidden(location: str, *names: str) -> str:
    """A path in the folder that readers do not see."""
    return joined(location, HIDDEN_FOLDER, *names)


def _escaped(value: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def _unescaped(value: str) -> str:
    return _UNESCAPED.sub(lambda match: chr(int(match[1], 16)), value)
