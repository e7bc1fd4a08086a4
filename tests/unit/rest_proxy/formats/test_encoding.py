import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from core_broker.service.clock import ManualClock
from rest_proxy.errors import ProxyError
from rest_proxy.formats.encoding import Encoder, Encoders
from rest_proxy.formats.formats import Format, SchemaChoice
from rest_proxy.formats.rules import V2, V3
from rest_proxy.formats.schema_choices import Target
from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.subject_names import SubjectNameStrategy
from tests.support.fake_registry import FakeRegistry
from tests.support.registry import RegistryProcess
from tests.support.scripted_http import ScriptedHttp
from tests.support.serde_schemas import AVRO, JSON, PROTOBUF, Example

pytestmark = pytest.mark.processes

EXAMPLES: Mapping[Format, Example] = {Format.AVRO: AVRO, Format.JSONSCHEMA: JSON, Format.PROTOBUF: PROTOBUF}
WITH_SCHEMA = pytest.mark.parametrize("format_", EXAMPLES)
NULL = msgspec.Raw(b"null")
LATEST = (200, b'{"schema":"\\"string\\"","id":1,"version":1,"subject":"s"}')


def raw(view: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(view).encode())


def read(client: RegistryClient, data: bytes | None) -> Any:
    decoded = Deserializer(client).deserialize_json(data)
    assert decoded is not None
    return decoded.value


async def refused(encoders: Encoders, format_: Format | None, topic: str, choice: SchemaChoice) -> ProxyError:
    with pytest.raises(ProxyError) as error:
        await encoders.encoder(Target(format_, topic, is_key=False, choice=choice))
    return error.value


@pytest.mark.parametrize(
    ("format_", "text", "data"),
    [(Format.BINARY, b'"Zm9v"', b"foo"), (Format.JSON, b'{"a": 1}', b'{"a":1}'), (Format.STRING, b'"foo"', b"foo")],
)
def test_formats_without_schema_are_always_ready(
    client: RegistryClient, format_: Format, text: bytes, data: bytes
) -> None:
    async def encoder() -> Encoder | None:
        return Encoders(client).ready(Target(format_, "topic", is_key=False))

    ready = asyncio.run(encoder())
    assert ready is not None
    assert (ready.format, ready.schema, ready.encode(msgspec.Raw(text))) == (format_, None, data)


async def test_schemas_are_ignored_by_v2_and_refused_by_v3_where_a_format_has_none(client: RegistryClient) -> None:
    choice = SchemaChoice(schema_id=7)
    assert Encoders(client, V2).ready(Target(Format.JSON, "topic", is_key=False, choice=choice)) is not None
    assert Encoders(client, V3).ready(Target(Format.JSON, "topic", is_key=False, choice=choice)) is None
    assert (await refused(Encoders(client, V3), Format.JSON, "topic", choice)).code == 400


@WITH_SCHEMA
@pytest.mark.parametrize("is_key", [True, False])
async def test_a_schema_given_by_its_text_is_registered_and_used(
    client: RegistryClient, name: str, format_: Format, is_key: bool
) -> None:
    example = EXAMPLES[format_]
    encoder = await Encoders(client).encoder(
        Target(format_, name, is_key=is_key, choice=SchemaChoice(schema=example.definition.text))
    )
    subject = f"{name}-key" if is_key else f"{name}-value"
    assert encoder.format is format_
    assert encoder.schema is not None
    assert (encoder.schema.subject, encoder.schema.version) == (subject, 1)
    assert encoder.schema.id == client.latest(subject).id
    for view in (example.view, example.other_view):
        assert read(client, encoder.encode(raw(view))) == view


@WITH_SCHEMA
async def test_an_existing_schema_is_found_by_id_version_and_subject(
    client: RegistryClient, name: str, format_: Format
) -> None:
    example = EXAMPLES[format_]
    there = client.lookup(f"{name}-value", client.register(f"{name}-value", example.definition).definition)
    encoders = Encoders(client)
    for topic, choice in [
        (name, SchemaChoice(schema_id=there.id)),
        (name, SchemaChoice(schema_version=1)),
        (name, SchemaChoice(schema_version="latest")),
        (name, SchemaChoice()),
        ("other", SchemaChoice(subject=f"{name}-value")),
        ("other", SchemaChoice(subject=f"{name}-value", schema_id=there.id)),
    ]:
        encoder = await encoders.encoder(Target(None, topic, is_key=False, choice=choice))
        assert encoder.format is format_
        assert encoder.schema is not None
        assert (encoder.schema.id, encoder.schema.subject, encoder.schema.version) == (there.id, f"{name}-value", 1)
        assert read(client, encoder.encode(raw(example.view))) == example.view


