"""Options of the FileStream pair."""

from connect.api.config import INT, STRING, Config, Importance, Kind, at_least, between, not_empty, option

_MEBIBYTE = 1 << 20
_FILE = Kind[str | None](
    name="string", wire=STRING.wire, read=lambda text: text or None, write=lambda text: text or "", allowed="a path"
)
"""A path; an empty one is none, as Kafka's own connector has it."""


class FileStreamSourceConfig(Config):
    """Options of FileStreamSource."""

    file: str | None = option(_FILE, default=None, importance=Importance.HIGH)
    """The file to read; its path is part of the offsets. Not set: the standard input, without offsets."""
    topic: str = option(STRING, check=not_empty(), importance=Importance.HIGH)
    """The topic that each line becomes a record of."""
    batch_size: int = option(INT, default=2000, check=at_least(1), importance=Importance.LOW)
    """Most lines that are read at one time."""
    line_max_bytes: int = option(
        INT, default=16 * _MEBIBYTE, check=between(1, 1024 * _MEBIBYTE), importance=Importance.LOW
    )
    """Longest line; a longer one stops the task, so that a file without lines does not fill the memory."""


class FileStreamSinkConfig(Config):
    """Options of FileStreamSink."""

    file: str | None = option(_FILE, default=None, importance=Importance.HIGH)
    """The file that lines are added to; created when it is missing. Not set: the standard output."""
