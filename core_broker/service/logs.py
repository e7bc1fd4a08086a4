"""Structured logs on stderr: readable lines on a terminal, JSON lines otherwise. Only this module configures them.

Everywhere else: `log = logging.getLogger(__name__)`, a constant message, and data in `extra`.
"""

import json
import logging
import sys
import time
from typing import TextIO

from typing_extensions import override

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_COLOURS = {
    "DEBUG": "\033[2m",
    "INFO": "\033[32m",
    "WARNING": "\033[33m",
    "ERROR": "\033[31m",
    "CRITICAL": "\033[1;31m",
}
_DIM, _RESET = "\033[2m", "\033[0m"


def configure(*, level: str = "INFO", style: str = "auto", stream: TextIO | None = None) -> None:
    """Send all logs to stderr (or `stream`) in one style; may be called again to change that."""
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(formatter_for(style, is_terminal=target.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def formatter_for(style: str, *, is_terminal: bool) -> logging.Formatter:
    """The formatter of a style; `auto` is text on a terminal and JSON elsewhere."""
    if style == "json" or (style == "auto" and not is_terminal):
        return JsonFormatter()
    return TextFormatter(colour=is_terminal)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The `extra` data of a log call."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class JsonFormatter(logging.Formatter):
    """One JSON object per line; data is next to the message, never inside it."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        line: dict[str, object] = {
            "time": _timestamp(record.created, record.msecs, separator="T") + "Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({key: value for key, value in fields_of(record).items() if key not in line})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """`01:02:03.456 INFO  log.segment: segment rolled  topic=orders partition=3`, in colour on a terminal."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        data = " ".join(f"{key}={_format_value(value)}" for key, value in fields_of(record).items())
        moment = _timestamp(record.created, record.msecs, separator=" ")
        name = record.name.removeprefix("core_broker.")
        head = (
            f"{self._paint(moment, _DIM)} {self._paint(f'{record.levelname:<7}', _COLOURS.get(record.levelname, ''))}"
        )
        line = f"{head} {name}: {record.getMessage()}" + (f"  {self._paint(data, _DIM)}" if data else "")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colour else text


def _format_value(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text or not text else text


def _timestamp(created: float, milliseconds: float, *, separator: str) -> str:
    return time.strftime(f"%Y-%m-%d{separator}%H:%M:%S", time.gmtime(created)) + f".{int(milliseconds):03d}"
