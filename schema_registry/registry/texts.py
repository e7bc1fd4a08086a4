"""Texts that every database can store and every client can read."""


def is_storable(text: str) -> bool:
    """Whether a text has no NUL, which PostgreSQL rejects, and no unpaired surrogate, which UTF-8 cannot encode."""
    # Most texts are ASCII, for which one search is enough.
    if text.isascii():
        return "\0" not in text
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)
