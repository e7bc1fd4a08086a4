"""YAML as people write it: block style, in the order that was given, with comments where there is something to say."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

Value: TypeAlias = "str | int | bool | Sequence[Value] | Mapping[str, Value] | None"

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@%+=~*()<>?,;^ -]*[A-Za-z0-9_./@%+=~*()-]|[A-Za-z]")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_STEP: Final = "  "
_WORD: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_SHORT: Final = 90


class Comment(str):
    """A key of a mapping that is written as a comment; its value is None."""

    __slots__ = ()


def yaml_text(value: Mapping[str, Value], *, heading: str = "") -> str:
    """A document; the heading is written in front of it, as comments."""
    head = "".join(f"# {line}".rstrip() + "\n" for line in heading.splitlines())
    return head + "".join(f"{line}\n" for line in _mapping(value, ""))


def _mapping(value: Mapping[str, Value], indent: str) -> Iterator[str]:
    for key, member in value.items():
        if isinstance(key, Comment):
            yield from (f"{indent}# {line}".rstrip() for line in key.splitlines())
        else:
            yield from _entry(f"{indent}{scalar(key)}:", member, indent)


def _sequence(value: Sequence[Value], indent: str) -> Iterator[str]:
    for member in value:
        if _is_block(member):
            lines = _block(member, indent + _STEP)
            yield f"{indent}- {next(lines).lstrip()}"
            yield from lines
        else:
            yield f"{indent}- {_flat(member)}"


def _entry(head: str, member: Value, indent: str) -> Iterator[str]:
    if _is_block(member):
        yield head
        yield from _block(member, indent + _STEP)
    elif isinstance(member, str) and "\n" in member:
        yield f"{head} |" + ("" if member.endswith("\n") else "-")
        yield from (f"{indent}{_STEP}{line}".rstrip() for line in member.rstrip("\n").split("\n"))
    else:
        yield f"{head} {_flat(member)}".rstrip()


def _in_a_row(member: Value) -> str | None:
    """A list of a few words in one line; None when it is longer, or more than words."""
    if not isinstance(member, list | tuple) or not all(isinstance(word, str) for word in member):
        return None
    text = ", ".join(word if _WORD.fullmatch(word) and _is_a_string(word) else _quoted(word) for word in member)
    return f"[{text}]" if len(text) <= _SHORT else None


def _block(member: Value, indent: str) -> Iterator[str]:
    if isinstance(member, Mapping):
        return _mapping(member, indent)
    assert isinstance(member, Sequence)
    return _sequence(member, indent)


def _is_block(member: Value) -> bool:
    is_collection = isinstance(member, Mapping | Sequence) and not isinstance(member, str)
    return is_collection and bool(member) and _in_a_row(member) is None


def _flat(member: Value) -> str:
    match member:
        case None:
            return ""
        case bool():
            return "true" if member else "false"
        case int():
            return str(member)
        case str():
            return scalar(member)
        case Mapping():
            return "{}"
        case _:
            return _in_a_row(member) or "[]"


def scalar(text: str) -> str:
    """A string so that no reader takes it for anything else."""
    is_plain = _PLAIN.fullmatch(text) and _is_a_string(text) and ": " not in text and " #" not in text
    return text if is_plain else _quoted(text)


def _is_a_string(text: str) -> bool:
    return text.lower() not in _WORDS


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
