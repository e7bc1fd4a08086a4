"""Errors of the registry, with the codes that clients of Confluent's registry branch on.

Every error is a RegistryError; the functions below make those that the registry itself raises, in the order of their
codes.
"""

from collections.abc import Sequence


class RegistryError(Exception):
    """A request failed: the code is Confluent's, and its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code // 100 if self.code >= 10_000 else self.code


# --- 403 ---


def forbidden(what: str) -> RegistryError:
    """The caller has no right to do it; it is said in the same words whether the thing exists or not."""
    return RegistryError(40301, what)


# --- 404 ---


def subject_not_found(subject: str) -> RegistryError:
    """No version was ever registered under the subject, or none is left."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    """The subject has no such version; -1 means the latest."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(key: int | str | None = None) -> RegistryError:
    """No schema has this id, guid or content."""
    return RegistryError(40403, "Schema not found" if key is None else f"Schema {key} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """All versions are soft-deleted already."""
    # Here and below Confluent's messages have no space after the full stop.
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """A subject must be soft-deleted before it can be deleted permanently."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """The version is soft-deleted already."""
    return RegistryError(
        40406, f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """A version must be soft-deleted before it can be deleted permanently."""
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def level_not_configured(subject: str) -> RegistryError:
    """The subject has no config of its own."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_configured(subject: str) -> RegistryError:
    """The subject has no mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


# --- 409 ---


def incompatible(subject: str, differences: Sequence[str]) -> RegistryError:
    """The schema is not compatible with the subject's versions."""
    return RegistryError(
        40901,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(differences)}]",
    )


# --- 422 ---


def invalid_schema(reason: str) -> RegistryError:
    """The schema, or the request around it, is not valid."""
    return RegistryError(42201, reason)


def invalid_version(text: str) -> RegistryError:
    """The version in the path is neither a number nor `latest`."""
    return RegistryError(
        42202,
        f"The specified version '{text}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    """No such compatibility level."""
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_policy() -> RegistryError:
    """No such compatibility policy."""
    return RegistryError(42203, "Invalid compatibility policy. Valid values are strict, lenient and logical")


def invalid_mode() -> RegistryError:
    """No such mode."""
    return RegistryError(
        42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT and FORWARD."
    )


def not_permitted(reason: str) -> RegistryError:
    """The mode, or the state of the subject, does not allow the operation."""
    return RegistryError(42205, reason)


def reference_exists(subject: str, version: int) -> RegistryError:
    """Other schemas reference the version."""
    return RegistryError(
        42206,
        f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryError:
    """The name is not a valid subject name."""
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def schema_too_large(size: int, allowed: int) -> RegistryError:
    """The text is longer than `schema.max.bytes`."""
    return RegistryError(
        42209, f"Write failed because schema is too large: it has {size} bytes, schema.max.bytes allows {allowed}"
    )


def invalid_rules(reason: str) -> RegistryError:
    """The rule set is not valid."""
    return RegistryError(42210, reason)


def context_not_empty(context: str) -> RegistryError:
    """The context still has subjects."""
    return RegistryError(42211, f"The specified context '{context}' is not empty.")
