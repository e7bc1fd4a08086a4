import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core_broker.service.clock import ManualClock
from schema_registry.client.errors import IncompatibleSchema, Refused, SchemaNotFound
from schema_registry.client.models import Reference, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.formats.schema import SchemaType
from tests.support.scripted_http import ScriptedHttp

pytestmark = pytest.mark.processes

GUID = "89791762-2336-4186-9674-299b90a802e2"


def _record(name: str, **types: object) -> str:
    fields = [{"name": key, "type": type_} for key, type_ in types.items()]
    return json.dumps({"type": "record", "name": name, "fields": fields})


FIRST = SchemaDefinition(_record("R", a="int"))
SECOND = SchemaDefinition(
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "int"], "default": None}],
        }
    )
)
INCOMPATIBLE = SchemaDefinition(_record("R", a="string", c="long"))


# --- against a running registry --------------------------------------------------------------------------------------


def test_a_registered_schema_is_found_in_every_way(client: RegistryClient, name: str) -> None:
    registered = client.register(name, FIRST)
    assert registered.id is not None
    assert registered.guid is not None
    found = [
        client.by_id(registered.id),
        client.by_guid(registered.guid),
        client.version(name, 1),
        client.version(name, "latest"),
        client.version(name, -1),
        client.latest(name),
        client.lookup(name, FIRST),
    ]
    assert {json.dumps(json.loads(schema.definition.text)) for schema in found} == {FIRST.text}
    assert {schema.version for schema in found[2:]} == {1}
    assert client.lookup(name, FIRST).id == registered.id


def test_registering_again_gives_the_same_id(client: RegistryClient, name: str) -> None:
    assert client.register(name, FIRST).id == client.register(name, FIRST).id


def test_subjects_and_versions_are_listed(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST)
    client.register(name, SECOND)
    assert client.versions(name) == [1, 2]
    assert client.subjects(prefix=name) == [name]


@pytest.mark.parametrize("suffix", ["a/b", "100%", "a b", "ä€", ":.context:x", "a?b#c", "..", "+"])
def test_subjects_may_have_any_characters(client: RegistryClient, name: str, suffix: str) -> None:
    subject = suffix + name if suffix.startswith(":") else f"{name} {suffix}"
    client.register(subject, FIRST)
    assert client.versions(subject) == [1]
    assert client.latest(subject).subject == subject
    assert subject in client.subjects(prefix=subject)


def test_an_incompatible_schema_is_refused_with_every_reason(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST)
    with pytest.raises(IncompatibleSchema) as refusal:
        client.register(name, INCOMPATIBLE)
    assert any("TYPE_MISMATCH" in message for message in refusal.value.messages)
    assert any("READER_FIELD_MISSING_DEFAULT_VALUE" in message for message in refusal.value.messages)


def test_compatibility_can_be_asked_first(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST)
    assert client.is_compatible(name, SECOND).is_compatible
    verdict = client.is_compatible(name, INCOMPATIBLE, version=None)
    assert not verdict.is_compatible
    assert any("TYPE_MISMATCH" in message for message in verdict.messages)


def test_missing_schemas_are_reported_as_such(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST)
    for ask in (
        lambda: client.by_id(2_000_000_000),
        lambda: client.by_guid(GUID),
        lambda: client.version(name, 9),
        lambda: client.latest(f"{name}-missing"),
        lambda: client.lookup(name, SECOND),
        lambda: client.versions(f"{name}-missing"),
        lambda: client.delete_subject(f"{name}-missing"),
    ):
        with pytest.raises(SchemaNotFound) as missing:
            ask()
        assert missing.value.code // 100 == 404


def test_an_invalid_schema_is_refused(client: RegistryClient, name: str) -> None:
    with pytest.raises(Refused) as refusal:
        client.register(name, SchemaDefinition('{"type": "nothing"}'))
    assert refusal.value.code == 42201


def test_a_version_is_a_number_or_the_latest(client: RegistryClient, name: str) -> None:
    with pytest.raises(Refused, match="'first'"):
        client.version(name, "first")


def test_what_was_deleted_is_not_remembered(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST)
    client.register(name, SECOND)
    assert client.latest(name).version == 2
    assert client.delete_version(name, 2) == 2
    assert client.latest(name).version == 1
    assert client.delete_subject(name) == [1]
    with pytest.raises(SchemaNotFound):
        client.lookup(name, FIRST)
    assert client.register(name, FIRST).version == 3
    assert client.delete_subject(name) == [3]
    assert client.delete_subject(name, permanent=True)


def test_registering_makes_the_latest_version_known(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST)
    assert client.latest(name).version == 1
    client.register(name, SECOND)
    assert client.latest(name).version == 2


def test_levels_are_read_and_set_for_one_subject(client: RegistryClient, name: str) -> None:
    assert client.config()["compatibilityLevel"] == client.config(name)["compatibilityLevel"] == "BACKWARD"
    client.set_config(name, {"compatibility": "NONE"})
    assert client.config(name, default_to_global=False)["compatibilityLevel"] == "NONE"
    client.register(name, FIRST)
    client.register(name, INCOMPATIBLE)
    client.delete_config(name)
    with pytest.raises(SchemaNotFound):
        client.config(name, default_to_global=False)


def test_metadata_is_kept(client: RegistryClient, name: str) -> None:
    client.register(name, FIRST, metadata={"properties": {"owner": "ann"}})
    assert client.latest(name).metadata == {"properties": {"owner": "ann"}}


