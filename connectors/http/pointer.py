"""JSON pointers (RFC 6901)."""

from typing import Any, Final

MISSING: Final = object()
"""The result where a document has nothing, which is not null."""


def parts_of(pointer: str) -> tuple[str, ...]:
    """The parts of a pointer: none for an empty one, and for `/`, which is often written for the whole document."""
    if pointer in ("", "/"):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def find(document: Any, parts: tuple[str, ...]) -> Any:
    """The value at a pointer; MISSING when there is none."""
    for part in parts:
        if isinstance(document, dict):
            document = document.get(part, MISSING)
        elif isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        else:
            return MISSING
    return document
