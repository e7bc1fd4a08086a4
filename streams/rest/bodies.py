"""Bodies of requests: JSON objects of a known shape."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from streams.server.errors import BadRequest
from streams.server.properties import resolve_all
from streams.settings import StreamsSettings

_SHOWN_MAX: Final = 200


class StatementsBody(msgspec.Struct, frozen=True, kw_only=True):
    """Statements, and what holds for them."""

    text: str
    properties: dict[str, str]
    variables: dict[str, str]
    sequence: int | None
    """The command that has to be carried out before."""


def read_statements_body(body: bytes | str, settings: StreamsSettings) -> StatementsBody:
    """The body of /ksql, /query and /query-stream, whose fields have two names each. Raises BadRequest."""
    document = read_object(body)
    text = _first(document, "ksql", "sql")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest('The request needs a field "ksql" with statements')
    sequence = document.get("commandSequenceNumber")
    if sequence is not None and (not isinstance(sequence, int) or isinstance(sequence, bool)):
        raise BadRequest("commandSequenceNumber must be a whole number")
    properties = _mapping(document, "streamsProperties", "properties")
    return StatementsBody(
        text=text,
        properties=resolve_all(properties, settings),
        variables={name: _variable(name, value) for name, value in _mapping(document, "sessionVariables").items()},
        sequence=sequence,
    )


def read_object(body: bytes | str) -> dict[str, Any]:
    """A JSON object. Raises BadRequest."""
    try:
        document = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"Malformed JSON: {str(error)[:_SHOWN_MAX]}") from None
    if not isinstance(document, dict):
        raise BadRequest("Malformed JSON: the request must be an object")
    return document


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


_DECODER: Final = msgspec.json.Decoder(float_hook=_decimal)
"""Numbers keep all their digits: they may be meant for a DECIMAL."""


def _first(document: Mapping[str, Any], *names: str) -> object:
    return next((document[name] for name in names if document.get(name) is not None), None)


def _mapping(document: Mapping[str, Any], *names: str) -> dict[str, object]:
    found = _first(document, *names)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRequest(f"{names[0]} must be an object")
    return found


def _variable(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"The variable {name} must be text")
    return value