def test_references_are_resolved_transitively(client: RegistryClient, name: str) -> None:
    client.register(f"{name}-c", SchemaDefinition(_record("C", n="int")))
    b = SchemaDefinition(_record("B", c="C"), references=(Reference("C", f"{name}-c", 1),))
    client.register(f"{name}-b", b)
    a = SchemaDefinition(
        _record("A", b="B", c="C"), references=(Reference("B", f"{name}-b", 1), Reference("C", f"{name}-c", -1))
    )
    registered = client.register(name, a)
    assert registered.id is not None
    stored = client.by_id(registered.id).definition
    assert [(found.name, found.version) for found in client.references(stored)] == [("C", 1), ("B", 1)]


@pytest.mark.parametrize(
    "definition",
    [
        SchemaDefinition('{"type":"object"}', SchemaType.JSON),
        SchemaDefinition('syntax = "proto3";\nmessage M {\n  string s = 1;\n}\n', SchemaType.PROTOBUF),
    ],
)
def test_all_formats_come_back_as_what_they_are(
    client: RegistryClient, name: str, definition: SchemaDefinition
) -> None:
    registered = client.register(name, definition)
    assert registered.id is not None
    stored = client.by_id(registered.id).definition
    assert stored.schema_type is definition.schema_type
    assert "".join(stored.text.split()) == "".join(definition.text.split())


# --- against a script: what is asked, and how often ------------------------------------------------------------------


def _answer(**values: object) -> tuple[int, bytes]:
    return 200, json.dumps(values).encode()


MISSING = (404, b'{"error_code":40403,"message":"Schema 7 not found"}')
KNOWN = _answer(schema='"int"', id=7, guid=GUID, subject="s", version=3)


@contextmanager
def _scripted(
    *answers: tuple[int, bytes], clock: ManualClock | None = None
) -> Iterator[tuple[RegistryClient, ScriptedHttp]]:
    with ScriptedHttp(*answers) as server:
        settings = RegistryClientSettings.parse({"url": server.url, "max.retries": 0, "cache.latest.ttl.sec": 5})
        with RegistryClient(settings, clock=clock or ManualClock()) as client:
            yield client, server


def test_what_never_changes_is_asked_once() -> None:
    with _scripted(KNOWN) as (client, server):
        definition = SchemaDefinition('"int"')
        assert client.known(7) is client.known_guid(GUID) is client.known_registered("s", definition) is None
        for _ in range(3):
            client.by_id(7)
            client.by_guid(GUID)
            client.version("s", 3)
            client.register("s", definition)
            client.lookup("s", definition)
        assert server.targets == [
            "GET /schemas/ids/7",
            f"GET /schemas/guids/{GUID}",
            "GET /subjects/s/versions/3",
            "POST /subjects/s/versions",
        ]
        for known in (client.known(7), client.known_guid(GUID), client.known_registered("s", definition)):
            assert known is not None
            assert known.id == 7


def test_the_latest_version_is_believed_for_a_while() -> None:
    clock = ManualClock()
    with _scripted(KNOWN, clock=clock) as (client, server):
        client.latest("s")
        clock.advance(4_999)
        client.latest("s")
        assert client.known_latest("s") is not None
        clock.advance(1)
        assert client.known_latest("s") is None
        client.latest("s")
        assert len(server.requests) == 2


def test_a_flood_of_one_unknown_id_is_one_request_a_second() -> None:
    clock = ManualClock()
    with _scripted(MISSING, MISSING, KNOWN, clock=clock) as (client, server):
        for _ in range(5):
            with pytest.raises(SchemaNotFound, match="Schema 7 not found"):
                client.by_id(7)
        assert len(server.requests) == 1
        clock.advance(1_000)
        with pytest.raises(SchemaNotFound):
            client.by_id(7)
        clock.advance(1_000)
        assert client.by_id(7).definition.text == '"int"'


def test_an_id_that_was_missing_is_found_once_it_is_registered() -> None:
    with _scripted(MISSING, _answer(id=7), KNOWN) as (client, _):
        with pytest.raises(SchemaNotFound):
            client.by_id(7)
        client.register("s", SchemaDefinition('"int"'))
        assert client.by_id(7).id == 7


def test_answers_of_older_registries_suffice() -> None:
    with _scripted(_answer(id=7), _answer(schema='"int"')) as (client, _):
        registered = client.register("s", SchemaDefinition('"int"'))
        assert (registered.id, registered.guid, registered.version, registered.subject) == (7, None, None, "s")
        assert registered.definition.text == '"int"'
        assert client.by_id(7).definition.schema_type is SchemaType.AVRO


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"schema": 5}', b'{"id": "x"}', b"{}", b"[" * 100_000])
def test_answers_that_are_none_are_refused(body: bytes) -> None:
    with _scripted((200, body)) as (client, _):
        with pytest.raises(Refused, match="the registry's response"):
            client.by_id(7)
        with pytest.raises(Refused, match="the registry's response"):
            client.register("s", SchemaDefinition('"int"'))


def test_a_subject_selects_the_context_of_an_id() -> None:
    with _scripted(KNOWN) as (client, server):
        client.by_id(7, subject=":.dev:s")
        client.by_id(7)
        assert server.targets == ["GET /schemas/ids/7?subject=%3A.dev%3As", "GET /schemas/ids/7"]
