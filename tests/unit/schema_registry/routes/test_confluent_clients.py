"""Keys and associations as Confluent's own client asks for them, over HTTP."""

import base64
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
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

from schema_registry.registry.kms import LocalKms

pytestmark = pytest.mark.processes


@pytest.fixture
def keys(registry_url: str) -> Iterator[DekRegistryClient]:
    with DekRegistryClient({"url": registry_url}) as client:
        yield client


@pytest.fixture
def fresh_keys(registry_url: str) -> Iterator[DekRegistryClient]:
    """A client that has nothing in its caches yet."""
    with DekRegistryClient({"url": registry_url}) as client:
        yield client


@pytest.fixture
def client(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
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
    keys.register_kek(name, "local-kms", "mykey", shared=True, kms_props={"secret": "mysecret"})
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


def strong(name: str) -> AssociationCreateOrUpdateRequest:
    """A topic that a subject of its own belongs to."""
    association = AssociationCreateOrUpdateInfo(subject=f"{name}-custom", association_type="value", lifecycle="STRONG")
    return AssociationCreateOrUpdateRequest(
        resource_name=name,
        resource_namespace="-",
        resource_id=f"-:{name}",
        resource_type="topic",
        associations=[association],
    )


def test_a_client_associates_a_topic_and_deletes_that_again(client: SchemaRegistryClient, name: str) -> None:
    client.register_schema(f"{name}-custom", Schema('"int"', "AVRO"))
    answer = client.create_association(strong(name))

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


def test_an_associated_subject_is_not_deleted(client: SchemaRegistryClient, name: str) -> None:
    client.register_schema(f"{name}-custom", Schema('"int"', "AVRO"))
    client.create_association(strong(name))

    with pytest.raises(SchemaRegistryError) as subject:
        client.delete_subject(f"{name}-custom")
    with pytest.raises(SchemaRegistryError) as version:
        client.delete_version(f"{name}-custom", 1)

    assert (subject.value.http_status_code, subject.value.error_code) == (409, 40904)
    assert (version.value.http_status_code, version.value.error_code) == (409, 40907)


def test_a_schema_that_went_with_its_topic_is_forgotten_at_once(
    registry_url: str, client: SchemaRegistryClient, name: str
) -> None:
    text = f'{{"type":"enum","name":"E","symbols":["{name.replace("-", "_")}"]}}'
    schema_id = client.register_schema(f"{name}-custom", Schema(text, "AVRO"))
    client.create_association(strong(name))
    with urlopen(f"{registry_url}/schemas/ids/{schema_id}") as answer:
        assert answer.status == 200

    client.delete_associations(f"-:{name}", "topic", cascade_lifecycle=True)

    with pytest.raises(HTTPError) as gone:
        urlopen(f"{registry_url}/schemas/ids/{schema_id}")
    with gone.value:
        assert gone.value.code == 404
