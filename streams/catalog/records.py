"""How definitions are written to the log: a record for each, under its kind and name; without a value it is gone."""

import msgspec

from streams.catalog.state import Change, Cleanup, Kind, NamedType, QueryDefinition, Replacement, SourceDefinition

COMMAND_HEADER = "command"
"""The header of the last record of a statement: what the statement was, as a `CommandNote`."""

_ENCODER = msgspec.json.Encoder()
_KINDS: tuple[Kind, ...] = ("source", "query", "type", "replacement", "cleanup")
_DEFINITIONS = msgspec.json.Decoder(SourceDefinition | QueryDefinition | NamedType | Replacement | Cleanup)


class CommandNote(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that was carried out, as the API reports it to requests for its status."""

    id: str
    """Such as "stream/`S1`/create"."""
    message: str
    query_id: str | None = None


_NOTES = msgspec.json.Decoder(CommandNote)


class UnknownRecord(ValueError):
    """A record that this version cannot read."""


def write_change(change: Change) -> tuple[bytes, bytes | None]:
    """Key and value of the record of a change."""
    key = f"{change.kind}/{change.name}".encode()
    return key, None if change.definition is None else _ENCODER.encode(change.definition)


def read_change(key: bytes | None, value: bytes | None) -> Change:
    """The change that a record makes; raises UnknownRecord."""
    try:
        word, _, name = (key or b"").decode().partition("/")
        kind = next(one for one in _KINDS if one == word)
        return Change(kind, name, None if value is None else _DEFINITIONS.decode(value))
    except (StopIteration, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise UnknownRecord(f"{key!r}: {error}") from None


def write_note(note: CommandNote) -> bytes:
    """The header of a statement."""
    return _ENCODER.encode(note)


def read_note(header: bytes) -> CommandNote:
    """The statement of a header; raises UnknownRecord."""
    try:
        return _NOTES.decode(header)
    except msgspec.DecodeError as error:
        raise UnknownRecord(str(error)) from None
