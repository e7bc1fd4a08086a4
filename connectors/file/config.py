"""Options of the stream pair and of the directory pair."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Check,
    Config,
    Importance,
    Kind,
    Problem,
    at_least,
    between,
    not_empty,
    one_of,
    option,
    optional,
)
from connect.api.places import Place
from connect.api.places import path as path_of

_MEBIBYTE: Final = 1 << 20
_FILE = Kind[str | None](
    name="string", wire=STRING.wire, read=lambda text: text or None, write=lambda text: text or "", allowed="a path"
)
"""A path; empty means none, as in Kafka's own connector."""


class FileStreamSourceConfig(Config):
    """Options of FileStreamSource."""

    file: str | None = option(_FILE, default=None, importance=Importance.HIGH)
    """The file to read; its path is part of the offsets. Not set: the standard input, without offsets."""
    topic: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The topic of the records, one for each line."""
    batch_size: int = option(INT, default=2000, check=at_least(1), importance=Importance.LOW)
    """Most lines of one poll."""
    line_max_bytes: int = option(
        INT, default=16 * _MEBIBYTE, check=between(1, 1024 * _MEBIBYTE), importance=Importance.LOW
    )
    """The longest line; a longer one stops the task, so that a file without line ends does not fill the memory."""

    @override
    def places(self) -> Iterable[Place]:
        return path_of("file", self.file)


class FileStreamSinkConfig(Config):
    """Options of FileStreamSink."""

    file: str | None = option(_FILE, default=None, importance=Importance.HIGH)
    """The file that lines are appended to; created when it is missing. Not set: the standard output."""

    @override
    def places(self) -> Iterable[Place]:
        return path_of("file", self.file)


FORMATS: Final = ("json", "csv", "parquet", "avro", "text")
PARTITIONERS: Final = ("default", "daily", "hourly", "field")
COLUMN_TYPES: Final = (
    *("string", "int8", "int16", "int32", "int64", "float32", "float64", "boolean"),
    *("bytes", "date", "time", "timestamp"),
)
_CLASS_NAME: Final = re.compile(r"(?:.*\.)?(\w+?)(?:Format|Partitioner)?")


def _short(text: str) -> str:
    """`io.confluent.connect.s3.format.json.JsonFormat` → json, `…DailyPartitioner` → daily."""
    match = _CLASS_NAME.fullmatch(text)
    return (match.group(1) if match else text).lower()


_FORMAT: Final = Check(accepts=lambda text: _short(text) in FORMATS, allowed=f"one of {', '.join(FORMATS)}")
_PARTITIONER: Final = Check(
    accepts=lambda text: _short(text) in PARTITIONERS, allowed=f"one of {', '.join(PARTITIONERS)}"
)
_ONE_CHARACTER: Final = Check(accepts=lambda text: len(text) == 1, allowed="one character")
_PATTERN: Final = Check(
    accepts=lambda text: bool(text) and not text.startswith("/") and ".." not in text.split("/"),
    allowed="a pattern of paths in the folder, without ..",
)
_INTERVAL: Final = Check(accepts=lambda value: value == -1 or value >= 1, allowed="-1 (never) or at least 1")
_COLUMNS: Final = Check(
    accepts=lambda pairs: all(_is_column(pair) for pair in pairs),
    allowed=f"pairs such as id:int64, of the types {', '.join(COLUMN_TYPES)} and decimal(digits after the point)",
)


def _is_column(pair: str) -> bool:
    name, separator, kind = pair.rpartition(":")
    return bool(name and separator) and (kind in COLUMN_TYPES or re.fullmatch(r"decimal\(\d{1,2}\)", kind) is not None)


def _is_time_zone(text: str) -> bool:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True


class _FormatConfig(Config):
    """Options of DirectorySource and DirectorySink."""

    format: str = option(STRING, default="json", check=_FORMAT, aliases=("format.class",), importance=Importance.HIGH)
    """json (a JSON value per line), csv, parquet, avro (container files) or text (a line per record)."""
    csv_separator: str = option(STRING, default="comma", check=one_of("comma", "semicolon", "tab", "pipe"))
    """The separator of values in a line."""
    csv_quote: str = option(STRING, default='"', check=_ONE_CHARACTER, importance=Importance.LOW)
    """The quotes around values that contain separators or line ends."""
    csv_header: bool = option(BOOLEAN, default=True)
    """Whether the first line of a file has the names of columns."""

    @property
    def kind(self) -> str:
        """The short name of the format."""
        return _short(self.format)

    @property
    def separator(self) -> str:
        """The character that separates values."""
        return {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}[self.csv_separator]


class DirectorySourceConfig(_FormatConfig):
    """Options of DirectorySource."""

    path: str = option(STRING, check=not_empty(), aliases=("input.path",), importance=Importance.HIGH)
    """The folder that files arrive in. A file must be complete when it gets its name: write, then rename."""
    pattern: str = option(STRING, default="*", check=_PATTERN, importance=Importance.HIGH)
    """The files to read, such as *.csv or **/*.json. Names that begin with a dot or end with .tmp are never read."""
    topic: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The topic of the records."""
    key_field: str | None = option(optional(STRING), default=None)
    """The field that becomes the key; not set: no key."""
    batch_size: int = option(INT, default=2000, check=between(1, 100_000), aliases=("batch.max.records",))
    """Most records of one poll."""
    files_order: str = option(STRING, default="name", check=one_of("name", "modified"))
    """The order in which files are read: by name, or by time of the last change."""
    finished_policy: str = option(
        STRING, default="keep", check=one_of("keep", "move", "delete"), importance=Importance.HIGH
    )
    """What happens to a file whose records are all safe in Kafka."""
    finished_path: str | None = option(optional(STRING), default=None)
    """The target folder with finished.policy=move, on the same disk. Files that cannot be read go to `failed` there."""
    file_minimum_age_ms: int = option(LONG, default=1_000, check=at_least(0))
    """How long a file must be unchanged before it is read, in case its writer does not rename."""
    poll_interval_ms: int = option(LONG, default=500, check=at_least(1))
    """How often to look for new files."""
    csv_columns: tuple[str, ...] = option(LIST, default=())
    """Names of the columns of files without a header."""
    csv_types: tuple[str, ...] = option(LIST, default=(), check=_COLUMNS)
    """Types of columns, such as id:int64,price:decimal(2); other columns are text."""
    csv_null: str = option(STRING, default="")
    """The text that means null."""
    line_max_bytes: int = option(
        INT, default=16 * _MEBIBYTE, check=between(1, 1024 * _MEBIBYTE), importance=Importance.LOW
    )
    """The longest line of json and text, and the longest value of csv; longer ones cannot be read."""

    @override
    def places(self) -> Iterable[Place]:
        yield from path_of("path", self.path)
        yield from path_of("finished.path", self.finished_path)

    @override
    def problems(self) -> Iterable[Problem]:
        if self.finished_policy == "move" and not self.finished_path:
            yield Problem("finished.path", "Missing finished.path: finished.policy=move requires the target folder")
        if self.kind == "csv" and not self.csv_header and not self.csv_columns:
            yield Problem("csv.columns", "Missing csv.columns: csv.header=false requires the names of the columns")


class DirectorySinkConfig(_FormatConfig):
    """Options of DirectorySink."""

    path: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The folder to write to; created when it is missing. All tasks must see the same folder."""
    topics_dir: str = option(STRING, default="topics", check=not_empty(), importance=Importance.HIGH)
    """The folder below it for finished files."""
    flush_size: int = option(INT, default=100_000, check=at_least(1), importance=Importance.HIGH)
    """Most records of a file."""
    file_max_bytes: int = option(LONG, default=128 * _MEBIBYTE, check=at_least(1))
    """About the largest size of a file, before compression by the format."""
    rotate_interval_ms: int = option(LONG, default=-1, check=_INTERVAL)
    """The longest time between the first and the last record of a file, by their timestamps; -1: no limit."""
    rotate_schedule_interval_ms: int = option(LONG, default=60_000, check=_INTERVAL)
    """How long a file is open at most; -1: until it is full."""
    open_files_max: int = option(INT, default=100, check=at_least(1))
    """Most files that a task writes at a time; beyond that, the least recently changed one is finished early."""
    partitioner: str = option(
        STRING, default="default", check=_PARTITIONER, aliases=("partitioner.class",), importance=Importance.HIGH
    )
    """Folders of files: default (Kafka's partition), daily or hourly (time of the record), field (values of fields)."""
    partition_field_name: tuple[str, ...] = option(LIST, default=())
    """The fields whose values name the folders, with partitioner=field."""
    timestamp_field: str | None = option(optional(STRING), default=None)
    """The field with the time for daily and hourly, a Timestamp or milliseconds; not set: the record's timestamp."""
    timezone: str = option(
        STRING, default="UTC", check=Check(accepts=_is_time_zone, allowed="a time zone such as Europe/Rome")
    )
    """The time zone of days and hours."""
    behavior_on_null_values: str = option(STRING, default="ignore", check=one_of("ignore", "fail"))
    """Whether records without a value are skipped, or are bad records."""
    compression: str = option(
        STRING, default="none", check=one_of("none", "gzip", "snappy", "zstd", "deflate"), importance=Importance.LOW
    )
    """parquet: none, snappy, gzip or zstd; avro: none or deflate; the others are not compressed."""

    @override
    def places(self) -> Iterable[Place]:
        return path_of("path", str(Path(self.path) / self.topics_dir))

    @override
    def problems(self) -> Iterable[Problem]:
        if self.partitioner_kind == "field" and not self.partition_field_name:
            yield Problem("partition.field.name", "Missing partition.field.name: partitioner=field requires fields")
        allowed = {"parquet": ("none", "snappy", "gzip", "zstd"), "avro": ("none", "deflate")}.get(self.kind, ("none",))
        if self.compression not in allowed:
            reason = f"with format={self.kind} it must be one of {', '.join(allowed)}"
            yield Problem.invalid("compression", self.compression, reason)

    @property
    def partitioner_kind(self) -> str:
        """The short name of the partitioner."""
        return _short(self.partitioner)
