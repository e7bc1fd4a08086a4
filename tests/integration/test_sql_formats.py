"""Formats with schemas, against a real registry: round trips, inference, registration, and Confluent's serializers."""

import datetime as dt
import itertools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from schema_registry.client.errors import RegistryUnreachable
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.serdes.framing import guid_header, id_prefix
from streams.formats.arrays import values_of
from streams.formats.columns import ColumnDecoder, ColumnEncoder
from streams.formats.errors import SchemaProblem, SchemasMissing
from streams.formats.guessing import FormatGuess
from streams.formats.layout import layout_of
from streams.formats.registry import RegistrySettings, Schemas
from streams.formats.sharing import shared_schemas
from streams.formats.values import RecordCodec
from streams.model.sources import Column, Format, FormatName, Source
from streams.model.types import Field, Struct, parse_type
from tests.support import sql_records
from tests.support.registry import RegistryProcess
from tests.support.sql_format_laws import check_hostile, check_other_types, check_round_trip

FORMATS: list[FormatName] = ["AVRO", "PROTOBUF", "JSON_SR"]
HEADER_PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
TOPICS = (f"sql-formats-{number}" for number in itertools.count())


@pytest.fixture
def reached(registry: RegistryProcess) -> RegistrySettings:
    return RegistrySettings(url=registry.url)


@pytest.fixture
def schemas(reached: RegistrySettings) -> Iterator[Schemas]:
    found = Schemas(reached)
    yield found
    found.close()


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(data=st.data())
def test_what_is_written_is_read_again(reached: RegistrySettings, format_: FormatName, data: st.DataObject) -> None:
    source = data.draw(sql_records.sources(format_, topic=next(TOPICS)))
    rows = data.draw(st.lists(sql_records.rows(source), min_size=1, max_size=4))
    check_round_trip(source, rows, reached)


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(data=st.data())
def test_hostile_bytes_are_bad_records(reached: RegistrySettings, format_: FormatName, data: st.DataObject) -> None:
    source = data.draw(sql_records.sources(format_, topic=next(TOPICS)))
    rows = data.draw(st.lists(sql_records.rows(source), min_size=1, max_size=3))
    check_hostile(source, rows, reached, data)


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(data=st.data())
def test_records_of_other_types_are_read_alike_one_by_one_and_as_columns(
    reached: RegistrySettings, format_: FormatName, data: st.DataObject
) -> None:
    source = data.draw(sql_records.sources(format_, topic=next(TOPICS)))
    other = data.draw(sql_records.other_types(source))
    rows = data.draw(st.lists(sql_records.rows(source), min_size=1, max_size=4))
    check_other_types(source, other, rows, reached)


# --- Confluent's serializers ---------------------------------------------------------------------------------------


def sink(format_: FormatName, topic: str, *columns: tuple[str, str], query: str | None = "CSAS_S_0") -> Source:
    return Source(
        name="S",
        kind="STREAM",
        topic=topic,
        key_format=Format(name="KAFKA"),
        value_format=Format(name=format_),
        key=(Column("K", "STRING"),),
        value=tuple(Column(name, str(parse_type(kind))) for name, kind in columns),
        query_id=query,
    )


ORDER = [("ID", "BIGINT"), ("PRICE", "DOUBLE"), ("TAGS", "ARRAY<STRING>"), ("AT", "STRUCT<CITY STRING>")]
ORDER_ROW = {"ID": 5, "PRICE": 1.5, "TAGS": ["a", "b"], "AT": {"CITY": "Köln"}}


