"""Qualified subject names: `:.context:name`, or just the name in the default context."""

import msgspec

from schema_registry.errors import RegistryError, invalid_subject
from schema_registry.store.contexts import DEFAULT

GLOBAL = ".__GLOBAL"
"""The context that all others inherit from; it has a config and a mode, but no subjects."""
WILDCARD = "*"
"""Matches all contexts in a prefix: `:*:`."""

_RESERVED = ("__GLOBAL", "__EMPTY")
_CONTEXT_BYTES_MAX = 500
_SUBJECT_BYTES_MAX = 1500
"""PostgreSQL's index entries have no room for more."""


def is_storable(text: str) -> bool:
    """Whether a text has no NUL, which PostgreSQL rejects, and no unpaired surrogate, which UTF-8 cannot encode."""
    # Most texts are ASCII, for which one search is enough.
    if text.isascii():
        return "\0" not in text
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)


class SubjectName(msgspec.Struct, frozen=True, order=True):
    """A context and a name inside it; an empty name means the context itself."""

    context: str
    name: str

    @property
    def qualified(self) -> str:
        """The name as clients write it."""
        return self.name if self.context == DEFAULT else f":{self.context}:{self.name}"

    @property
    def is_in_default_context(self) -> bool:
        """Whether the subject is in the default context."""
        return self.context == DEFAULT

    @property
    def key(self) -> tuple[str, str]:
        """Context and name."""
        return (self.context, self.name)


def parse(text: str) -> SubjectName:
    """Parse a subject for reading: any text that a database can store may be a name."""
    if not is_storable(text):
        raise invalid_subject(ascii(text))
    if text.startswith(":."):
        context, _, name = text[1:].partition(":")
        return SubjectName(context, name)
    if text.startswith(":*:"):
        return SubjectName(WILDCARD, text[3:])
    return SubjectName(DEFAULT, text)


def parse_beside(parent: SubjectName, text: str) -> SubjectName:
    """Parse a subject that another subject refers to: it is in the same context unless it names one."""
    parsed = parse(text)
    return SubjectName(parent.context, parsed.name) if parsed.is_in_default_context else parsed


def parse_for_write(text: str, *, allow_global: bool = False, reject_empty: bool = False) -> SubjectName:
    """Parse a subject to write to; refuses reserved, too long and unprintable names."""
    if any(_is_control(character) for character in text):
        raise invalid_subject(text)
    parsed = parse(text)
    if parsed.name in _RESERVED or (reject_empty and parsed.name in ("", WILDCARD)):
        raise invalid_subject(text)
    if parsed.context == WILDCARD or (parsed.context == GLOBAL and not allow_global):
        raise invalid_subject(text)
    if len(parsed.context.encode()) > _CONTEXT_BYTES_MAX or len(parsed.name.encode()) > _SUBJECT_BYTES_MAX:
        raise invalid_subject(f"{text[:100]}…")
    return parsed


def context_name(text: str) -> str:
    """The name of a context that clients write with or without colons and leading dot."""
    name = text.removeprefix(":").removesuffix(":")
    if ":" in name or any(map(_is_control, name)):
        raise RegistryError(400, f"Context name '{text}' is not valid: it cannot contain a colon")
    return name if name.startswith(".") else f".{name}"


def _is_control(character: str) -> bool:
    return character <= "\x1f" or "\x7f" <= character <= "\x9f"
