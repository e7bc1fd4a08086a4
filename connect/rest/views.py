"""Responses in the OpenAPI document: the structs that are encoded, as models that FastAPI can describe."""

from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.config import JsonDict

from connect.runtime.models import ConnectorInfo, ConnectorStatus

CONFIG: Final[JsonDict] = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "tasks.max": "1",
    "topics": "orders",
    "file": "/tmp/orders.txt",
}
_EXAMPLES: Final[dict[type[msgspec.Struct], JsonDict]] = {
    ConnectorInfo: {
        "name": "orders-to-file",
        "config": {"name": "orders-to-file", **CONFIG},
        "tasks": [{"connector": "orders-to-file", "task": 0}],
        "type": "sink",
    },
    ConnectorStatus: {
        "name": "orders-to-file",
        "connector": {"state": "RUNNING", "worker_id": "connect-1:8083"},
        "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "connect-1:8083"}],
        "type": "sink",
    },
}


def view(kind: Any) -> Any:
    """A type with its structs replaced by models, for `response_model=`."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _model(kind)
    if get_origin(kind) is None or get_origin(kind) is Literal:
        return kind
    arguments = tuple(view(argument) for argument in get_args(kind))
    return Union[arguments] if get_origin(kind) is UnionType else get_origin(kind)[arguments]  # noqa: UP007 - of a tuple


@cache
def _model(struct: type[msgspec.Struct]) -> type[BaseModel]:
    """The model of a struct; descriptions are those of its fields' `msgspec.Meta`."""
    omits_defaults = struct.__struct_config__.omit_defaults
    fields: dict[str, Any] = {}
    for found in msgspec.structs.fields(struct):
        kind, *metas = get_args(found.type) if get_origin(found.type) is Annotated else (found.type,)
        described: dict[str, Any] = {"alias": found.encode_name}
        for meta in metas:
            described |= {"description": meta.description, "examples": meta.examples}
        if omits_defaults and not found.required:
            described["default"] = found.default
        fields[found.name] = (view(kind), Field(**described))
    example = _EXAMPLES.get(struct)
    config = ConfigDict(json_schema_extra={"examples": [example]} if example else None)
    return create_model(struct.__name__, __config__=config, __doc__=struct.__doc__, **fields)
