"""A registry's answer to whether a schema may follow others: which differences, where, against which version."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from schema_registry.client.models import SchemaDefinition
    from schema_registry.client.registry_client import RegistryClient, Version

# The description has quotes inside, and some registries leave out the one that ends it.
_DIFFERENCE = re.compile(
    r"\{errorType:[\"'](?P<type>\w+)[\"'], ?description:[\"'](?P<words>.*?)[\"']?"
    r"(?:, ?additionalInfo:[\"'](?P<detail>.*)[\"'])?\}",
    re.DOTALL,
)
_PATH = re.compile(r"path '(?P<path>.*?)'(?=[\s),.;]|$)", re.DOTALL)
_SIDES = re.compile(r"'[^']*'|\b(?:new|old)\b")
_VERSION = re.compile(r"\{oldSchemaVersion: (\d{1,10})\}")
_LEVEL = re.compile(r"compatibility: '(\w+)'\}")

MEANINGS = {
    "NONE": "nothing is checked: any schema may follow",
    "BACKWARD": "a new schema must read what was written with the latest one; upgrade consumers first",
    "BACKWARD_TRANSITIVE": "a new schema must read what was written with any earlier one; upgrade consumers first",
    "FORWARD": "the latest schema must read what is written with a new one; upgrade producers first",
    "FORWARD_TRANSITIVE": "all earlier schemas must read what is written with a new one; upgrade producers first",
    "FULL": "a new schema and the latest one must read each other's records; upgrade in any order",
    "FULL_TRANSITIVE": "a new schema and all earlier ones must read each other's records; upgrade in any order",
}
"""The levels of compatibility, and what each asks for."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference that the registry does not allow; type and path are empty when it sends plain text."""

    words: str
    type: str = ""
    path: str = ""
    detail: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a schema may follow others, and what is in the way."""

    is_compatible: bool
    differences: tuple[Difference, ...] = ()
    version: int | None = None
    """The earlier version that is in the way."""
    level: str | None = None
    """The level in force, when the registry sent it."""


def read_judgement(messages: Iterable[str], *, is_compatible: bool) -> Judgement:
    """Read the messages of a registry."""
    differences = []
    version = level = None
    for message in messages:
        if found := _DIFFERENCE.fullmatch(message):
            path = _PATH.search(found["words"])
            differences.append(
                Difference(
                    words=found["words"],
                    type=found["type"],
                    path=path["path"] if path else "",
                    detail=found["detail"] or "",
                )
            )
        elif found := _VERSION.fullmatch(message):
            version = int(found[1])
        elif found := _LEVEL.search(message):
            level = found[1]
        elif not message.startswith("{oldSchema:"):
            differences.append(Difference(words=message))
    return Judgement(is_compatible=is_compatible, differences=tuple(differences), version=version, level=level)


def swap_sides(judged: Judgement) -> Judgement:
    """The same with `old` and `new` exchanged, for an answer in which the roles were swapped."""
    other = {"new": "old", "old": "new"}
    differences = tuple(
        msgspec.structs.replace(item, words=_SIDES.sub(lambda found: other.get(found[0], found[0]), item.words))
        for item in judged.differences
    )
    return msgspec.structs.replace(judged, differences=differences)


def check_compatibility(
    client: "RegistryClient",
    subject: str,
    definition: "SchemaDefinition",
    *,
    version: "Version | None" = None,
    normalize: bool = False,
) -> Judgement:
    """Ask whether a schema may follow one version of a subject, or all those that the level names."""
    from schema_registry.client.errors import Refused, SchemaNotFound

    try:
        answer = client.is_compatible(subject, definition, version=version, normalize=normalize)
    except (Refused, SchemaNotFound) as error:
        if version is not None or error.code not in (404, 405):
            raise
        # Some registries only compare with one version at a time.
        answer = client.is_compatible(subject, definition, version="latest", normalize=normalize)
    return read_judgement(answer.messages, is_compatible=answer.is_compatible)


def level_of(client: "RegistryClient", subject: str) -> str:
    """The level in force for a subject."""
    return str(client.config(subject).get("compatibilityLevel", ""))