@pytest.mark.parametrize("format_", EXAMPLES)
async def test_strategies_name_the_subject(client: RegistryClient, name: str, format_: Format) -> None:
    example = EXAMPLES[format_]
    choice = SchemaChoice(schema=example.definition.text, strategy=SubjectNameStrategy.TOPIC_RECORD_NAME)
    encoder = await Encoders(client).encoder(Target(format_, name, is_key=False, choice=choice))
    assert encoder.schema is not None
    assert encoder.schema.subject == f"{name}-{example.record_name}"


async def test_a_strategy_by_record_needs_a_schema(client: RegistryClient, name: str) -> None:
    error = await refused(Encoders(client), None, name, SchemaChoice(strategy=SubjectNameStrategy.RECORD_NAME))
    assert (error.code, error.message) == (
        400,
        "Cannot use subject_name_strategy=RECORD_NAME without schema_id or schema.",
    )


@WITH_SCHEMA
@pytest.mark.parametrize(("rules", "code"), [(V2, 42203), (V3, 400)])
async def test_data_that_does_not_match_its_schema_is_refused(
    client: RegistryClient, name: str, format_: Format, rules: Any, code: int
) -> None:
    example = EXAMPLES[format_]
    choice = SchemaChoice(schema=example.definition.text)
    encoder = await Encoders(client, rules).encoder(Target(format_, name, is_key=False, choice=choice))
    for data in (
        raw(example.bad_view),
        msgspec.Raw(b"1e999"),
        msgspec.Raw(b'{"id":"\xff"}'),
        msgspec.Raw(b"[" * 10_000),
    ):
        with pytest.raises(ProxyError, match=f"Conversion of JSON to {format_} failed") as error:
            encoder.encode(data)
        assert error.value.code == code


async def test_an_error_deep_inside_has_a_short_message(client: RegistryClient, name: str) -> None:
    choice = SchemaChoice(schema='syntax = "proto3"; message A { A a = 1; }')
    encoder = await Encoders(client).encoder(Target(Format.PROTOBUF, name, is_key=False, choice=choice))
    with pytest.raises(ProxyError, match="Message too deep") as error:
        encoder.encode(msgspec.Raw(b'{"a":' * 500 + b"{}" + b"}" * 500))
    assert len(error.value.message) < 900


@WITH_SCHEMA
async def test_null_is_a_tombstone_with_and_without_a_schema(
    client: RegistryClient, name: str, format_: Format
) -> None:
    choice = SchemaChoice(schema=EXAMPLES[format_].definition.text)
    encoders = Encoders(client, V2)
    for encoder in (
        await encoders.encoder(Target(format_, name, is_key=False, choice=choice)),
        await encoders.encoder(Target(format_, name, is_key=False)),
    ):
        assert encoder.encode(NULL) is None
        assert encoder.encode(msgspec.Raw()) is None


@WITH_SCHEMA
@pytest.mark.parametrize(("is_key", "code"), [(True, 42201), (False, 42202)])
async def test_v2_requires_a_schema_unless_the_data_is_null(
    client: RegistryClient, format_: Format, is_key: bool, code: int
) -> None:
    encoder = Encoders(client, V2).ready(Target(format_, "topic", is_key=is_key))
    assert encoder is not None
    with pytest.raises(ProxyError, match=f"does not include {'key' if is_key else 'value'} schema") as error:
        encoder.encode(msgspec.Raw(b"{}"))
    assert error.value.code == code


@pytest.mark.parametrize(
    ("choice", "code", "message"),
    [
        (SchemaChoice(schema_id=2**31 - 1), 42207, "Error when fetching schema by id. schemaId = 2147483647"),
        (SchemaChoice(schema_version=7), 400, "Schema does not exist for subject: {name}-value, version: 7"),
        (
            SchemaChoice(schema_version=0),
            400,
            "schema_version=0 is not a version: expected a number from 1, or 'latest'.",
        ),
        (SchemaChoice(schema_version="new"), 400, "schema_version='new' is not a version"),
        (SchemaChoice(), 42207, "Error when fetching latest schema version. subject = {name}-value"),
        (SchemaChoice(subject="no/such"), 42207, "Error when fetching latest schema version. subject = no/such"),
    ],
)
async def test_a_schema_that_does_not_exist_is_reported(
    client: RegistryClient, name: str, choice: SchemaChoice, code: int, message: str
) -> None:
    error = await refused(Encoders(client), None, name, choice)
    assert error.code == code
    assert error.message.startswith(message.format(name=name))


