"""Subjects by their qualified names: `:.context:name`, or the name alone in the default context."""

import msgspec

from schema_registry.errors import RegistryError, invalid_subject
from schema_registry.store.contexts import DEFAULT

GLOBAL = ".__GLOBAL"
"""The context above all others; it has a config and a mode, but no subjects."""
WILDCARD = "*"
"""What stands for all contexts in a prefix: `:*:`."""

_RESERVED = ("__GLOBAL", "__EMPTY")
_CONTEXT_BYTES_MAX = 500
_SUBJECT_BYTES_MAX = 1500
"""What the keys of PostgreSQL's indexes have room for."""


class SubjectName(msgspec.Struct, frozen=True, order=True):
    """A context and a name inside of it; an empty name stands for the context itself."""

    context: str
    name: str

    @property
    def qualified(self) -> str:
        """The name as clients write it."""
        return self.name if self.context == DEFAULT else f":{self.context}:{self.name}"

    @property
    def is_in_default_context(self) -> bool:
        """Whether the name needs no context."""
        return self.context == DEFAULT

    @property
    def key(self) -> tuple[str, str]:
        """The two parts."""
        return (self.context, self.name)


def parse(text: str) -> SubjectName:
    """The subject that a client means; anything is a name that a database can be asked for."""
    if "\x00" in text or not _is_encodable(text):
        raise invalid_subject(ascii(text))
    if text.startswith(":."):
        context, _, name = text[1:].partition(":")
        return SubjectName(context, name)
    if text.startswith(":*:"):
        return SubjectName(WILDCARD, text[3:])
    return SubjectName(DEFAULT, text)


def parse_beside(parent: SubjectName, text: str) -> SubjectName:
    """The subject that a text means within another subject: in the same context unless it names one."""
    parsed = parse(text)
    return SubjectName(parent.context, parsed.name) if parsed.is_in_default_context else parsed


def checked(text: str, *, allow_global: bool = False, reject_empty: bool = False) -> SubjectName:
    """A subject that something can be stored under."""
    if any(_is_control(character) for character in text):
        raise invalid_subject(text)
    parsed = parse(text)
    if parsed.name in _RESERVED or (reject_empty and parsed.name in ("", WILDCARD)):
        raise invalid_subject(text)
    if parsed.context == WILDCARD or (parsed.context == GLOBAL and not allow_global):
        raise invalid_subject(text)
    _check_size(text, parsed)
    return parsed


def context_name(text: str) -> str:
    """The context that a client means: with or without the colons and the leading dot."""
    name = text.removeprefix(":").removesuffix(":")
    if ":" in name or any(map(_is_control, name)):
        raise RegistryError(400, f"Context name '{text}' is not valid: it cannot contain a colon")
    return name if name.startswith(".") else f".{name}"


def _is_control(character: str) -> bool:
    return character <= "\x1f" or "\x7f" <= character <= "\x9f"


def _is_encodable(text: str) -> bool:
    """Half a surrogate pair is no text."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _check_size(text: str, parsed: SubjectName) -> None:
    if len(parsed.context.encode()) > _CONTEXT_BYTES_MAX or len(parsed.name.encode()) > _SUBJECT_BYTES_MAX:
        raise invalid_subject(f"{text[:100]}…")
