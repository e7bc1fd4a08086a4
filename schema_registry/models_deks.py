"""The bodies of the key registry, with the property names of Confluent's clients."""

from enum import StrEnum

from schema_registry.models import Model, PropertyText


class DekAlgorithm(StrEnum):
    """The algorithm that a data encryption key is for."""

    AES128_GCM = "AES128_GCM"
    AES256_GCM = "AES256_GCM"
    AES256_SIV = "AES256_SIV"


class KekCreation(Model):
    """A key encryption key to create; the registry's rules check which fields are missing, not this model."""

    name: str | None = None
    kms_type: str | None = None
    kms_key_id: str | None = None
    kms_props: dict[str, PropertyText] | None = None
    doc: str | None = None
    shared: bool | None = None
    deleted: bool | None = None


class KekChange(Model):
    """A change of a key encryption key: absent properties stay as they are, null clears one."""

    kms_props: dict[str, PropertyText] | None = None
    doc: str | None = None
    shared: bool | None = None


class Kek(Model):
    """A key encryption key as the registry returns it, without the credentials of its service."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: dict[str, str]
    doc: str | None = None
    shared: bool
    ts: int
    deleted: bool | None = None


class DekCreation(Model):
    """A data encryption key to create."""

    subject: str | None = None
    version: int | None = None
    algorithm: str | None = None
    encrypted_key_material: str | None = None
    deleted: bool | None = None


class Dek(Model):
    """A data encryption key as the registry returns it, in plain form only if the registry may unwrap it."""

    kek_name: str
    subject: str
    version: int
    algorithm: DekAlgorithm
    encrypted_key_material: str
    key_material: str | None = None
    ts: int
    deleted: bool | None = None
