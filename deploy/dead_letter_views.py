"""Dead letters on a terminal. Everything in them comes from outside, and is shown without steering the terminal."""

from collections.abc import Mapping
from typing import Any

from deploy.traces import printable

Letter = Mapping[str, Any]


def print_list(page: Letter) -> None:
    """One letter to a line."""
    from rich.text import Text

    from deploy.output import table

    rows = [
        (
            place_of(letter),
            _time(letter),
            letter["error"]["stage"] or "–",
            (letter["error"]["exception"] or "–").rpartition(".")[2],
            printable((letter["error"]["message"] or "–").partition("\n")[0]),
            Text("yes", style="green") if letter["redriven"] else Text("no", style="dim"),
        )
        for letter in page["records"]
    ]
    table(f"Dead letters in {page['topic']}", ["Place", "Time", "Stage", "Exception", "Message", "Redriven"], rows)


def print_letter(letter: Letter) -> None:
    """A letter whole."""
    from rich.markup import escape

    from deploy.output import facts, out

    facts(f"Dead letter {place_of(letter)}", [(name, printable(str(value))) for name, value in _facts(letter)])
    trace = letter["error"]["stacktrace"]
    if trace:
        out.print(f"\n[dim]{escape(printable(trace.rstrip()))}[/]")


def place_of(letter: Letter) -> str:
    """Where it lies in its topic, as the commands take it."""
    return f"{letter['partition']}-{letter['offset']}"


def _facts(letter: Letter) -> list[tuple[str, object]]:
    error = letter["error"]
    origin = f"{error['topic']} partition {error['partition']} offset {error['offset']}" if error["topic"] else None
    encoding = "" if letter["encoding"] == "utf-8" else f" ({letter['encoding']})"
    told = [
        ("time", _time(letter)),
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
    return [(name, value) for name, value in told if value is not None]


def _time(letter: Letter) -> str:
    from deploy.record_text import moment

    return "–" if letter["timestamp"] is None else moment(letter["timestamp"])