def value_context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@pytest.fixture
def confluent(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def test_avro_is_read_by_confluents_deserializer(schemas: Schemas, confluent: SchemaRegistryClient) -> None:
    source = sink("AVRO", next(TOPICS), *ORDER)
    schemas.register(source)
    _, data = RecordCodec(source, schemas).encode(ORDER_ROW)
    assert AvroDeserializer(confluent)(data, value_context(source.topic)) == ORDER_ROW
    latest = confluent.get_latest_version(f"{source.topic}-value").schema
    assert json.loads(str(latest.schema_str))["name"] == "KsqlDataSourceSchema"


def test_avro_of_confluents_serializer_is_read(schemas: Schemas, confluent: SchemaRegistryClient) -> None:
    topic = next(TOPICS)
    fields = [
        {"name": "id", "type": "int"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "either", "type": ["null", "int", "string"]},
    ]
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    row = {"id": 7, "note": None, "kind": "B", "on": dt.date(2020, 1, 1), "either": "x"}
    data = AvroSerializer(confluent, text)(row, value_context(topic))
    columns = schemas.infer(topic, is_key=False, format=Format(name="AVRO"))
    kinds = ["INTEGER", "STRING", "STRING", "DATE", "STRUCT<`int` INTEGER, `string` STRING>"]
    assert columns == tuple(map(Column, ["id", "note", "kind", "on", "either"], kinds))
    source = msgspec.structs.replace(sink("AVRO", topic), value=(*columns[1:4], Column("ID", "BIGINT")))
    expected = {**row, "ID": 7}
    del expected["id"], expected["either"]
    assert read_both(source, schemas, data) == expected
    source = msgspec.structs.replace(source, value=columns)
    assert read_both(source, schemas, data) == {**row, "either": {"int": None, "string": "x"}}


def test_maps_as_ksqldb_writes_them_are_read(schemas: Schemas, confluent: SchemaRegistryClient) -> None:
    topic = next(TOPICS)
    parts = [{"name": "key", "type": ["null", "string"]}, {"name": "value", "type": ["null", "int"]}]
    entry = {"type": "record", "name": "E", "fields": parts, "connect.internal.type": "MapEntry"}
    fields = [{"name": "M", "type": ["null", {"type": "array", "items": entry}]}]
    text = json.dumps({"type": "record", "name": "KsqlDataSourceSchema", "fields": fields})
    row = {"M": [{"key": "a", "value": 1}, {"key": "b", "value": None}]}
    data = AvroSerializer(confluent, text)(row, value_context(topic))
    assert schemas.infer(topic, is_key=False, format=Format(name="AVRO")) == (Column("M", "MAP<STRING, INTEGER>"),)
    assert read_both(sink("AVRO", topic, ("M", "MAP<STRING, BIGINT>")), schemas, data) == {"M": {"a": 1, "b": None}}


def test_protobuf_goes_both_ways_with_confluents_serializers(schemas: Schemas, confluent: SchemaRegistryClient) -> None:
    source = sink("PROTOBUF", next(TOPICS), *ORDER)
    schemas.register(source)
    codec = RecordCodec(source, schemas)
    _, data = codec.encode(ORDER_ROW)
    assert data is not None
    writing = schemas.writing(layout_of(source, "value"))
    assert isinstance(writing.schema, ProtobufSchema)
    message_class = writing.schema.message_class("ConnectDefault1")
    options = {"use.deprecated.format": False}
    message = ProtobufDeserializer(message_class, options, confluent)(data, value_context(source.topic))
    assert message is not None
    assert (message.ID, list(message.TAGS), message.AT.CITY) == (5, ["a", "b"], "Köln")
    serializer = ProtobufSerializer(
        message_class, confluent, {**options, "auto.register.schemas": False, "use.latest.version": True}
    )
    written = serializer(message, value_context(source.topic))
    assert written == data
    assert read_both(source, schemas, written) == ORDER_ROW


def test_json_schema_goes_both_ways_with_confluents_serializers(
    schemas: Schemas, confluent: SchemaRegistryClient
) -> None:
    source = sink("JSON_SR", next(TOPICS), *ORDER)
    schemas.register(source)
    _, data = RecordCodec(source, schemas).encode(ORDER_ROW)
    assert JSONDeserializer(None, schema_registry_client=confluent)(data, value_context(source.topic)) == ORDER_ROW
    latest = confluent.get_latest_version(f"{source.topic}-value").schema
    written = JSONSerializer(str(latest.schema_str), confluent)(ORDER_ROW, value_context(source.topic))
    assert read_both(source, schemas, written) == ORDER_ROW


def read_both(source: Source, schemas: Schemas, data: bytes | None) -> dict[str, Any]:
    """The values of a record, read by itself and as columns."""
    found = RecordCodec(source, schemas).decode(None, data)
    decoded = ColumnDecoder(source, schemas.settings).decode(pa.nulls(1, pa.binary()), pa.array([data], pa.binary()))
    assert decoded.failures == []
    kinds = {column.name: column.sql_type for column in source.columns}
    assert {name: values_of(kinds[name], array)[0] for name, array in decoded.columns.items()} == found
    del found["K"]
    return found


# --- schemas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW, phases=[Phase.generate])
@given(data=st.data())
def test_what_is_registered_is_inferred(reached: RegistrySettings, format_: FormatName, data: st.DataObject) -> None:
    source = data.draw(sql_records.sources(format_, topic=next(TOPICS)))
    found = shared_schemas(reached)
    found.register(msgspec.structs.replace(source, query_id="CSAS_S_0"))
    value = found.infer(source.topic, is_key=False, format=source.value_format)
    assert [column.type for column in value] == [column.type for column in source.value]
    if source.value_format.wraps_single is False:
        assert [column.name for column in value] == ["ROWVAL"]
    else:
        assert value == source.value
    key = found.infer(source.topic, is_key=True, format=source.key_format)
    if format_ == "PROTOBUF":
        assert key == source.key
    elif len(source.key) == 1:
        assert key == (Column("ROWKEY", source.key[0].type),)
    else:
        inside = Struct(tuple(Field(column.name, column.sql_type) for column in source.key))
        assert key == (Column("ROWKEY", str(inside)),)


def test_a_declared_source_writes_with_the_schema_that_its_topic_has(
    schemas: Schemas, registry: RegistryProcess
) -> None:
    topic = next(TOPICS)
    fields = [{"name": "id", "type": "long"}, {"name": "more", "type": ["null", "int"], "default": None}]
    text = json.dumps({"type": "record", "name": "Other", "fields": fields})
    registered = registry.register(f"{topic}-value", text)
    source = sink("AVRO", topic, ("ID", "BIGINT"), query=None)
    schemas.register(source)
    _, data = RecordCodec(source, schemas).encode({"ID": 3})
    assert data == id_prefix(registered.id) + b"\x06\x00"
    _, values = ColumnEncoder(source, schemas.settings).encode(pa.table({"K": ["k"], "ID": [3]}))
    assert values.to_pylist() == [data]


def test_a_sink_that_is_not_compatible_is_refused(schemas: Schemas) -> None:
    topic = next(TOPICS)
    schemas.register(sink("AVRO", topic, ("A", "INTEGER")))
    with pytest.raises(SchemaProblem, match=f"Could not register schema for topic: {topic}-value"):
        schemas.register(sink("AVRO", topic, ("A", "STRING")))
    schemas.register(sink("AVRO", topic, ("A", "INTEGER"), ("B", "STRING")))


def test_a_schema_that_is_named_is_used_as_it_is(schemas: Schemas, registry: RegistryProcess) -> None:
    topic = next(TOPICS)
    text = 'syntax = "proto3"; message A { int32 X = 1; } message B { string NAME = 7; int64 N = 9; }'
    given_id = registry.register(f"{topic}-elsewhere", text, kind="PROTOBUF").id
    named = Format(name="PROTOBUF", schema_id=given_id, full_name="B")
    assert schemas.infer(topic, is_key=False, format=named) == (Column("NAME", "STRING"), Column("N", "BIGINT"))
    source = msgspec.structs.replace(sink("PROTOBUF", topic, ("N", "BIGINT")), value_format=named)
    schemas.register(source)
    _, data = RecordCodec(source, schemas).encode({"N": 1})
    assert data == id_prefix(given_id, (1,)) + b"\x48\x01"
    assert read_both(source, schemas, data) == {"N": 1}
    wrong = msgspec.structs.replace(source, value=(Column("N", "STRING"),))
    with pytest.raises(SchemaProblem, match="The column N is STRING, but the schema has BIGINT"):
        schemas.register(wrong)
    missing = msgspec.structs.replace(source, value=(Column("Z", "STRING"),))
    with pytest.raises(SchemaProblem, match="The schema has no field Z"):
        schemas.register(missing)


def test_what_cannot_be_inferred_says_why(schemas: Schemas, registry: RegistryProcess) -> None:
    topic = next(TOPICS)
    with pytest.raises(SchemaProblem, match=f"does not exist in the Schema Registry. Subject: {topic}-value"):
        schemas.infer(topic, is_key=False, format=Format(name="AVRO"))
    with pytest.raises(SchemaProblem, match="Schema id: 999999"):
        schemas.infer(topic, is_key=False, format=Format(name="AVRO", schema_id=999_999))
    registry.register(f"{topic}-value", '"int"')
    with pytest.raises(SchemaProblem, match="set WRAP_SINGLE_VALUE=false"):
        schemas.infer(topic, is_key=False, format=Format(name="AVRO"))
    bare = schemas.infer(topic, is_key=False, format=Format(name="AVRO", wraps_single=False))
    assert bare == (Column("ROWVAL", "INTEGER"),)
    with pytest.raises(SchemaProblem, match="The format JSON has no schemas"):
        schemas.infer(topic, is_key=False, format=Format(name="JSON"))
    with pytest.raises(SchemaProblem, match="is AVRO, which does not match the format JSON_SR"):
        schemas.infer(topic, is_key=False, format=Format(name="JSON_SR"))


def test_subjects_are_forgotten_and_found(schemas: Schemas) -> None:
    topic = next(TOPICS)
    schemas.register(sink("AVRO", topic, ("A", "INTEGER")))
    assert schemas.exists(subject=f"{topic}-value")
    assert not schemas.exists(subject=f"{topic}-key")
    assert schemas.exists(schema_id=1)
    assert not schemas.exists(schema_id=999_999)
    assert not schemas.exists(subject=f"{topic}-value", schema_id=999_999)
    schemas.forget(topic)
    assert not schemas.exists(subject=f"{topic}-value")
    schemas.forget(topic)


def test_a_null_in_protobuf_is_a_default_unless_it_has_a_representation(schemas: Schemas) -> None:
    columns = [("A", "INTEGER"), ("B", "STRING")]
    row = {"A": None, "B": ""}
    plain = sink("PROTOBUF", next(TOPICS), *columns)
    assert read_both(plain, schemas, RecordCodec(plain, schemas).encode(row)[1]) == {"A": 0, "B": ""}
    for representation in ("OPTIONAL", "WRAPPER"):
        source = sink("PROTOBUF", next(TOPICS), *columns)
        format_ = Format(name="PROTOBUF", nullable_as=representation)
        source = msgspec.structs.replace(source, value_format=format_)
        _, data = RecordCodec(source, schemas).encode(row)
        assert read_both(source, schemas, data) == row
        batch = pa.table({"K": ["k"], "A": pa.array([None], pa.int32()), "B": [""]})
        assert ColumnEncoder(source, schemas.settings).encode(batch)[1].to_pylist() == [data]


def test_without_a_registry_its_formats_say_what_is_missing() -> None:
    nowhere = Schemas(RegistrySettings())
    assert not nowhere.is_configured
    with pytest.raises(SchemasMissing, match="set ksql.schema.registry.url"):
        nowhere.infer("t", is_key=False, format=Format(name="AVRO"))
    nowhere.register(sink("JSON", "t", ("A", "INTEGER")))


def test_a_registry_that_does_not_answer_is_no_bad_record() -> None:
    away = RegistrySettings(url="http://127.0.0.1:9", properties={"max.retries": "0"})
    source = sink("AVRO", "t", ("A", "INTEGER"))
    with pytest.raises(RegistryUnreachable):
        RecordCodec(source, Schemas(away)).decode(None, id_prefix(1) + b"\x00")
    with pytest.raises(RegistryUnreachable):
        ColumnDecoder(source, away).decode(pa.nulls(1, pa.binary()), pa.array([id_prefix(1) + b"\x00"]))


def test_records_of_several_schemas_and_of_none_are_told_apart(schemas: Schemas, registry: RegistryProcess) -> None:
    topic = next(TOPICS)
    source = sink("AVRO", topic, ("A", "INTEGER"), ("B", "STRING"))
    records = []
    for row, columns in (
        ({"A": 1}, [("A", "INTEGER")]),
        ({"A": 2, "B": "x"}, [("A", "INTEGER"), ("B", "STRING")]),
    ):
        one = sink("AVRO", topic, *columns)
        schemas.register(one)
        records.append(RecordCodec(one, schemas).encode(row)[1])
    json_id = registry.register(next(TOPICS), '{"type": "object"}', kind="JSON").id
    records += [id_prefix(json_id) + b"{}", b"plain", id_prefix(999_999) + b"\x00", records[0]]
    decoded = ColumnDecoder(source, schemas.settings).decode(
        pa.nulls(len(records), pa.binary()), pa.array(records, pa.binary())
    )
    assert decoded.columns["A"].to_pylist() == [1, 2, None, None, None, 1]
    assert decoded.columns["B"].to_pylist() == [None, "x", None, None, None, None]
    assert [failure.row for failure in decoded.failures] == [2, 3, 4]
    assert f"schema {json_id} is JSON, not AVRO" in decoded.failures[0].message


@pytest.mark.parametrize("format_", FORMATS)
def test_a_header_may_name_the_schema(schemas: Schemas, confluent: SchemaRegistryClient, format_: FormatName) -> None:
    source = sink(format_, next(TOPICS), ("A", "INTEGER"))
    schemas.register(source)
    prefix = schemas.writing(layout_of(source, "value")).prefix
    _, data = RecordCodec(source, schemas).encode({"A": 5})
    assert data is not None
    guid = confluent.get_latest_version(f"{source.topic}-value").guid
    headers = [("x", None), ("__value_schema_id", guid_header(str(guid), (0,) if format_ == "PROTOBUF" else None))]
    body = data.removeprefix(prefix)
    assert RecordCodec(source, schemas).decode(None, body, headers)["A"] == 5
    pairs = [[], [{"key": key, "value": value} for key, value in headers], None]
    decoded = ColumnDecoder(source, schemas.settings).decode(
        pa.nulls(3, pa.binary()), pa.array([data, body, None], pa.binary()), pa.array(pairs, HEADER_PAIRS)
    )
    assert decoded.failures == []
    assert decoded.columns["A"].to_pylist() == [5, 5, None]


def test_print_recognises_records_of_the_registry(schemas: Schemas) -> None:
    for format_ in FORMATS:
        source = sink(format_, next(TOPICS), ("A", "INTEGER"), ("B", "STRING"))
        guess = FormatGuess(schemas)
        text = guess.text(RecordCodec(source, schemas).encode({"A": 1, "B": "x"})[1])
        assert guess.names == format_
        assert json.loads(text) == {"A": 1, "B": "x"}
