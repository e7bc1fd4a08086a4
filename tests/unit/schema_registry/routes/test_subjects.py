"""Versions of subjects over HTTP."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from starlette.testclient import TestClient

from core_broker.service.clock import ManualClock
from core_broker.service.web.app import create_app
from schema_registry.errors import RegistryError
from schema_registry.registry.registry import Registry
from schema_registry.routes import subjects
from schema_registry.settings import RegistrySettings
from tests.support.registry_access import open_to_all
from tests.support.registry_database import new_database

TEXT = 'syntax = "proto3";\npackage shop;\n\nmessage Order {}\n'


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    database = new_database(tmp_path)
    app = create_app(title="subjects", description="", error_type=RegistryError, collect=list)
    open_to_all(app)
    app.include_router(subjects.router(Registry(database, RegistrySettings(), ManualClock(1_000))))
    with TestClient(app) as client:
        yield client
    database.close()


def descriptor() -> str:
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Order")
    return base64.b64encode(file.SerializeToString()).decode()


@pytest.mark.parametrize(
    ("kind", "sent", "style", "expected"),
    [
        ("PROTOBUF", TEXT, "", TEXT),
        ("PROTOBUF", descriptor(), "", None),
        ("PROTOBUF", descriptor(), "default", TEXT),
        ("JSON", "true", "", "true"),
        ("AVRO", '"int"', "", '"int"'),
    ],
)
def test_a_client_that_registers_a_descriptor_gets_a_text_only_on_request(
    client: TestClient, kind: str, sent: str, style: str, expected: str | None
) -> None:
    body = {"schema": sent, "schemaType": kind}
    for _ in ("a new version", "one that is there"):
        answer = client.post("/subjects/orders/versions", params={"format": style}, json=body).json()
        assert (answer["id"], answer["version"], answer.get("schema")) == (1, 1, expected)
