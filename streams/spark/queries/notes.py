"""What a task reports to the driver beside its rows: dead letters, counts, the stream time; in a file for each range.

The name of the file says which range it is, so a batch that is repeated replaces it, and the next batch finds it.
"""

from typing import Final
from urllib.parse import quote

import msgspec

from streams.spark.commits.entries import WrittenRecords
from streams.spark.commits.executor_files import open_input, open_output

_SUFFIX: Final = ".json"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """About one range of a partition."""

    stream_time_ms: int | None = None
    """The largest ROWTIME of the query until the end of this range, as far as its task knew; None for no record yet."""
    undecodable: int = 0
    late: int = 0
    skipped: int = 0
    """Records that mean nothing: without a value in a stream, without a key in a table."""
    letters: tuple[WrittenRecords, ...] = ()


_decoder: Final = msgspec.json.Decoder(Note)


def notes_folder(home: str, view: str, topic: str) -> str:
    """The folder with the notes of a topic that is read as a view."""
    return f"{home}/notes/{quote(view, safe='')}/{topic}"


def note_name(partition: int, end: int) -> str:
    """The name of the note of a range that ends before `end`."""
    return f"{partition}-{end}{_SUFFIX}"


def letters_folder(folder: str, partition: int, end: int) -> str:
    """Where the dead letters of a range are staged."""
    return f"{folder}/{partition}-{end}.letters"


def range_of(name: str) -> tuple[int, int] | None:
    """The partition and the end of the range that a file belongs to; None for any other file."""
    partition, _, rest = name.partition("-")
    end = rest.partition(".")[0]
    return (int(partition), int(end)) if partition.isdigit() and end.isdigit() else None


def write_note(folder: str, partition: int, end: int, note: Note) -> None:
    """Write the note of a range."""
    with open_output(f"{folder}/{note_name(partition, end)}") as stream:
        stream.write(msgspec.json.encode(note))


def read_note(folder: str, partition: int, end: int) -> Note | None:
    """The note of a range; None if its task had nothing to tell."""
    try:
        with open_input(f"{folder}/{note_name(partition, end)}") as stream:
            return _decoder.decode(stream.read())
    except FileNotFoundError:
        return None
