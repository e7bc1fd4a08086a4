"""Which texts every database can keep and every client can read."""


def is_storable(text: str) -> bool:
    """Whether a text holds neither NUL, which PostgreSQL refuses, nor half a character, which is no UTF-8."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)
