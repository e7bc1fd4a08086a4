"""Patterns of Java's SimpleDateFormat, taken apart."""

from collections.abc import Iterator
from typing import Final, NamedTuple

LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONGEST_ISO_ZONE: Final = 3


class Part(NamedTuple):
    """A run of one letter, or text that stands for itself (then `letter` is empty)."""

    letter: str
    width: int
    text: str = ""


def parts_of(pattern: str) -> tuple[Part, ...]:
    """The parts of a pattern; ValueError when it is none."""
    return tuple(_merged(_scanned(pattern)))


def _scanned(pattern: str) -> Iterator[Part]:
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            text, at = _quoted(pattern, at)
            yield Part("", 0, text)
        elif letter.isascii() and letter.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            yield _field(letter, end - at)
            at = end
        else:
            yield Part("", 0, letter)
            at += 1


def _field(letter: str, width: int) -> Part:
    if letter not in LETTERS:
        raise ValueError(f"Illegal pattern character '{letter}'")
    if letter == "X" and width > _LONGEST_ISO_ZONE:
        raise ValueError(f"invalid ISO 8601 format: length={width}")
    return Part(letter, width)


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """What is between quotes; two quotes are one that is meant, within others and by themselves."""
    if pattern.startswith("''", start):
        return "'", start + 2
    text, at = "", start + 1
    while at < len(pattern):
        if pattern.startswith("''", at):
            text, at = f"{text}'", at + 2
        elif pattern[at] == "'":
            return text, at + 1
        else:
            text, at = text + pattern[at], at + 1
    raise ValueError("Unterminated quote")


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    text = ""
    for part in parts:
        if part.letter:
            if text:
                yield Part("", 0, text)
            text = ""
            yield part
        else:
            text += part.text
    if text:
        yield Part("", 0, text)
