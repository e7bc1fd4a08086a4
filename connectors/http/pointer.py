"""JSON pointers (RFC 6901): where something is in a document."""

from typing import Any, Final

MISSING: Final = object()
"""What is found where there is nothing; null is something."""


def parts_of(pointer: str) -> tuple[str, ...]:
    """The steps of a pointer: none for an empty one, and for `/`, which is often written for the whole document."""
    if pointer in ("", "/"):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def find(document: Any, parts: tuple[str, ...]) -> Any:
    """What is there; MISSING when there is nothing."""
    for part in parts:
        if isinstance(document, dict):
            document = document.get(part, MISSING)
        elif isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        else:
            return MISSING
    return document
