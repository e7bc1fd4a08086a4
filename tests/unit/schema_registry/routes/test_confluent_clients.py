"""Keys and associations as Confluent's own client asks for them, over HTTP."""

import base64
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.common.schema_registry_client import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import (
    DekAlgorithm,
    DekRegistryClient,
)

from core_broker.service.clock import SystemClock
from core_broker.service.web import create_app
from schema_registry.errors import RegistryError
from schema_registry.registry.associations import Associations
from schema_registry.registry.deks import Deks
from schema_registry.registry.kms import LOCAL, LocalKms
from schema_registry.registry.registry import Registry
from schema_registry.routes import associations, deks, subjects
from schema_registry.routes.media_types import MediaTypes
from schema_registry.routes.paths import RegistryPaths
from schema_registry.settings import RegistrySettings
from tests.support.registry_database import new_database


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server with these routes listens; each test has names of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(_application(tmp_path_factory.mktemp("registry")), log_level="warning", ws="none")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def _application(directory: Path) -> RegistryPaths:
    database = new_database(directory)
    clock = SystemClock()
    registry = Registry(database, RegistrySettings(), clock)
    app = create_app(title="registry", description="", error_type=RegistryError, collect=list)
    app.include_router(subjects.router(registry))
    app.include_router(associations.router(Associations(database, clock, schemas=registry)))
    app.include_router(deks.router(Deks(database, clock, drivers={LOCAL: LocalKms("mysecret")})))
    app.router.on_shutdown.append(database.close)
    return RegistryPaths(MediaTypes(app))


@pytest.fixture
def keys(url: str) -> Iterator[DekRegistryClient]:
    with DekRegistryClient({"url": url}) as client:
        yield client


@pytest.fixture
def fresh_keys(url: str) -> Iterator[DekRegistryClient]:
    """A client that has nothing in its caches yet."""
    with DekRegistryClient({"url": url}) as client:
        yield client


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as client:
        yield client


# --- keys ---


def test_a_client_registers_keys_and_finds_them_again(
    keys: DekRegistryClient, fresh_keys: DekRegistryClient, name: str
) -> None:
    kek = keys.register_kek(name, "local-kms", "mykey", kms_props={"region": "here"}, doc="for orders")
    dek = keys.register_dek(name, "orders/eu-value", "d3JhcHBlZA==")

    assert fresh_keys.get_kek(name) == kek
    assert fresh_keys.get_dek(name, "orders/eu-value") == dek
    assert (kek.shared, kek.doc) == (False, "for orders")
    assert (dek.version, dek.algorithm, dek.key_material) == (1, DekAlgorithm.AES256_GCM, None)


def test_a_client_gets_a_shared_key_in_plain(keys: DekRegistryClient, name: str) -> None:
    keys.register_kek(name, "local-kms", "mykey", shared=True)
    # Its annotation says str, its own callers pass None for a key that the registry makes.
    made = keys.register_dek(name, "orders-value", None, algorithm=DekAlgorithm.AES256_SIV)  # type: ignore[arg-type]

    latest = keys.get_dek(name, "orders-value", algorithm=DekAlgorithm.AES256_SIV, version=-1)
    assert latest.get_key_material_bytes() == made.get_key_material_bytes()
    wrapped = base64.b64decode(made.encrypted_key_material or "")
    assert LocalKms("mysecret")("mykey", {}).unwrap(wrapped) == made.get_key_material_bytes()


def test_a_client_learns_that_a_key_is_missing_or_taken(
    keys: DekRegistryClient, fresh_keys: DekRegistryClient, name: str
) -> None:
    with pytest.raises(SchemaRegistryError) as missing:
        keys.get_kek(name)
    keys.register_kek(name, "local-kms", "mykey", context=".staging")
    with pytest.raises(SchemaRegistryError) as taken:
        fresh_keys.register_kek(name, "local-kms", "another")

    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40470)
    assert (taken.value.http_status_code, taken.value.error_code) == (409, 40971)


# --- associations ---


def test_a_client_associates_a_topic_and_deletes_that_again(client: SchemaRegistryClient, name: str) -> None:
    client.register_schema(f"{name}-custom", Schema('"int"', "AVRO"))
    answer = client.create_association(
        AssociationCreateOrUpdateRequest(
            resource_name=name,
            resource_namespace="-",
            resource_id=f"-:{name}",
            resource_type="topic",
            associations=[
                AssociationCreateOrUpdateInfo(subject=f"{name}-custom", association_type="value", lifecycle="STRONG")
            ],
        )
    )

    assert answer.associations is not None
    assert answer.associations[0].subject == f"{name}-custom"
    (found,) = client.get_associations_by_resource_name(name, "-", "topic", ["value"])
    assert (found.subject, found.resource_id) == (f"{name}-custom", f"-:{name}")
    client.delete_associations(f"-:{name}", "topic", ["value"], cascade_lifecycle=True)
    assert client.get_associations_by_resource_name(name, "-", "topic", ["value"]) == []
    assert f"{name}-custom" not in client.get_subjects(deleted=True)


def test_a_client_brings_the_schema_along(client: SchemaRegistryClient, name: str) -> None:
    answer = client.create_association(
        AssociationCreateOrUpdateRequest(
            resource_name=name,
            resource_namespace="lkc1",
            resource_id=name,
            associations=[AssociationCreateOrUpdateInfo(schema=Schema('"int"', "AVRO"))],
        )
    )

    assert answer.associations is not None
    association = answer.associations[0]
    assert (association.subject, association.frozen) == (f":.lkc1:{name}-value", True)
    assert association.schema is not None
    assert association.schema.schema_str == '"int"'
