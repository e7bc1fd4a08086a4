"""What the key registry accepts, and how it refuses the rest."""

import unicodedata
from collections.abc import Mapping

from schema_registry.errors import RegistryError, invalid_version
from schema_registry.models_deks import DekAlgorithm
from schema_registry.registry.texts import is_storable

MAX_NAME_CHARACTERS = 256
MAX_SUBJECT_BYTES = 1024
_MAX_VERSION = 2**31 - 1
_CLOUDS = ("aws", "azure", "gcp")
_HIDDEN = "[hidden]"
SECRET_PROPERTIES = frozenset(
    {
        "approle.secret.id",
        "client.secret",
        "private.key",
        "secret",
        "secret.access.key",
        "ssl.keystore.password",
        "token.id",
    }
)
"""Properties of a KEK that unlock its service: kept, used, and never told again."""


# --- what is accepted ---


def checked_name(name: str | None) -> str:
    """The name of a KEK: a letter or underscore, then letters, digits, underscores and hyphens."""
    if not name or len(name) > MAX_NAME_CHARACTERS or not (name[0].isalpha() or name[0] == "_"):
        raise invalid("name")
    if not all(character.isalnum() or character in "_-" for character in name):
        raise invalid("name")
    return name


def checked_subject(subject: str | None) -> str:
    """The subject of a DEK: anything without control characters."""
    if not subject or len(subject.encode("utf-8", "replace")) > MAX_SUBJECT_BYTES:
        raise invalid("subject")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in subject):
        raise invalid("subject")
    return subject


def checked_algorithm(algorithm: str | None) -> DekAlgorithm:
    """The algorithm of a DEK; AES256_GCM unless given."""
    if not algorithm:
        return DekAlgorithm.AES256_GCM
    try:
        return DekAlgorithm(algorithm)
    except ValueError:
        raise invalid("algorithm") from None


def checked_version(version: str | int) -> int:
    """A version by its number, or -1 for `latest`."""
    text = str(version)
    if text in ("latest", "-1"):
        return -1
    if text.isdecimal() and text.isascii() and len(text) <= 10 and 1 <= int(text) <= _MAX_VERSION:
        return int(text)
    raise invalid_version(text[:40])


def checked_text(field: str, text: str | None) -> str | None:
    """A text that every database can keep."""
    if text is not None and not is_storable(text):
        raise invalid(field)
    return text


def checked_properties(properties: Mapping[str, str] | None) -> Mapping[str, str]:
    """Properties of a KEK; none unless given."""
    for name, value in (properties or {}).items():
        if not (is_storable(name) and is_storable(value)):
            raise invalid("kmsProps")
    return properties or {}


def kms_type_of(kms_type: str) -> str:
    """The type of a service, where clients have several names for the same one."""
    for cloud in _CLOUDS:
        if kms_type.lower().startswith(cloud):
            return f"{cloud}-kms"
    return kms_type


def shown_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without secrets, in order. Left out, not blanked: clients fall back to their own credentials."""
    return {name: properties[name] for name in sorted(properties) if name not in SECRET_PROPERTIES}


def merged_properties(given: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """New properties; secrets that are not among them stay, since no client was told them."""
    secrets = {name: value for name, value in kept.items() if name in SECRET_PROPERTIES}
    return {**secrets, **{name: value for name, value in given.items() if value != _HIDDEN or name not in secrets}}


# --- how the rest is refused ---


def not_found(name: str) -> RegistryError:
    """No such KEK, or no such subject's DEK."""
    return RegistryError(40470, f"Key '{name}' not found")


def not_soft_deleted(name: str) -> RegistryError:
    """To be deleted for good, but not deleted yet."""
    return RegistryError(40471, f"Key '{name}' was not deleted first before being permanently deleted")


def soft_deleted(name: str) -> RegistryError:
    """A DEK cannot come back before its KEK."""
    return RegistryError(40472, f"Key '{name}' must be undeleted first")


def already_exists(name: str) -> RegistryError:
    """The name is taken."""
    return RegistryError(40971, f"Key '{name}' already exists; use a different value")


def too_many(maximum: int) -> RegistryError:
    """The registry is full."""
    return RegistryError(40972, f"A maximum of {maximum} keys already exist")


def invalid(field: str) -> RegistryError:
    """A value is missing or cannot be used."""
    return RegistryError(42271, f"Invalid or missing value for field '{field}' of key")


def references_exist(name: str) -> RegistryError:
    """A KEK that wraps DEKs stays."""
    return RegistryError(42272, f"One or more references exist to the key {name}")


def generation_failed(message: str) -> RegistryError:
    """The key management service did not do its part."""
    return RegistryError(50070, message)


def access_denied(message: str) -> RegistryError:
    """The key management service refused the registry."""
    return RegistryError(40370, message)
