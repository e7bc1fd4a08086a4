import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from typing_extensions import override

from deploy.views.schemas import SubjectVersion, format_schema, parse_subject_version
from schema_registry.client.models import SchemaDefinition
from schema_registry.formats.schema import SchemaType
from tests.support.command import Caudal
from tests.support.fake_registry import FakeRegistry


def _ok(value: object) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()


@pytest.fixture
def caudal(monkeypatch: pytest.MonkeyPatch) -> Caudal:
    return Caudal(monkeypatch)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        monkeypatch.setenv("CAUDAL_REGISTRY", running.url)
        yield running


@pytest.mark.parametrize(
    "text,place",
    [
        ("orders-value", SubjectVersion("orders-value")),
        ("orders-value@2", SubjectVersion("orders-value", 2)),
        ("orders-value@latest", SubjectVersion("orders-value", "latest")),
        (":.staging:orders@12", SubjectVersion(":.staging:orders", 12)),
        ("me@example.com", SubjectVersion("me@example.com")),
        ("me@example.com@3", SubjectVersion("me@example.com", 3)),
        ("@1", SubjectVersion("@1")),
    ],
)
def test_place_is_a_subject_with_or_without_a_version(text: str, place: SubjectVersion) -> None:
    assert parse_subject_version(text) == place
    assert str(place) == text


def test_pretty_text_keeps_what_was_spelt() -> None:
    text = format_schema(SchemaDefinition('{"a":1.50,"b":[],"c":"\\u00e9"}', SchemaType.JSON))
    assert text == '{\n  "a": 1.50,\n  "b": [],\n  "c": "\\u00e9"\n}'
    assert format_schema(SchemaDefinition("message A {}\n", SchemaType.PROTOBUF)) == "message A {}"
    assert format_schema(SchemaDefinition("{broken")) == "{broken"


def test_registry_that_cannot_list_schemas_is_asked_for_each(caudal: Caudal, registry: FakeRegistry) -> None:
    registry.answers["/subjects"] = _ok(["orders", "users"])  # the prefix is not understood either
    for number in (1, 2):
        schema = {"subject": "orders", "version": number, "id": number + 6, "schema": '"int"'}
        registry.answers[f"/subjects/orders/versions/{number}"] = _ok(schema)
    registry.answers["/subjects/users/versions"] = _ok([1])
    registry.answers["/subjects/users/versions/1"] = _ok({"subject": "users", "version": 1, "id": 1, "schema": '"int"'})
    registry.answers["/subjects/orders/versions"] = _ok([1, 2])
    registry.answers["/config/orders"] = _ok({"compatibilityLevel": "FULL"})
    expected = {"subject": "orders", "version": 2, "id": 8, "type": "AVRO", "level": "FULL", "deleted": False}
    assert caudal.json("schema", "list", "ord") == [expected]
    assert [row["version"] for row in caudal.json("schema", "list", "ord", "--versions")] == [1, 2]


class _PagedRegistry(FakeRegistry):
    """Has more subjects than it tells at once."""

    @override
    def respond(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        parts = urlsplit(target)
        if parts.path.startswith("/config"):
            return _ok({"compatibilityLevel": "BACKWARD"})
        offset = int(parse_qs(parts.query)["offset"][0])
        names = [f"subject-{number:04}" for number in range(offset, min(offset + 1000, 1005))]
        return _ok([{"subject": name, "version": 1, "id": 1, "schema": '"int"'} for name in names])


def test_more_subjects_than_fit_in_one_answer_are_all_listed() -> None:
    from schema_registry.client.registry_client import RegistryClient
    from schema_registry.client.settings import RegistryClientSettings

    with _PagedRegistry() as registry, RegistryClient(RegistryClientSettings(urls=(registry.url,))) as client:
        found = client.schemas()
    assert [item.subject for item in found] == [f"subject-{number:04}" for number in range(1005)]


def test_a_refused_user_learns_how_to_give_credentials(caudal: Caudal, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeRegistry(credentials="me:secret") as registry:
        monkeypatch.setenv("CAUDAL_REGISTRY", registry.url)
        assert "--user name:password" in caudal("schema", "show", "orders", code=1).stderr
        registry.answers["/subjects/orders/versions/latest"] = _ok({"schema": '"int"', "version": 1, "id": 1})
        assert caudal("schema", "show", "orders", "--user", "me:secret").stdout == '"int"\n'


def test_trouble_inside_the_registry_is_not_taken_for_its_absence(caudal: Caudal, registry: FakeRegistry) -> None:
    registry.answers["/config"] = (500, b'{"error_code":50001,"message":"the store is away"}')
    error = caudal("schema", "compatibility", "-X", "retries.wait.ms=1", code=1).stderr
    assert "The registry failed: the store is away" in error
    assert "caudal registry" not in error
