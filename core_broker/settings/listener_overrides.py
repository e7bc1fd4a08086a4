"""Settings of one listener: `listener.name.external.ssl.client.auth` is ssl.client.auth of the listener EXTERNAL."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from core_broker.service.settings import Definition, Properties
from core_broker.settings.tls import TlsSettings

PREFIX: Final = "listener.name."
MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi")
"""SASL mechanisms, as they are written between the listener and a key that belongs to both."""
OF_A_LISTENER: Final = frozenset(
    {
        *(key for key in TlsSettings.DEFINITIONS),
        "connections.max.reauth.ms",
        "max.connection.creation.rate",
        "max.connections",
        "num.network.threads",
    }
)
"""Keys that may be set for one listener, besides those that begin with `sasl.`."""

_ANY_LISTENER: Final = re.compile(rf"{re.escape(PREFIX)}[^.]+\.(?P<key>.+)")
_MECHANISM: Final = re.compile(rf"(?P<mechanism>{'|'.join(MECHANISMS)})\.(?P<key>.+)")


class ListenerKey(msgspec.Struct, frozen=True):
    """A key of one listener, or of one SASL mechanism on it."""

    listener: str
    """In upper case, as everywhere."""
    mechanism: str
    """In lower case; empty if the key belongs to the listener."""
    key: str
    """Without any prefix."""


def split_listener_key(rest: str, listeners: Iterable[str]) -> ListenerKey | None:
    """Take apart what follows `listener.name.`; None if it does not begin with the name of a listener."""
    # Names may contain dots: the longest one that fits is meant.
    names = sorted((name for name in listeners if rest.startswith(f"{name.lower()}.")), key=len)
    if not names:
        return None
    key = rest[len(names[-1]) + 1 :]
    match = _MECHANISM.fullmatch(key)
    if match is None:
        return ListenerKey(names[-1], "", key)
    return ListenerKey(names[-1], match["mechanism"], match["key"])


def is_of_listener(key: str) -> bool:
    """Whether this key, given without a prefix, may be set for one listener."""
    return key in OF_A_LISTENER or key.startswith("sasl.")


def base_key(key: str) -> str | None:
    """The key behind `listener.name.<name>.`, if it has this prefix."""
    match = _ANY_LISTENER.fullmatch(key)
    return None if match is None else match["key"]


def parse_overrides(
    overrides: Properties,
    wanted: tuple[str, str],
    listeners: Iterable[str],
    definitions: Mapping[str, Definition],
) -> dict[str, Any]:
    """The values, by attribute, that are set for a listener and a mechanism. Raises SettingsError."""
    names = tuple(listeners)
    values: dict[str, Any] = {}
    for rest, text in overrides:
        found = split_listener_key(rest, names)
        if found is None or (found.listener, found.mechanism) != wanted or found.key not in definitions:
            continue
        definition = definitions[found.key]
        # A refusal names the key as it was given.
        values[definition.name] = replace(definition, key=f"{PREFIX}{rest}").parse(text)
    return values
