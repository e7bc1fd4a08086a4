"""What a caller needs for each route: operations on the subject in the path, or on the registry as a whole.

A route that is not here is refused. The registry itself checks what is not in the path: the targets of aliases and
references (the same operation, or READ), and the subjects that a schema is found by.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import msgspec

from core_broker.web_access.rules import Operation


class On(Enum):
    """What an operation is needed on."""

    SUBJECT = auto()
    """The subject or context in the path; what is set for all subjects belongs to the registry."""
    REGISTRY = auto()


Need = tuple[Operation, On]


class Row(msgspec.Struct, frozen=True):
    """What a route needs, all of it."""

    needs: tuple[Need, ...] = ()
    is_change: bool = False
    """Whether it changes something, which the audit log should have."""


_ANYONE: Final = Row()
"""Every caller that has logged in: it says nothing about schemas."""
_FILTERED: Final = Row()
"""Every caller that has logged in; the response has only what the caller may see, or is a 404."""


def _reads(operation: Operation, on: On = On.SUBJECT, *others: Need) -> Row:
    return Row(((operation, on), *others))


def _changes(operation: Operation, on: On = On.SUBJECT, *others: Need) -> Row:
    return Row(((operation, on), *others), is_change=True)


_READ: Final = _reads(Operation.READ)
_KEYS: Final = _reads(Operation.READ, On.REGISTRY)
"""Shared keys are used with READ on the registry; what is done to those of a subject needs a right on it as well."""
_OF_SUBJECT: Final = (Operation.READ, On.REGISTRY)

ROWS: Final[Mapping[str, Row]] = {
    "GET /": _ANYONE,
    "POST /": _ANYONE,
    "GET /health": _ANYONE,
    "GET /metrics": _ANYONE,
    "GET /v1/metadata/id": _ANYONE,
    "GET /v1/metadata/version": _ANYONE,
    "GET /v1/metadata/deployment": _ANYONE,
    "GET /schemas/types": _ANYONE,
    # Lists, and schemas by what is the same in all subjects.
    "GET /schemas": _FILTERED,
    "GET /schemas/ids/{schema_id}": _FILTERED,
    "GET /schemas/ids/{schema_id}/schema": _FILTERED,
    "GET /schemas/ids/{schema_id}/subjects": _FILTERED,
    "GET /schemas/ids/{schema_id}/versions": _FILTERED,
    "GET /schemas/guids/{guid}": _FILTERED,
    "GET /schemas/guids/{guid}/ids": _FILTERED,
    "GET /subjects": _FILTERED,
    "GET /contexts": _FILTERED,
    # Subjects.
    "POST /subjects/{subject}": _READ,
    "DELETE /subjects/{subject}": _changes(Operation.DELETE),
    "GET /subjects/{subject}/metadata": _READ,
    "GET /subjects/{subject}/versions": _READ,
    "POST /subjects/{subject}/versions": _changes(Operation.WRITE),
    "GET /subjects/{subject}/versions/{version}": _READ,
    "DELETE /subjects/{subject}/versions/{version}": _changes(Operation.DELETE),
    "GET /subjects/{subject}/versions/{version}/schema": _READ,
    "GET /subjects/{subject}/versions/{version}/referencedby": _READ,
    "POST /subjects/{subject}/versions/{version}/tags": _changes(
        Operation.WRITE, On.SUBJECT, (Operation.READ, On.SUBJECT)
    ),
    "POST /compatibility/subjects/{subject}/versions": _READ,
    "POST /compatibility/subjects/{subject}/versions/{version}": _READ,
    # Configs and modes. A mode decides whether anyone may write, so changing it is more than changing a config.
    "GET /config": _reads(Operation.DESCRIBE_CONFIGS, On.REGISTRY),
    "PUT /config": _changes(Operation.ALTER_CONFIGS, On.REGISTRY),
    "DELETE /config": _changes(Operation.ALTER_CONFIGS, On.REGISTRY),
    "GET /config/{subject}": _reads(Operation.DESCRIBE_CONFIGS),
    "PUT /config/{subject}": _changes(Operation.ALTER_CONFIGS),
    "DELETE /config/{subject}": _changes(Operation.ALTER_CONFIGS),
    "GET /mode": _reads(Operation.DESCRIBE_CONFIGS, On.REGISTRY),
    "PUT /mode": _changes(Operation.ALTER, On.REGISTRY),
    "DELETE /mode": _changes(Operation.ALTER, On.REGISTRY),
    "GET /mode/{subject}": _reads(Operation.DESCRIBE_CONFIGS),
    "PUT /mode/{subject}": _changes(Operation.ALTER),
    "DELETE /mode/{subject}": _changes(Operation.ALTER),
    # The registry as a whole.
    "DELETE /contexts/{context}": _changes(Operation.DELETE, On.REGISTRY),
    "GET /security/acls": _reads(Operation.DESCRIBE, On.REGISTRY),
    "POST /security/acls": Row(((Operation.ALTER, On.REGISTRY),)),
    "DELETE /security/acls": Row(((Operation.ALTER, On.REGISTRY),)),
    # Keys.
    "GET /dek-registry/v1/keks": _KEYS,
    "POST /dek-registry/v1/keks": _changes(Operation.WRITE, On.REGISTRY),
    "GET /dek-registry/v1/keks/{name}": _KEYS,
    "PUT /dek-registry/v1/keks/{name}": _changes(Operation.WRITE, On.REGISTRY),
    "DELETE /dek-registry/v1/keks/{name}": _changes(Operation.DELETE, On.REGISTRY),
    "POST /dek-registry/v1/keks/{name}/undelete": _changes(Operation.WRITE, On.REGISTRY),
    "POST /dek-registry/v1/keks/{name}/test": _reads(Operation.WRITE, On.REGISTRY),
    "GET /dek-registry/v1/keks/{name}/deks": _KEYS,
    "POST /dek-registry/v1/keks/{name}/deks": _changes(Operation.READ, On.REGISTRY),
    "GET /dek-registry/v1/keks/{name}/deks/{subject}": _reads(Operation.READ, On.SUBJECT, _OF_SUBJECT),
    "POST /dek-registry/v1/keks/{name}/deks/{subject}": _changes(Operation.WRITE, On.SUBJECT, _OF_SUBJECT),
    "DELETE /dek-registry/v1/keks/{name}/deks/{subject}": _changes(Operation.DELETE, On.SUBJECT, _OF_SUBJECT),
    "POST /dek-registry/v1/keks/{name}/deks/{subject}/undelete": _changes(Operation.WRITE, On.SUBJECT, _OF_SUBJECT),
    "GET /dek-registry/v1/keks/{name}/deks/{subject}/versions": _reads(Operation.READ, On.SUBJECT, _OF_SUBJECT),
    "GET /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}": _reads(
        Operation.READ, On.SUBJECT, _OF_SUBJECT
    ),
    "DELETE /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}": _changes(
        Operation.DELETE, On.SUBJECT, _OF_SUBJECT
    ),
    "POST /dek-registry/v1/keks/{name}/deks/{subject}/versions/{version}/undelete": _changes(
        Operation.WRITE, On.SUBJECT, _OF_SUBJECT
    ),
    # Associations. Clients look for the subject of a topic here, so reading them needs no more than the subjects do.
    "GET /associations/subjects/{subject}": _reads(Operation.DESCRIBE),
    "GET /associations/resources/{namespace}/{name}": _FILTERED,
    "GET /associations/resources/{resource_id}": _FILTERED,
    "POST /associations": _changes(Operation.WRITE, On.REGISTRY),
    "PUT /associations": _changes(Operation.WRITE, On.REGISTRY),
    "PUT /associations/resources/{resource_id}": _changes(Operation.WRITE, On.REGISTRY),
    "DELETE /associations/resources/{resource_id}": _changes(Operation.DELETE, On.REGISTRY),
    "POST /associations:batchGet": _FILTERED,
    "POST /associations:batchMutate": _changes(Operation.WRITE, On.REGISTRY),
}
