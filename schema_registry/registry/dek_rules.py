"""The rules of the key registry, and the errors of requests that are refused."""

import unicodedata
from collections.abc import Mapping

from schema_registry.errors import RegistryError, invalid_version
from schema_registry.models_deks import DekAlgorithm
from schema_registry.registry.subject_names import is_storable

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
"""Properties of a KEK that are credentials of its service: stored and used, but never returned."""


# --- rules ---


def check_name(name: str | None) -> str:
    """The name of a KEK: a letter or underscore, then letters, digits, underscores and hyphens."""
    if not name or len(name) > MAX_NAME_CHARACTERS or not (name[0].isalpha() or name[0] == "_"):
        raise invalid("name")
    if not all(character.isalnum() or character in "_-" for character in name):
        raise invalid("name")
    return name


def check_subject(subject: str | None) -> str:
    """The subject of a DEK: any text without control characters."""
    if not subject or len(subject.encode("utf-8", "replace")) > MAX_SUBJECT_BYTES:
        raise invalid("subject")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in subject):
        raise invalid("subject")
    return subject


def parse_algorithm(algorithm: str | None) -> DekAlgorithm:
    """The algorithm of a DEK; AES256_GCM by default."""
    if not algorithm:
        return DekAlgorithm.AES256_GCM
    try:
        return DekAlgorithm(algorithm)
    except ValueError:
        raise invalid("algorithm") from None


def parse_version(version: str | int) -> int:
    """A version number; -1 means the latest."""
    text = str(version)
    if text in ("latest", "-1"):
        return -1
    if text.isdecimal() and text.isascii() and len(text) <= 10 and 1 <= int(text) <= _MAX_VERSION:
        return int(text)
    raise invalid_version(text[:40])


def check_text(field: str, text: str | None) -> str | None:
    """A text that every database can store."""
    if text is not None and not is_storable(text):
        raise invalid(field)
    return text


def check_properties(properties: Mapping[str, str] | None) -> Mapping[str, str]:
    """The properties of a KEK; empty by default."""
    for name, value in (properties or {}).items():
        if not (is_storable(name) and is_storable(value)):
            raise invalid("kmsProps")
    return properties or {}


def normalize_kms_type(kms_type: str) -> str:
    """The one name of a type of service for which clients have several."""
    for cloud in _CLOUDS:
        if kms_type.lower().startswith(cloud):
            return f"{cloud}-kms"
    return kms_type


def without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """The sorted properties without secrets. These are left out, not blanked, so that clients use their own."""
    return {name: properties[name] for name in sorted(properties) if name not in SECRET_PROPERTIES}


def replace_properties(given: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """The new properties, plus the old secrets that they do not replace: clients cannot read those to repeat them."""
    secrets = {name: value for name, value in kept.items() if name in SECRET_PROPERTIES}
    return {**secrets, **{name: value for name, value in given.items() if value != _HIDDEN or name not in secrets}}


# --- errors ---


def not_found(name: str) -> RegistryError:
    """There is no such KEK, or the subject has no such DEK."""
    return RegistryError(40470, f"Key '{name}' not found")


def not_soft_deleted(name: str) -> RegistryError:
    """A key must be soft-deleted before it can be deleted permanently."""
    return RegistryError(40471, f"Key '{name}' was not deleted first before being permanently deleted")


def soft_deleted(name: str) -> RegistryError:
    """A DEK cannot be restored before its KEK."""
    return RegistryError(40472, f"Key '{name}' must be undeleted first")


def already_exists(name: str) -> RegistryError:
    """The name is in use."""
    return RegistryError(40971, f"Key '{name}' already exists; use a different value")


def too_many(maximum: int) -> RegistryError:
    """The registry has as many keys as it may have."""
    return RegistryError(40972, f"A maximum of {maximum} keys already exist")


def invalid(field: str) -> RegistryError:
    """A value is missing or invalid."""
    return RegistryError(42271, f"Invalid or missing value for field '{field}' of key")


def references_exist(name: str) -> RegistryError:
    """A KEK that wraps DEKs cannot be deleted."""
    return RegistryError(42272, f"One or more references exist to the key {name}")


def generation_failed(message: str) -> RegistryError:
    """The key management service failed."""
    return RegistryError(50070, message)


def access_denied(message: str) -> RegistryError:
    """The key management service denied access."""
    return RegistryError(40370, message)
