"""Dead letters: how users name them, and what is known about each. Their content comes from outside."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from deploy.views.records import format_time

if TYPE_CHECKING:
    from deploy.clients.connect import ConnectClient

Letter = Mapping[str, Any]
"""A dead letter as the worker answers it."""

_NAME: Final = re.compile(r"(\d{1,10})[-:](\d{1,19})")


def parse_letter(text: str) -> tuple[int, int]:
    """Read `PARTITION-OFFSET`, or with a colon as records are named elsewhere; raises ValueError."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} must look like PARTITION-OFFSET, e.g. 0-17")
    return int(match[1]), int(match[2])


def letter_name(letter: Letter) -> str:
    """Its partition and offset, as the commands take them."""
    return f"{letter['partition']}-{letter['offset']}"


def letter_time(letter: Letter) -> str:
    """When it was written, in the user's zone."""
    return "–" if letter["timestamp"] is None else format_time(letter["timestamp"])


def describe_letter(letter: Letter) -> list[tuple[str, object]]:
    """All that is known about a letter, except its stack trace."""
    error = letter["error"]
    origin = f"{error['topic']} partition {error['partition']} offset {error['offset']}" if error["topic"] else None
    encoding = "" if letter["encoding"] == "utf-8" else f" ({letter['encoding']})"
    facts = [
        ("time", letter_time(letter)),
        ("read from", origin),
        ("failed in", " ".join(str(part) for part in (error["stage"], error["class"]) if part) or None),
        ("with", error["exception"]),
        ("message", error["message"]),
        ("task", None if error["task"] is None else f"{error['connector']}-{error['task']}"),
        ("redriven", "yes" if letter["redriven"] else "no"),
        ("came back", f"{letter['redrive_count']} times" if letter["redrive_count"] else None),
        (f"key{encoding}", "null" if letter["key"] is None else letter["key"]),
        (f"value{encoding}", "null" if letter["value"] is None else letter["value"]),
        *((f"header {name}", "null" if value is None else value) for name, value in letter["headers"]),
    ]
    return [(name, value) for name, value in facts if value is not None]


def find_letters(
    client: "ConnectClient", connector: str, wanted: list[tuple[int, int]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The letters at these partitions and offsets, and the names of those that do not exist."""
    found, missing = [], []
    for partition, offset in wanted:
        page = client.dead_letters(connector, {"partition": partition, "offset": offset, "limit": 1})
        letter = next((item for item in page["records"] if item["offset"] == offset), None)
        if letter is None:
            missing.append(f"{partition}-{offset}")
        else:
            found.append(letter)
    return found, missing
