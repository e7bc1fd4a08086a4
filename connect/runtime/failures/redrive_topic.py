"""The topic through which dead letters return to their sink, and the headers of its records."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from core_broker.client.records import Header, IncomingRecord

PREFIX: Final = "__connect.redrive."
_COUNT, _TOPIC, _PARTITION, _OFFSET = (PREFIX + name for name in ("count", "topic", "partition", "offset"))

_NAME_LENGTH_MAX: Final = 200
_NAME: Final = re.compile(rf"[a-zA-Z0-9._-]{{1,{_NAME_LENGTH_MAX}}}")
_INVALID: Final = re.compile(r"[^a-zA-Z0-9._-]")


def redrive_topic(connector: str) -> str:
    """The redrive topic of a connector; the sink reads it along with its own topics.

    Names of connectors may contain characters that topics may not: these are replaced, and a digest makes it unique.
    """
    if _NAME.fullmatch(connector):
        return f"connect-redrive-{connector}"
    digest = hashlib.sha256(connector.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"connect-redrive-{_INVALID.sub('_', connector)[:_NAME_LENGTH_MAX]}-{digest}"


def redriven_headers(
    headers: Sequence[Header], *, topic: str, partition: int | None, offset: int | None
) -> list[Header]:
    """The headers of a redriven record, with its first position and how often it was redriven."""
    added: dict[str, str | None] = {
        _COUNT: str(redrive_count(headers) + 1),
        _TOPIC: topic,
        _PARTITION: None if partition is None else str(partition),
        _OFFSET: None if offset is None else str(offset),
    }
    own = [header for header in headers if not header[0].startswith(PREFIX)]
    return own + [(name, text.encode()) for name, text in added.items() if text is not None]


def redrive_count(headers: Sequence[Header]) -> int:
    """How often a record was redriven."""
    text = _last(headers, _COUNT)
    return int(text) if text is not None and text.isdigit() else 0


def first_topic(raw: IncomingRecord) -> str:
    """The topic that a redriven record was first read from."""
    return _last(raw.headers, _TOPIC) or raw.topic


def first_place(raw: IncomingRecord) -> tuple[str, int | None, int | None]:
    """The position where a record was first read, also if it was redriven."""
    topic = _last(raw.headers, _TOPIC)
    if topic is None:
        return raw.topic, raw.partition, raw.offset
    return topic, _number(_last(raw.headers, _PARTITION)), _number(_last(raw.headers, _OFFSET))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _last(headers: Sequence[Header], name: str) -> str | None:
    for key, value in reversed(headers):
        if key == name and value is not None:
            return value.decode(errors="replace")
    return None
