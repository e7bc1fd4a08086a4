"""Reads dead letters: where each comes from, why it failed, whether it was redriven."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from connect.runtime.failures.failed_record import PREFIX
from connect.runtime.failures.redrive_topic import redrive_count
from connect.runtime.redrive.pages import LetterError, LetterView, Selection
from core_broker.client.admin import Admin
from core_broker.client.consumer import TopicPartition
from core_broker.client.reader import Reader
from core_broker.client.records import Header, IncomingRecord
from core_broker.client.settings import ClientSettings

_BATCH: Final = 500
_WAIT_MS: Final = 200
_SHOWN_BYTES_MAX: Final = 65_536


def is_selected(selection: Selection, raw: IncomingRecord, error: LetterError) -> bool:
    """Whether a selection contains a dead letter."""
    places = {(place.partition, place.offset) for place in selection.offsets}
    if places and (raw.partition, raw.offset) not in places:
        return False
    if selection.partition not in (None, raw.partition) or selection.stage not in (None, error.stage):
        return False
    names = (error.exception, (error.exception or "").rpartition(".")[2])
    if selection.exception is not None and selection.exception not in names:
        return False
    low = selection.from_offset if selection.from_offset is not None else 0
    return low <= raw.offset and (selection.to_offset is None or raw.offset <= selection.to_offset)


def error_of(headers: Sequence[Header]) -> LetterError:
    """The error in a dead letter's headers; the last one if there are several."""
    context: dict[str, str | None] = {}
    for name, value in headers:
        if name.startswith(PREFIX):
            context[name.removeprefix(PREFIX)] = None if value is None else value.decode(errors="replace")
    return LetterError(
        stage=context.get("stage"),
        class_name=context.get("class.name"),
        exception=context.get("exception.class.name"),
        message=context.get("exception.message"),
        stacktrace=context.get("exception.stacktrace"),
        topic=context.get("topic"),
        partition=_number(context.get("partition")),
        offset=_number(context.get("offset")),
        connector=context.get("connector.name"),
        task=_number(context.get("task.id")),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def read_letters(
    settings: ClientSettings, topic: str, *, starts: Mapping[int, int] | None = None
) -> Iterator[IncomingRecord]:
    """All current dead letters by partition and offset, from the offsets in `starts`."""
    admin = Admin(settings)
    count = len(admin.topics([topic])[0].partitions)
    places: list[TopicPartition] = [(topic, number) for number in range(count)]
    firsts, ends = admin.offsets(places, "earliest"), admin.committed_ends(places)
    reader = Reader(settings, isolation_level="read_committed")
    try:
        for place in places:
            first = max(firsts[place], (starts or {}).get(place[1], 0))
            if first < ends[place]:
                end = ends[place]
                reader.start({place: first})
                while reader.positions[place] < end:
                    yield from (record for record in reader.read(_BATCH, timeout_ms=_WAIT_MS) if record.offset < end)
    finally:
        reader.close()


def to_view(raw: IncomingRecord, *, redriven: bool) -> LetterView:
    """A dead letter as the REST API shows it."""
    encoding: Literal["utf-8", "base64"] = "utf-8"
    key, value = raw.key, raw.value
    try:
        texts = [None if data is None else data[:_SHOWN_BYTES_MAX].decode() for data in (key, value)]
    except UnicodeDecodeError:
        encoding = "base64"
        texts = [None if data is None else base64.b64encode(data[:_SHOWN_BYTES_MAX]).decode() for data in (key, value)]
    own = [(name, data) for name, data in raw.headers if not name.startswith(PREFIX)]
    return LetterView(
        partition=raw.partition,
        offset=raw.offset,
        timestamp=raw.timestamp_ms if raw.timestamp_type else None,
        key=texts[0],
        value=texts[1],
        encoding=encoding,
        headers=[(name, None if data is None else data.decode(errors="backslashreplace")) for name, data in own],
        error=error_of(raw.headers),
        redriven=redriven,
        redrive_count=redrive_count(raw.headers),
    )
