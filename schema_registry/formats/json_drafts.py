"""The drafts of JSON Schema, and which one a document uses."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import cast

from referencing import Specification
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from schema_registry.formats.json_text import JsonObject, JsonValue

Dialect = Specification[JsonObject | bool]


class Draft(Enum):
    """A draft by its `$schema` URI; oldest first."""

    DRAFT_4 = "http://json-schema.org/draft-04/schema"
    DRAFT_6 = "http://json-schema.org/draft-06/schema"
    DRAFT_7 = "http://json-schema.org/draft-07/schema"
    DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

    @property
    def dialect(self) -> Dialect:
        """The specification by which `referencing` finds ids, anchors and subschemas."""
        return _DIALECTS[self]

    @property
    def id_keyword(self) -> str:
        """The keyword that names a schema."""
        return "id" if self is Draft.DRAFT_4 else "$id"

    @property
    def is_modern(self) -> bool:
        """Whether keywords beside `$ref` count."""
        return self in {Draft.DRAFT_2019_09, Draft.DRAFT_2020_12}


def draft_of(document: JsonValue, default: Draft = Draft.DRAFT_7) -> Draft:
    """The draft that `$schema` names; the default if it is unknown or missing, as in Confluent's registry."""
    uri = document.get("$schema") if isinstance(document, dict) else None
    if not isinstance(uri, str):
        return default
    return _BY_ADDRESS.get(_address(uri), default)


def _address(uri: str) -> str:
    return uri.removesuffix("#").removeprefix("https://").removeprefix("http://")


def _fix_dependencies(dialect: Dialect) -> Dialect:
    """Work around `referencing`, which takes all `dependencies` for schemas if the first is: some may be name lists."""

    def subresources_of(schema: JsonObject | bool) -> Iterator[JsonObject | bool]:
        parts = cast("Iterable[JsonValue]", dialect.subresources_of(schema))
        return (part for part in parts if isinstance(part, dict | bool))

    return Specification(  # type: ignore[call-arg]  # mypy does not see through its decorator
        name=dialect.name,
        id_of=dialect.id_of,
        subresources_of=subresources_of,
        maybe_in_subresource=dialect.maybe_in_subresource,
        anchors_in=dialect._anchors_in,  # noqa: SLF001 - the method of this name binds the dialect
    )


_DIALECTS: dict[Draft, Dialect] = {
    Draft.DRAFT_4: _fix_dependencies(DRAFT4),
    Draft.DRAFT_6: _fix_dependencies(DRAFT6),
    Draft.DRAFT_7: _fix_dependencies(DRAFT7),
    Draft.DRAFT_2019_09: DRAFT201909,
    Draft.DRAFT_2020_12: DRAFT202012,
}
_BY_ADDRESS = {_address(draft.value): draft for draft in Draft}