@pytest.mark.parametrize("rules", [V2, V3])
async def test_an_id_of_another_subject_is_refused(client: RegistryClient, name: str, rules: Any) -> None:
    client.register(f"{name}-value", SchemaDefinition('"string"'))
    other = client.register(f"{name}-other", AVRO.definition)
    format_ = Format.AVRO if rules is V2 else None
    error = await refused(Encoders(client, rules), format_, name, SchemaChoice(schema_id=other.id))
    assert error.code == 42207
    assert f"subject = {name}-value, schemaId = {other.id}" in error.message


async def test_an_id_determines_the_format_in_v2(client: RegistryClient, name: str) -> None:
    there = client.register(f"{name}-value", AVRO.definition)
    encoder = await Encoders(client, V2).encoder(
        Target(Format.PROTOBUF, name, is_key=False, choice=SchemaChoice(schema_id=there.id))
    )
    assert encoder.format is Format.AVRO


@pytest.mark.parametrize(
    ("format_", "text"),
    [(Format.AVRO, "nonsense"), (Format.AVRO, '{"type":"nonsense"}'), (Format.JSONSCHEMA, "{"), (Format.PROTOBUF, "x")],
)
async def test_a_schema_that_cannot_be_read_is_42205(
    client: RegistryClient, name: str, format_: Format, text: str
) -> None:
    error = await refused(Encoders(client), format_, name, SchemaChoice(schema=text))
    assert error.code == 42205
    assert error.message.startswith("Invalid schema: ")


async def test_an_incompatible_schema_is_reported_with_the_differences(client: RegistryClient, name: str) -> None:
    client.register(f"{name}-value", SchemaDefinition('"string"'))
    error = await refused(Encoders(client), Format.AVRO, name, SchemaChoice(schema='"int"'))
    assert error.code == 42207
    assert error.message.startswith(f"Error when registering schema. subject = {name}-value: ")
    assert "TYPE_MISMATCH" in error.message


async def test_an_encoder_is_ready_after_its_first_use(client: RegistryClient, name: str) -> None:
    encoders, choice = Encoders(client), SchemaChoice(schema=AVRO.definition.text)
    assert encoders.ready(Target(Format.AVRO, name, is_key=False, choice=choice)) is None
    made = await encoders.encoder(Target(Format.AVRO, name, is_key=False, choice=choice))
    same = SchemaChoice(schema=str(AVRO.definition.text.encode(), "utf-8"))
    assert encoders.ready(Target(Format.AVRO, name, is_key=False, choice=same)) is made
    assert encoders.ready(Target(Format.AVRO, name, is_key=True, choice=same)) is None
    assert encoders.ready(Target(Format.AVRO, "other", is_key=False, choice=same)) is None


async def test_the_latest_schema_is_asked_for_again_as_soon_as_the_client_does(
    registry: RegistryProcess, client: RegistryClient, name: str
) -> None:
    clock = ManualClock()
    with RegistryClient(RegistryClientSettings.parse({"url": registry.url}), clock=clock) as own:
        encoders = Encoders(own)
        client.register(f"{name}-value", SchemaDefinition('{"type":"record","name":"r","fields":[]}'))
        await encoders.encoder(Target(None, name, is_key=False))
        wider = '{"type":"record","name":"r","fields":[{"name":"a","type":"int","default":0}]}'
        client.register(f"{name}-value", SchemaDefinition(wider))
        before = encoders.ready(Target(None, name, is_key=False))
        assert before is not None
        assert before.schema is not None
        assert before.schema.version == 1
        clock.advance(int(own.settings.latest_ttl_seconds * 1000))
        assert encoders.ready(Target(None, name, is_key=False)) is None
        after = await encoders.encoder(Target(None, name, is_key=False))
        assert after.schema is not None
        assert after.schema.version == 2
        assert encoders.ready(Target(None, name, is_key=False)) is after


