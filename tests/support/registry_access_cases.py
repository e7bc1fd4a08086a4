"""One request for each route of the registry, and exactly the rights that it needs: what the walk of routes sends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SCHEMA: Final = '{"type":"record","name":"Order","fields":[]}'
_BODY: Final = {"schema": SCHEMA, "metadata": {"properties": {"owner": "team"}}}
_KEYS: Final = "/dek-registry/v1/keks"
_RESOURCE: Final = {"resourceName": "thing", "resourceNamespace": "thing", "resourceId": "r1"}
_ASSOCIATE: Final = {**_RESOURCE, "associations": [{"subject": "orders", "lifecycle": "WEAK"}]}
_OPERATIONS: Final = {
    **_RESOURCE,
    "associations": [{"opType": "UPSERT", "subject": "orders", "associationType": "value", "lifecycle": "WEAK"}],
}

Request = tuple[str, str, Any]


@dataclass(frozen=True)
class Case:
    """A request of a route."""

    needs: tuple[str, ...] = ()
    """Operations, each on the subject `orders` or on the registry."""
    body: Any = None
    before: tuple[Request, ...] = ()
    """What the administrator does first."""
    shows: str | None = None
    """Text that the response has only for those who may read the subject."""


def _on_subject(*operations: str, body: Any = None, before: tuple[Request, ...] = ()) -> Case:
    return Case(tuple(f"{operation} SUBJECT" for operation in operations), body, before)


def _on_registry(operation: str, *more: str, body: Any = None, before: tuple[Request, ...] = ()) -> Case:
    return Case((f"{operation} REGISTRY", *more), body, before)


def _on_key(operation: str, body: Any = None, *before: Request) -> Case:
    return Case(("READ REGISTRY", f"{operation} SUBJECT"), body, before)


_DELETED_DEK: Final[Request] = ("DELETE", f"{_KEYS}/thing/deks/orders", None)
_ASSOCIATED: Final[Request] = ("PUT", "/associations", _ASSOCIATE)
_ANYONE: Final = Case()

CASES: Final[Mapping[str, Case]] = {
    "GET /": _ANYONE,
    "POST /": _ANYONE,
    "GET /health": _ANYONE,
    "GET /metrics": _ANYONE,
    "GET /v1/metadata/id": _ANYONE,
    "GET /v1/metadata/version": _ANYONE,
    "GET /v1/metadata/deployment": _ANYONE,
    "GET /schemas/types": _ANYONE,
    "GET /schemas": Case(shows="orders"),
    "GET /schemas/ids/{schema_id}": Case(shows="Order"),
    "GET /schemas/ids/{schema_id}/schema": Case(shows="Order"),
    "GET /schemas/ids/{schema_id}/subjects": Case(shows="orders"),
    "GET /schemas/ids/{schema_id}/versions": Case(shows="orders"),
    "GET /schemas/guids/{guid}": Case(shows="Order"),
    "GET /schemas/guids/{guid}/ids": Case(shows='"id"'),
    "GET /subjects": Case(shows="orders"),
    "GET /contexts": Case(shows='"."'),
    "POST /subjects/{subject}": _on_subject("READ", body=_BODY),
    "DELETE /subjects/{subject}": _on_subject("DELETE"),
    "GET /subjects/{subject}/metadata": _on_subject("READ"),
    "GET /subjects/{subject}/versions": _on_subject("READ"),
    "POST /subjects/{subject}/versions": _on_subject("WRITE", body=_BODY),
    "GET /subjects/{subject}/versions/{version}": _on_subject("READ"),
    "DELETE /subjects/{subject}/versions/{version}": _on_subject("DELETE"),
    "GET /subjects/{subject}/versions/{version}/schema": _on_subject("READ"),
    "GET /subjects/{subject}/versions/{version}/referencedby": _on_subject("READ"),
    "POST /subjects/{subject}/versions/{version}/tags": _on_subject("WRITE", "READ", body={}),
    "POST /compatibility/subjects/{subject}/versions": _on_subject("READ", body=_BODY),
    "POST /compatibility/subjects/{subject}/versions/{version}": _on_subject("READ", body=_BODY),
    "GET /config": _on_registry("DESCRIBE_CONFIGS"),
    "PUT /config": _on_registry("ALTER_CONFIGS", body={"compatibility": "BACKWARD"}),
    "DELETE /config": _on_registry("ALTER_CONFIGS"),
    "GET /config/{subject}": _on_subject("DESCRIBE_CONFIGS"),
    "PUT /config/{subject}": _on_subject("ALTER_CONFIGS", body={"compatibility": "BACKWARD"}),
    "DELETE /config/{subject}": _on_subject("ALTER_CONFIGS"),
    "GET /mode": _on_registry("DESCRIBE_CONFIGS"),
    "PUT /mode": _on_registry("ALTER", body={"mode": "READWRITE"}),
    "DELETE /mode": _on_registry("ALTER"),
    "GET /mode/{subject}": _on_subject("DESCRIBE_CONFIGS"),
    "PUT /mode/{subject}": _on_subject("ALTER", body={"mode": "READWRITE"}),
    "DELETE /mode/{subject}": _on_subject("ALTER"),
    "DELETE /contexts/{context}": _on_registry(
        "DELETE",
        before=(
            ("POST", "/subjects/:.empty:x/versions", _BODY),
            ("DELETE", "/subjects/:.empty:x", None),
            ("DELETE", "/subjects/:.empty:x?permanent=true", None),
        ),
    ),
    "GET /security/acls": _on_registry("DESCRIBE"),
    "POST /security/acls": _on_registry("ALTER", body=[]),
    "DELETE /security/acls": _on_registry("ALTER", body=[]),
    f"GET {_KEYS}": _on_registry("READ"),
    f"POST {_KEYS}": _on_registry(
        "WRITE",
        body={"name": "thing", "kmsType": "local-kms", "kmsKeyId": "k", "shared": True},
        before=(("DELETE", f"{_KEYS}/thing/deks/orders", None), ("DELETE", f"{_KEYS}/thing", None)),
    ),
    f"GET {_KEYS}/{{name}}": _on_registry("READ"),
    f"PUT {_KEYS}/{{name}}": _on_registry("WRITE", body={"doc": "text"}),
    f"DELETE {_KEYS}/{{name}}": _on_registry("DELETE", before=(_DELETED_DEK,)),
    f"POST {_KEYS}/{{name}}/undelete": _on_registry("WRITE", before=(_DELETED_DEK, ("DELETE", f"{_KEYS}/thing", None))),
    f"POST {_KEYS}/{{name}}/test": _on_registry("WRITE"),
    f"GET {_KEYS}/{{name}}/deks": _on_registry("READ"),
    f"POST {_KEYS}/{{name}}/deks": _on_key("WRITE", {"subject": "orders", "version": 1}, _DELETED_DEK),
    f"GET {_KEYS}/{{name}}/deks/{{subject}}": _on_key("READ"),
    f"POST {_KEYS}/{{name}}/deks/{{subject}}": _on_key("WRITE", {"version": 1}, _DELETED_DEK),
    f"DELETE {_KEYS}/{{name}}/deks/{{subject}}": _on_key("DELETE"),
    f"POST {_KEYS}/{{name}}/deks/{{subject}}/undelete": _on_key("WRITE", None, _DELETED_DEK),
    f"GET {_KEYS}/{{name}}/deks/{{subject}}/versions": _on_key("READ"),
    f"GET {_KEYS}/{{name}}/deks/{{subject}}/versions/{{version}}": _on_key("READ"),
    f"DELETE {_KEYS}/{{name}}/deks/{{subject}}/versions/{{version}}": _on_key("DELETE"),
    f"POST {_KEYS}/{{name}}/deks/{{subject}}/versions/{{version}}/undelete": _on_key("WRITE", None, _DELETED_DEK),
    "GET /associations/subjects/{subject}": _on_subject("DESCRIBE", before=(_ASSOCIATED,)),
    "GET /associations/resources/{namespace}/{name}": Case(before=(_ASSOCIATED,), shows="orders"),
    "GET /associations/resources/{resource_id}": Case(before=(_ASSOCIATED,), shows="orders"),
    "POST /associations": _on_registry("WRITE", "WRITE SUBJECT", body=_ASSOCIATE),
    "PUT /associations": _on_registry("WRITE", "WRITE SUBJECT", body=_ASSOCIATE),
    "PUT /associations/resources/{resource_id}": _on_registry("WRITE", "WRITE SUBJECT", body=_ASSOCIATE),
    "DELETE /associations/resources/{resource_id}": _on_registry("DELETE", "WRITE SUBJECT", before=(_ASSOCIATED,)),
    "POST /associations:batchGet": Case(
        body={"requests": [{"resourceId": "r1"}]}, before=(_ASSOCIATED,), shows="orders"
    ),
    "POST /associations:batchMutate": _on_registry("WRITE", body={"requests": [_OPERATIONS]}),
}
PATHS: Final = {
    "subject": "orders",
    "version": "latest",
    "context": ".empty",
    "name": "thing",
    "namespace": "thing",
    "resource_id": "r1",
}
PREPARED: Final[tuple[Request, ...]] = (
    ("DELETE", "/associations/resources/r1", None),
    ("POST", "/subjects/orders/versions", _BODY),
    ("POST", "/subjects/other/versions", {"schema": '"string"'}),
    ("PUT", "/config/orders", {"compatibility": "NONE"}),
    ("PUT", "/mode/orders", {"mode": "READWRITE"}),
    ("POST", _KEYS, {"name": "thing", "kmsType": "local-kms", "kmsKeyId": "k", "shared": True}),
    ("POST", f"{_KEYS}/thing/undelete", None),
    ("POST", f"{_KEYS}/thing/deks", {"subject": "orders"}),
    ("POST", f"{_KEYS}/thing/deks/orders/undelete", None),
)
"""What there is before each request; what is there already may be refused."""
