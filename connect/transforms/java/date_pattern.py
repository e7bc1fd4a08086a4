"""Parses patterns of Java's SimpleDateFormat."""

from typing import Final, NamedTuple

LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONGEST_ISO_ZONE: Final = 3


class Part(NamedTuple):
    """A run of one letter, or literal text (then `letter` is empty)."""

    letter: str
    width: int
    text: str = ""


def parse_pattern(pattern: str) -> tuple[Part, ...]:
    """The parts of a pattern; ValueError when it is invalid."""
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter.isascii() and letter.isalpha():
            width = len(pattern[at:]) - len(pattern[at:].lstrip(letter))
            if letter not in LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            if letter == "X" and width > _LONGEST_ISO_ZONE:
                raise ValueError(f"invalid ISO 8601 format: length={width}")
            parts.append(Part(letter, width))
            at += width
            continue
        text, at = _parse_quoted(pattern, at) if letter == "'" else (letter, at + 1)
        if parts and not parts[-1].letter:
            text = parts.pop().text + text
        parts.append(Part("", 0, text))
    return tuple(part for part in parts if part.letter or part.text)


def _parse_quoted(pattern: str, start: int) -> tuple[str, int]:
    """Quoted text, and where it ends; two quotes stand for one, within other quotes and by themselves."""
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