async def test_concurrent_requests_for_the_same_encoder_ask_the_registry_once(name: str) -> None:
    with FakeRegistry() as registry, _client(registry.url) as client:
        registry.answers[f"/subjects/{name}-value/versions/latest"] = LATEST
        registry.go.clear()
        encoders = Encoders(client)
        waiting = [asyncio.create_task(encoders.encoder(Target(None, name, is_key=False))) for _ in range(20)]
        await asyncio.to_thread(registry.asked_now.acquire)
        waiting[0].cancel()
        registry.go.set()
        encoder, *others = await asyncio.gather(*waiting[1:])
        assert all(other is encoder for other in others)
        assert len(registry.asked) == 1


async def test_no_schema_text_is_cached_for_ever(client: RegistryClient, name: str) -> None:
    encoders = Encoders(client)
    title = "x" * (1 << 19)
    choices = [SchemaChoice(schema=json.dumps({"title": title, "description": str(number)})) for number in range(10)]
    client.set_config(f"{name}-value", {"compatibility": "NONE"})
    for choice in choices:
        await encoders.encoder(Target(Format.JSONSCHEMA, name, is_key=False, choice=choice))
    ready = [
        encoders.ready(Target(Format.JSONSCHEMA, name, is_key=False, choice=choice)) is not None for choice in choices
    ]
    assert ready == [False] * 3 + [True] * 7


async def test_a_registry_that_is_down_is_503_with_its_address_and_asked_again_later(name: str) -> None:
    clock = ManualClock()
    with FakeRegistry() as registry, _client(registry.url.replace("//", "//user:secret@")) as client:
        encoders = Encoders(client, clock=clock)
        registry.answers[f"/subjects/{name}-value/versions/latest"] = LATEST
        registry.stop()
        error = await refused(encoders, None, name, SchemaChoice())
        assert (error.code, error.retry_after_seconds) == (503, 1)
        assert registry.url in error.message
        assert "secret" not in error.message
        registry.start()
        assert (await refused(encoders, None, name, SchemaChoice())).code == 503, "the next request fails at once"
        clock.advance(1000)
        assert (await encoders.encoder(Target(None, name, is_key=False))).encode(msgspec.Raw(b'"a"')) is not None


async def test_a_registry_that_fails_is_503_with_its_address(name: str) -> None:
    with ScriptedHttp((500, b'{"error_code":50001,"message":"out of order"}')) as http, _client(http.url) as client:
        error = await refused(Encoders(client), None, name, SchemaChoice())
        assert error.code == 503
        assert error.message.endswith(f"{http.url} answers: out of order")


async def test_a_registry_that_hangs_is_503_while_formats_without_schema_go_on(name: str) -> None:
    with FakeRegistry() as registry, _client(registry.url) as client:
        registry.go.clear()
        encoders = Encoders(client)
        error = await refused(encoders, None, name, SchemaChoice())
        assert (error.code, registry.url in error.message) == (503, True)
        assert (await encoders.encoder(Target(Format.JSON, name, is_key=False))).encode(msgspec.Raw(b"1")) == b"1"


async def test_a_registry_that_denies_access_is_reported(name: str) -> None:
    with ScriptedHttp((401, b'{"error_code":401,"message":"who are you?"}')) as http, _client(http.url) as client:
        error = await refused(Encoders(client), None, name, SchemaChoice())
    assert (error.code, "who are you?" in error.message) == (40301, True)


@pytest.mark.parametrize("answer", [b"{}", b"nonsense", b'{"schema":"{","id":1}', b'{"schema":"\\"x.Y\\"","id":1}'])
async def test_a_registry_with_invalid_responses_is_reported(name: str, answer: bytes) -> None:
    with ScriptedHttp((200, answer)) as http, _client(http.url) as client:
        error = await refused(Encoders(client), None, name, SchemaChoice())
    assert error.code in (42205, 42207)


async def test_schemas_with_rules_for_writers_are_refused(client: RegistryClient, name: str) -> None:
    rule = {"name": "secret", "kind": "TRANSFORM", "mode": "WRITE", "type": "ENCRYPT", "tags": ["PII"]}
    client.register(f"{name}-value", AVRO.definition, rule_set={"domainRules": [rule]})
    error = await refused(Encoders(client), None, name, SchemaChoice())
    assert error.code == 42205
    assert "rule 'secret' for writers" in error.message


def _client(url: str) -> RegistryClient:
    return RegistryClient(RegistryClientSettings.parse({"url": url, "max.retries": 0}))


def test_every_type_of_schema_has_a_format() -> None:
    assert {Format.of_schema(kind).schema_type for kind in SchemaType} == set(SchemaType)
