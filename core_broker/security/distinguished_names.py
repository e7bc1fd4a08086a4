"""The subject of a certificate as text, exactly as Java prints it (RFC 2253): `CN=kim,OU=Apps,O=Acme`.

Principals, ACLs and super.users are written in this form, so each character counts: the attributes are in the reverse
order of the encoding, only nine of them have names, and the values of all others are the hexadecimal DER.
"""

from collections.abc import Iterator
from typing import Final

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT_TAGS: Final = frozenset({12, 19, 20, 22, 27, 30})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: what Java prints as text (as UTF-8)."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_LONG_LENGTH: Final = 0x80
_CONTINUES: Final = 0x80


def format_subject(der: bytes) -> str:
    """Write a DER encoded name; raises ValueError if it is damaged."""
    try:
        relative_names = [_relative_name(content) for _, content, _ in _elements(_content(der))]
    except IndexError:
        raise ValueError("the subject of the certificate is truncated") from None
    return ",".join(reversed(relative_names))


def _relative_name(content: bytes) -> str:
    return "+".join(_attribute(attribute) for _, attribute, _ in _elements(content))


def _attribute(content: bytes) -> str:
    (_, oid, _), (tag, value, encoded) = _elements(content)
    name = _oid_text(oid)
    keyword = _KEYWORDS.get(name)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or name}=#{encoded.hex()}"
    return f"{keyword}={_escape(value.decode(errors='replace'))}"


def _escape(value: str) -> str:
    text = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in value)
    core = text.strip(" \r")
    if not core:
        return "".join(f"\\{char}" for char in text)
    first = text.index(core)
    before, after = text[:first], text[first + len(core) :]
    return "".join(f"\\{char}" for char in before) + core + "".join(f"\\{char}" for char in after)


def _oid_text(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & ~_CONTINUES
        if not byte & _CONTINUES:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _content(der: bytes) -> bytes:
    ((_, content, _),) = _elements(der)
    return content


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content and whole encoding of each element."""
    position = 0
    while position < len(data):
        start = position
        tag, length = data[position], data[position + 1]
        position += 2
        if length & _LONG_LENGTH:
            count = length & ~_LONG_LENGTH
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        end = position + length
        if end > len(data):
            raise IndexError
        yield tag, data[position:end], data[start:end]
        position = end
