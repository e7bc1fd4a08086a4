"""Lay out the text of an option as Confluent's registry prints it.

A descriptor has the meaning of an option, but only the text shows its order, and that it was written as `(a).b = 1`.
"""

import re
from collections.abc import Iterator, Sequence

from schema_registry.formats.protobuf_layout import join_lines

TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*(?s:.*?)\*/
    |(?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>0[xX][0-9A-Fa-f]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
    |(?P<mark>[(){}\[\]<>.,;:=/-])
    """,
    re.ASCII | re.VERBOSE,
)
_CLOSING = {"{": "}", "<": ">"}
_UNESCAPED = re.compile(r"""\\.|["']""")


class UnknownSyntax(ValueError):
    """The text is not an option that this module can lay out."""


def lay_out(text: str) -> str:
    """`name = value`, from the text of an option with or without the keyword and the semicolon around it."""
    tokens = _Tokens(text)
    if tokens.next_is("option"):
        tokens.take()
    name = "".join(_until(tokens, "="))
    value = _value(tokens)
    if tokens.next_is(";"):
        tokens.take()
    if not tokens.are_used_up or not name:
        raise UnknownSyntax(text)
    return f"{name} = {value}"


def list_in(text: str, key: str) -> list[str]:
    """The elements of a list in an option whose value is a message, as they are written."""
    tokens = _skip_name(text)
    return _parse_fields(tokens)[0].get(key, []) if tokens.next_is(*_CLOSING) else []


def with_list(text: str, key: str, elements: Sequence[str]) -> str:
    """The option with another list in its message; empty if that leaves the message empty."""
    name = lay_out(text).partition(" = ")[0]
    fields, lists = _parse_fields(_skip_name(text))
    fields[key] = list(elements)
    if not elements:
        del fields[key]
    return f"{name} = {_print_message(fields, lists | {key})}" if fields else ""


def unquote(literal: str) -> str:
    """The text of a string literal; only quotes and backslashes are unescaped."""
    return re.sub(r"""\\(["'\\])""", r"\1", literal[1:-1])


def _skip_name(text: str) -> "_Tokens":
    tokens = _Tokens(text)
    for _ in _until(tokens, "="):
        pass
    return tokens


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = list(_split(text))
        self._index = 0

    @property
    def are_used_up(self) -> bool:
        return self._index == len(self._tokens)

    def next_is(self, *tokens: str) -> bool:
        return not self.are_used_up and self._tokens[self._index] in tokens

    def next_is_string(self) -> bool:
        return not self.are_used_up and self._tokens[self._index][0] in "\"'"

    def take(self) -> str:
        if self.are_used_up:
            raise UnknownSyntax("the option ends too soon")
        self._index += 1
        return self._tokens[self._index - 1]


def _split(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise UnknownSyntax(text[position:])
        position = match.end()
        if match.lastgroup:
            yield match[0]


def _until(tokens: _Tokens, end: str) -> Iterator[str]:
    while (token := tokens.take()) != end:
        yield token


def _value(tokens: _Tokens) -> str:
    if tokens.next_is(*_CLOSING):
        return _print_message(*_parse_fields(tokens))
    if tokens.next_is_string():
        parts = []
        while tokens.next_is_string():
            parts.append(_UNESCAPED.sub(_escape, tokens.take()[1:-1]))
        return f'"{"".join(parts)}"'
    sign = tokens.take() if tokens.next_is("-") else ""
    word = tokens.take()
    if not (word[0].isalnum() or word[0] in "_."):
        raise UnknownSyntax(word)
    return sign + word


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("\\") else f"\\{match[0]}"


def _parse_fields(tokens: _Tokens) -> tuple[dict[str, list[str]], set[str]]:
    """The fields of a message, and the names of those that are lists."""
    closing = _CLOSING[tokens.take()]
    fields: dict[str, list[str]] = {}
    lists: set[str] = set()
    while not tokens.next_is(closing):
        key = tokens.take()
        if key == "[":
            key = f"[{''.join(_until(tokens, ']'))}]"
        if tokens.next_is(":"):
            tokens.take()
        if tokens.next_is("["):
            lists.add(key)
            fields.setdefault(key, []).extend(_elements(tokens))
        else:
            fields.setdefault(key, []).append(_value(tokens))
        if tokens.next_is(",", ";"):
            tokens.take()
    tokens.take()
    return fields, lists


def _print_message(fields: dict[str, list[str]], lists: set[str]) -> str:
    entries = [
        f"{key}: " + ("[\n" + join_lines(values) + "]" if key in lists or len(values) > 1 else values[0])
        for key, values in fields.items()
    ]
    return "{\n" + join_lines(entries) + "}"


def _elements(tokens: _Tokens) -> Iterator[str]:
    tokens.take()
    while not tokens.next_is("]"):
        yield _value(tokens)
        if tokens.next_is(","):
            tokens.take()
    tokens.take()
