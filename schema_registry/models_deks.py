"""The bodies of the key registry, by the names that Confluent's clients send and read."""

from enum import StrEnum

from schema_registry.models import Model, PropertyText


class DekAlgorithm(StrEnum):
    """What a key for records is used with."""

    AES128_GCM = "AES128_GCM"
    AES256_GCM = "AES256_GCM"
    AES256_SIV = "AES256_SIV"


class KekCreation(Model):
    """A key that wraps others, as a client asks for it; what is missing is told by the rules, not by the parser."""

    name: str | None = None
    kms_type: str | None = None
    kms_key_id: str | None = None
    kms_props: dict[str, PropertyText] | None = None
    doc: str | None = None
    shared: bool | None = None
    deleted: bool | None = None


class KekChange(Model):
    """A change of such a key: an absent property stays as it is, a null clears it."""

    kms_props: dict[str, PropertyText] | None = None
    doc: str | None = None
    shared: bool | None = None


class Kek(Model):
    """A key that wraps others, as the registry returns it: without the secrets that unlock its service."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: dict[str, str]
    doc: str | None = None
    shared: bool
    ts: int
    deleted: bool | None = None


class DekCreation(Model):
    """A key for records, as a client asks for it."""

    subject: str | None = None
    version: int | None = None
    algorithm: str | None = None
    encrypted_key_material: str | None = None
    deleted: bool | None = None


class Dek(Model):
    """A key for records, as the registry returns it; its plain form only when the registry may unwrap it."""

    kek_name: str
    subject: str
    version: int
    algorithm: DekAlgorithm
    encrypted_key_material: str
    key_material: str | None = None
    ts: int
    deleted: bool | None = None
