"""Records as text: the lines that `caudal topic consume` prints and `caudal topic produce` reads."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from core_broker.client.records import Header, IncomingRecord, OutgoingRecord

Formatter = Callable[[IncomingRecord], str]

FORMATS = "text, value, json, hex, or a template such as '{offset} {key} {value}'"
_FIELD = re.compile(r"\{(\w+)\}")


def formatter(style: str) -> Formatter:
    """The function that formats records in a style; ValueError if the style is unknown."""
    match style:
        case "text":
            return lambda record: "".join(line_parts(record))
        case "value":
            return lambda record: display_bytes(record.value)
        case "json":
            return lambda record: json.dumps(as_json(record), ensure_ascii=False)
        case "hex":
            return lambda record: "" if record.value is None else record.value.hex()
        case template if _FIELD.search(template):
            return _template(template)
        case _:
            raise ValueError(f"{style!r} is not a format; say {FORMATS}")


def display_bytes(data: bytes | None) -> str:
    """Bytes as text; what is not UTF-8 is escaped, and no bytes at all are `(null)`."""
    return "(null)" if data is None else data.decode("utf-8", "backslashreplace")


def format_time(timestamp_ms: int) -> str:
    """A time in the user's zone."""
    if timestamp_ms < 0:
        return "-"
    local = datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}"


def as_json(record: IncomingRecord) -> dict[str, object]:
    """A record as JSON; bytes that are not UTF-8 become `{"base64": ...}`, which `produce --json` restores."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": _json_bytes(record.key),
        "value": _json_bytes(record.value),
        "headers": [[name, _json_bytes(value)] for name, value in record.headers],
    }


def from_json(line: str, topic: str) -> OutgoingRecord:
    """A record from a line of JSON, as `as_json` writes it; topic and offset are left aside."""
    found = json.loads(line)
    if not isinstance(found, dict) or not found.keys() & {"key", "value"}:
        raise ValueError('must be an object with "value", and perhaps "key", "headers", "partition", "timestamp"')
    headers = found.get("headers") or []
    pairs: Iterable[Any] = headers.items() if isinstance(headers, Mapping) else headers
    return OutgoingRecord(
        topic=topic,
        key=_bytes(found.get("key")),
        value=_bytes(found.get("value")),
        headers=tuple((str(name), _bytes(value)) for name, value in pairs),
        partition=found.get("partition"),
        timestamp_ms=found.get("timestamp"),
    )


def parse_headers(assignments: Iterable[str]) -> tuple[Header, ...]:
    """Headers from `name=value`; a name alone is a header without value."""
    pairs = (assignment.partition("=") for assignment in assignments)
    return tuple((name, value.encode() if equals else None) for name, equals, value in pairs)


def line_parts(record: IncomingRecord) -> tuple[str, str, str, str, str]:
    """The parts of a record's line: time, partition and offset, key, value, headers."""
    key = "" if record.key is None else f"{display_bytes(record.key)} → "
    headers = ", ".join(f"{name}={display_bytes(value)}" for name, value in record.headers)
    return (
        f"{format_time(record.timestamp_ms)}  ",
        f"{record.partition}:{record.offset}  ",
        key,
        display_bytes(record.value),
        f"  {{{headers}}}" if headers else "",
    )


def _template(template: str) -> Formatter:
    text = template.replace("\\n", "\n").replace("\\t", "\t")

    def fill(record: IncomingRecord) -> str:
        fields: dict[str, Callable[[], str]] = {
            "topic": lambda: record.topic,
            "partition": lambda: str(record.partition),
            "offset": lambda: str(record.offset),
            "timestamp": lambda: str(record.timestamp_ms),
            "time": lambda: format_time(record.timestamp_ms),
            "key": lambda: "" if record.key is None else display_bytes(record.key),
            "value": lambda: display_bytes(record.value),
            "headers": lambda: ",".join(f"{name}={display_bytes(value)}" for name, value in record.headers),
        }
        return _FIELD.sub(lambda match: fields[match[1]]() if match[1] in fields else match[0], text)

    return fill


def _json_bytes(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(value: Any) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case {"base64": str(encoded)}:
            return base64.b64decode(encoded)
        case _:
            return json.dumps(value, ensure_ascii=False).encode()
