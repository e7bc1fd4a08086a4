"""Confluent's serializers and deserializers, blocking and async, against a registry over HTTP."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import google.type.date_pb2
import pytest
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryError,
    header_schema_id_serializer,
    prefix_schema_id_deserializer,
    prefix_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.common.protobuf import decimal_to_protobuf, protobuf_to_decimal
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.schema_registry.serde import RuleContext, RuleExecutor
from confluent_kafka.serialization import SerializationError

import schema_registry.formats
from tests.support.protobuf_messages import message_classes
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import KINDS, Call, Confluent, confluent, context

Headers = list[tuple[str, bytes]]
GOOGLE = Path(google.type.date_pb2.__file__).parents[2]
CONFLUENT = Path(schema_registry.formats.__file__).parent / "protos"
"""Where the .proto files lie that are known without a reference."""


def avro(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def json_schema(**properties: Any) -> str:
    return json.dumps(
        {"title": "shop.Order", "type": "object", "properties": properties, "additionalProperties": False}
    )


def proto(fields: str) -> str:
    return f'syntax = "proto3";\npackage shop;\nmessage Order {{ {fields} }}\n'


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": "none"}
PROTO = "int64 id = 1;"
ORDERS = message_classes({"order.proto": proto(PROTO)})
ORDERS_2 = message_classes({"order.proto": proto(PROTO + "string note = 2;")})


class Format(NamedTuple):
    """One format's schema, its next version, and a value of each."""

    kind: str
    text: str
    next_text: str
    schema: Any
    next_schema: Any
    """What the serializer is made for."""
    value: Any
    next_value: Any
    old_as_next: Any
    """The first value, read by the next version."""

    def registered(self, text: str, **more: Any) -> Schema:
        """The schema for the registry."""
        return Schema(text, self.kind.upper(), **more)

    def serializer(self, theirs: Confluent, schema: Any = None, **options: Any) -> Call:
        """Confluent's serializer for a schema, or for the first version."""
        made: Call = getattr(theirs, f"{self.kind}_serializer")(self.schema if schema is None else schema, **options)
        return made

    def deserializer(self, theirs: Confluent, schema: Any = None, **options: Any) -> Call:
        """Confluent's deserializer for a schema, or for the first version."""
        made: Call = getattr(theirs, f"{self.kind}_deserializer")(self.schema if schema is None else schema, **options)
        return made


_AVRO = (avro(ID), avro(ID, NOTE))
_JSON = (json_schema(id={"type": "integer"}), json_schema(id={"type": "integer"}, note={"type": "string"}))
_VALUES = ({"id": 7}, {"id": 8, "note": "long enough for Avro's reader"})
_CLASS, _CLASS_2 = ORDERS["shop.Order"], ORDERS_2["shop.Order"]
FORMATS = {
    "avro": Format("avro", *_AVRO, *_AVRO, *_VALUES, {"id": 7, "note": "none"}),
    "json": Format("json", *_JSON, *_JSON, *_VALUES, {"id": 7}),
    "protobuf": Format(
        "protobuf",
        proto(PROTO),
        proto(PROTO + "string note = 2;"),
        _CLASS,
        _CLASS_2,
        _CLASS(id=7),
        _CLASS_2(**_VALUES[1]),
        _CLASS_2(id=7),
    ),
}


@pytest.fixture(params=KINDS)
def colour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def theirs(colour: str, registry: RegistryProcess) -> Iterator[Confluent]:
    with confluent(registry.url, colour) as running:
        yield running


@pytest.fixture
def fresh(colour: str, registry: RegistryProcess) -> Iterator[Confluent]:
    """A client that knows only what the registry tells it."""
    with confluent(registry.url, colour) as running:
        yield running


@pytest.fixture(params=FORMATS)
def example(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]


def schema_id(data: bytes) -> int:
    assert data[0] == 0
    return int.from_bytes(data[1:5], "big")


# --- how schemas get to the registry ----------------------------------------------------------------------------------


def test_a_value_is_registered_written_and_read_back(
    theirs: Confluent, fresh: Confluent, example: Format, name: str
) -> None:
    data = example.serializer(theirs)(example.value, context(name))
    found = fresh.get_latest_version(f"{name}-value")
    assert (found.version, found.schema_id) == (1, schema_id(data))
    assert example.deserializer(theirs)(data, context(name)) == example.value, "with the writer's client"
    fresh.clear_caches()
    assert example.deserializer(fresh)(data, context(name)) == example.value, "with a client that knows nothing"


def test_keys_have_a_subject_of_their_own(theirs: Confluent, fresh: Confluent, example: Format, name: str) -> None:
    data = example.serializer(theirs)(example.value, context(name, is_key=True))
    assert fresh.get_subjects(subject_prefix=name) == [f"{name}-key"]
    assert example.deserializer(fresh)(data, context(name, is_key=True)) == example.value


def test_nothing_is_nothing(theirs: Confluent, example: Format, name: str) -> None:
    assert example.serializer(theirs)(None, context(name)) is None
    assert example.deserializer(theirs)(None, context(name)) is None
    assert theirs.get_subjects(subject_prefix=name) == []


def test_without_registering_the_schema_must_be_there(theirs: Confluent, example: Format, name: str) -> None:
    write = example.serializer(theirs, conf={"auto.register.schemas": False})
    with pytest.raises((SchemaRegistryError, SerializationError), match="40401"):
        write(example.value, context(name))
    known = theirs.register_schema(f"{name}-value", example.registered(example.text))
    assert schema_id(write(example.value, context(name))) == known


def test_the_latest_version_is_used_when_asked(theirs: Confluent, fresh: Confluent, example: Format, name: str) -> None:
    theirs.register_schema(f"{name}-value", example.registered(example.text))
    latest = theirs.register_schema(f"{name}-value", example.registered(example.next_text))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    data = example.serializer(theirs, example.next_schema, conf=settings)(example.next_value, context(name))
    assert schema_id(data) == latest
    read = example.deserializer(fresh, example.next_schema, conf={"use.latest.version": True})
    assert read(data, context(name)) == example.next_value


def test_a_schema_is_used_by_its_id_when_asked(theirs: Confluent, fresh: Confluent, example: Format, name: str) -> None:
    first = theirs.register_schema(f"{name}-value", example.registered(example.text))
    theirs.register_schema(f"{name}-value", example.registered(example.next_text))
    settings = {"auto.register.schemas": False, "use.schema.id": first}
    assert schema_id(example.serializer(fresh, conf=settings)(example.value, context(name))) == first


def test_the_latest_version_with_certain_metadata_is_used_when_asked(
    theirs: Confluent, fresh: Confluent, example: Format, name: str
) -> None:
    ids = [
        theirs.register_schema(
            f"{name}-value",
            example.registered(text, metadata=Metadata(None, MetadataProperties({"major": str(number)}), [])),
        )
        for number, text in enumerate((example.text, example.next_text), 1)
    ]
    assert ids[0] != ids[1]
    settings = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    data = example.serializer(fresh, conf=settings)(example.value, context(name))
    assert schema_id(data) == ids[0]
    read = example.deserializer(fresh, conf={"use.latest.with.metadata": {"major": "1"}})
    assert read(data, context(name)) == example.value


def test_the_same_schema_in_other_words_is_found_when_normalized(theirs: Confluent, name: str) -> None:
    first = theirs.register_schema(f"{name}-value", Schema(avro(ID), "AVRO"), normalize_schemas=True)
    other = '{"fields":[{"type":{"type":"long"},"name":"id"}],"name":"shop.Order","type":"record"}'
    settings = {"normalize.schemas": True, "auto.register.schemas": False}
    assert schema_id(theirs.avro_serializer(other, conf=settings)({"id": 1}, context(name))) == first


def test_a_schema_that_breaks_others_is_not_registered(theirs: Confluent, name: str) -> None:
    theirs.avro_serializer(avro(ID))({"id": 1}, context(name))
    with pytest.raises((SchemaRegistryError, SerializationError), match="40901"):
        theirs.avro_serializer(avro(ID, {"name": "buyer", "type": "string"}))({"id": 1, "buyer": "b"}, context(name))
    assert theirs.get_versions(f"{name}-value") == [1]


# --- subject names ----------------------------------------------------------------------------------------------------

STRATEGIES = {
    "topic": (topic_subject_name_strategy, "{topic}-value"),
    "record": (record_subject_name_strategy, "shop.Order"),
    "topic and record": (topic_record_subject_name_strategy, "{topic}-shop.Order"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_subjects_are_named_as_the_strategy_says(
    theirs: Confluent, fresh: Confluent, example: Format, name: str, strategy: str
) -> None:
    function, pattern = STRATEGIES[strategy]
    if strategy == "record":
        for permanent in (False, True):  # whatever another format left there
            if "shop.Order" in theirs.get_subjects(subject_prefix="shop.Order", deleted=permanent):
                theirs.delete_subject("shop.Order", permanent=permanent)
    data = example.serializer(theirs, conf={"subject.name.strategy": function})(example.value, context(name))
    subject = pattern.format(topic=name)
    assert fresh.get_latest_version(subject).schema_id == schema_id(data)
    fresh.clear_caches()
    read = example.deserializer(fresh, conf={"subject.name.strategy": function})
    assert read(data, context(name)) == example.value


def test_the_subject_that_a_topic_is_associated_with_is_used(
    theirs: Confluent, fresh: Confluent, example: Format, name: str
) -> None:
    theirs.register_schema(f"{name}-elsewhere", example.registered(example.text))
    info = AssociationCreateOrUpdateInfo(f"{name}-elsewhere", "value", "WEAK")
    theirs.create_association(AssociationCreateOrUpdateRequest(name, "lkc", f"id-{name}", "topic", [info]))
    settings = {
        "subject.name.strategy.type": "ASSOCIATED",
        "subject.name.strategy.conf": {"subject.name.strategy.kafka.cluster.id": "lkc"},
    }
    data = example.serializer(theirs, conf=settings)(example.value, context(name))
    assert example.deserializer(fresh, conf=settings)(data, context(name)) == example.value
    assert theirs.get_subjects(subject_prefix=name) == [f"{name}-elsewhere"]


def test_a_topic_without_an_association_falls_back(theirs: Confluent, example: Format, name: str) -> None:
    fallback: dict[str, Any] = {"subject.name.strategy.fallback.type": "TOPIC_RECORD"}
    settings = {"subject.name.strategy.type": "ASSOCIATED", "subject.name.strategy.conf": fallback}
    example.serializer(theirs, conf=settings)(example.value, context(name))
    assert theirs.get_subjects(subject_prefix=name) == [f"{name}-shop.Order"]
    fallback["subject.name.strategy.fallback.type"] = "NONE"
    with pytest.raises(SerializationError, match="No associated subject"):
        example.serializer(theirs, conf=settings)(example.value, context(f"{name}-2"))


# --- where the schema is named ----------------------------------------------------------------------------------------


def test_the_schema_may_be_named_in_a_header(theirs: Confluent, fresh: Confluent, example: Format, name: str) -> None:
    headers: Headers = []
    write = example.serializer(theirs, example.next_schema, conf={"schema.id.serializer": header_schema_id_serializer})
    data = write(example.next_value, context(name, headers))
    assert [key for key, _ in headers] == ["__value_schema_id"]
    assert headers[0][1][0] == 1
    assert example.deserializer(fresh, example.next_schema)(data, context(name, headers)) == example.next_value


def test_the_schema_may_be_named_before_the_data(
    theirs: Confluent, fresh: Confluent, example: Format, name: str
) -> None:
    headers: Headers = []
    write = example.serializer(theirs, conf={"schema.id.serializer": prefix_schema_id_serializer})
    data = write(example.value, context(name, headers))
    assert headers == []
    read = example.deserializer(fresh, conf={"schema.id.deserializer": prefix_schema_id_deserializer})
    assert read(data, context(name, headers)) == example.value


# --- references -------------------------------------------------------------------------------------------------------


def test_avro_refers_to_what_refers(theirs: Confluent, fresh: Confluent, name: str) -> None:
    country = {"type": "enum", "name": "geo.Country", "symbols": ["DE", "ES"]}
    address = {"type": "record", "name": "geo.Address", "fields": [{"name": "in", "type": "geo.Country"}]}
    theirs.register_schema(f"{name}-country", Schema(json.dumps(country), "AVRO"))
    to_country = SchemaReference("geo.Country", f"{name}-country", 1)
    theirs.register_schema(f"{name}-address", Schema(json.dumps(address), "AVRO", [to_country]))
    to_address = SchemaReference("geo.Address", f"{name}-address", 1)
    order = Schema(avro(ID, {"name": "to", "type": ["null", "geo.Address"]}), "AVRO", [to_address])
    value = {"id": 1, "to": {"in": "ES"}}
    data = theirs.avro_serializer(order)(value, context(name))
    assert fresh.get_latest_version(f"{name}-value").schema.references == [to_address]
    assert fresh.avro_deserializer()(data, context(name)) == value


def test_json_refers_to_what_refers(theirs: Confluent, fresh: Confluent, name: str) -> None:
    theirs.register_schema(f"{name}-country", Schema('{"enum":["DE","ES"]}', "JSON"))
    address = '{"type":"object","properties":{"in":{"$ref":"country.json"}},"required":["in"]}'
    to_country = SchemaReference("country.json", f"{name}-country", 1)
    theirs.register_schema(f"{name}-address", Schema(address, "JSON", [to_country]))
    to_address = SchemaReference("address.json", f"{name}-address", 1)
    order = Schema(json_schema(to={"$ref": "address.json"}), "JSON", [to_address])
    write, read = theirs.json_serializer(order), fresh.json_deserializer()
    value = {"to": {"in": "ES"}}
    assert read(write(value, context(name)), context(name)) == value
    with pytest.raises(SerializationError, match="FR"):
        write({"to": {"in": "FR"}}, context(name))


IMPORTING = {
    "geo/country.proto": 'syntax = "proto3";\npackage geo;\nenum Country { NONE = 0; ES = 1; }\n',
    "geo/address.proto": (
        'syntax = "proto3";\npackage geo;\nimport "geo/country.proto";\n'
        "message Address { Country in = 1; map<string, Country> others = 2; }\n"
    ),
    "shop/order.proto": """syntax = "proto3";
package shop;
import "geo/address.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/type/money.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
message Head { string any = 1; }
message Shipment {
  message Parcel { google.protobuf.DoubleValue weight = 1; }
  geo.Address to = 1;
  google.protobuf.Timestamp at = 2;
  google.protobuf.Struct more = 3;
  google.type.Money price = 4;
  confluent.type.Decimal exact = 5 [(confluent.field_meta).params = {key: "precision", value: "9"}];
  optional string note = 6;
  repeated Parcel parcels = 7;
  oneof by { string road = 8; string sea = 9; }
}
""",
}


def shipment() -> Any:
    """A message with what Confluent's registry lets every schema import, and what it must be given."""
    message: Any = message_classes(IMPORTING, includes=(GOOGLE, CONFLUENT))["shop.Shipment"](note="", road="A1")
    message.to.others["home"] = 1
    message.at.FromJsonString("2026-01-02T03:04:05Z")
    message.more.update({"a": [1, "b"]})
    message.price.units = 5
    message.exact.value, message.exact.scale = b"\x7b", 2
    message.parcels.add().weight.value = 1.5
    return message


@pytest.mark.parametrize("settings", [{}, {"normalize.schemas": True}], ids=["plain", "normalized"])
def test_protobuf_imports_its_own_files_and_known_ones(
    theirs: Confluent, fresh: Confluent, name: str, settings: Mapping[str, object]
) -> None:
    value = shipment()
    named = {"reference.subject.name.strategy": lambda _, file: f"{name}/{file.name}", **settings}
    data = theirs.protobuf_serializer(type(value), conf=named)(value, context(name))
    stored = fresh.get_latest_version(f"{name}-value").schema
    assert [(reference.name, reference.subject) for reference in stored.references] == [
        ("geo/address.proto", f"{name}/geo/address.proto")
    ]
    assert "message Shipment" in stored.schema_str
    assert "google.type.Money price = 4" in stored.schema_str
    assert fresh.get_subjects(subject_prefix=name) == [
        f"{name}-value",
        f"{name}/geo/address.proto",
        f"{name}/geo/country.proto",
    ]
    assert data[5:7] == b"\x02\x02"  # the second message of its file
    assert fresh.protobuf_deserializer(type(value))(data, context(name)) == value
    again = fresh.protobuf_serializer(type(value), conf={**named, "auto.register.schemas": False})
    assert again(value, context(name)) == data


@pytest.mark.parametrize("name_of_file", ["confluent/type/decimal.proto", "confluent/types/decimal.proto"])
def test_confluent_s_decimals_are_known(theirs: Confluent, fresh: Confluent, name: str, name_of_file: str) -> None:
    text = f'syntax = "proto3"; import "{name_of_file}"; message Price {{ confluent.type.Decimal amount = 1; }}'
    theirs.register_schema(f"{name}-value", Schema(text, "PROTOBUF"))
    price = message_classes({"price.proto": text}, includes=(CONFLUENT,))["Price"]
    sent: Any = price()
    sent.amount.MergeFromString(decimal_to_protobuf(Decimal("12.50"), 2).SerializeToString())
    settings = {"use.latest.version": True, "auto.register.schemas": False}
    data = theirs.protobuf_serializer(price, conf=settings)(sent, context(name))
    read = fresh.protobuf_deserializer(price)(data, context(name))
    assert protobuf_to_decimal(read.amount) == Decimal("12.50")


# --- evolution --------------------------------------------------------------------------------------------------------


def test_old_values_are_read_by_the_next_version(
    theirs: Confluent, fresh: Confluent, example: Format, name: str
) -> None:
    old = example.serializer(theirs)(example.value, context(name))
    new = example.serializer(theirs, example.next_schema)(example.next_value, context(name))
    assert fresh.get_versions(f"{name}-value") == [1, 2]
    read = example.deserializer(fresh, example.next_schema)
    assert read(old, context(name)) == example.old_as_next
    assert read(new, context(name)) == example.next_value


def test_new_values_are_read_by_the_old_version(theirs: Confluent, fresh: Confluent, name: str) -> None:
    theirs.set_compatibility(f"{name}-value", level="FULL")
    theirs.avro_serializer(avro(ID))({"id": 1}, context(name))
    new = theirs.avro_serializer(avro(ID, NOTE))({"id": 2, "note": "x"}, context(name))
    assert fresh.avro_deserializer(avro(ID))(new, context(name)) == {"id": 2}


# --- rules ------------------------------------------------------------------------------------------------------------


def rule(name: str, kind: str, mode: RuleMode, *, expression: str = "", is_check: bool = False, **more: Any) -> Rule:
    how = RuleKind.CONDITION if is_check else RuleKind.TRANSFORM
    given = {"tags": None, "params": None, "on_success": None, "on_failure": None, "disabled": False, **more}
    return Rule(name=name, doc=None, kind=how, mode=mode, type=kind, expr=expression, **given)


class Shout(RuleExecutor):
    """A rule that its user wrote: notes become loud on their way in and quiet on their way out."""

    def type(self) -> str:
        return "SHOUT"

    def transform(self, ctx: RuleContext, message: Any) -> Any:
        change = str.upper if ctx.rule_mode == RuleMode.WRITE else str.lower
        return {**message, "note": change(message["note"])}


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_rules_of_the_latest_schema_are_carried_out(theirs: Confluent, fresh: Confluent, name: str, kind: str) -> None:
    example, rules = FORMATS[kind], RuleRegistry()
    rules.register_executor(Shout())
    rule_set = RuleSet([], [rule("loud", "SHOUT", RuleMode.WRITEREAD)])
    theirs.register_schema(f"{name}-value", example.registered(example.next_text, rule_set=rule_set))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    write = example.serializer(theirs, example.next_schema, conf=settings, rule_registry=rules)
    data = write({"id": 1, "note": "psst"}, context(name))
    assert b"PSST" in data
    read = example.deserializer(fresh, example.next_schema, conf={"use.latest.version": True}, rule_registry=rules)
    assert read(data, context(name)) == {"id": 1, "note": "psst"}


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_old_values_are_moved_to_the_latest_version_by_its_rules(
    theirs: Confluent, fresh: Confluent, name: str, kind: str
) -> None:
    example, rules = FORMATS[kind], RuleRegistry()
    rules.register_executor(JsonataExecutor())
    renamed = {
        "avro": avro({"name": "number", "type": "long"}),
        "json": json_schema(number={"type": "integer"}),
    }[kind]
    theirs.set_compatibility(f"{name}-value", level="NONE")
    theirs.register_schema(f"{name}-value", example.registered(example.text, metadata=_major(1)))
    up = rule("up", "JSONATA", RuleMode.UPGRADE, expression="{'number': $.id}")
    down = rule("down", "JSONATA", RuleMode.DOWNGRADE, expression="{'id': $.number}")
    moving = example.registered(renamed, metadata=_major(2), rule_set=RuleSet([up, down], []))
    theirs.register_schema(f"{name}-value", moving)
    by_major = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    old = example.serializer(theirs, conf=by_major)({"id": 5}, context(name))
    new = example.serializer(fresh, renamed, conf={**by_major, "use.latest.with.metadata": {"major": "2"}})
    read_2 = example.deserializer(fresh, None, conf={"use.latest.with.metadata": {"major": "2"}}, rule_registry=rules)
    assert read_2(old, context(name)) == {"number": 5}
    read_1 = example.deserializer(theirs, None, conf={"use.latest.with.metadata": {"major": "1"}}, rule_registry=rules)
    assert read_1(new({"number": 6}, context(name)), context(name)) == {"id": 6}


def _major(number: int) -> Metadata:
    return Metadata(None, MetadataProperties({"major": str(number)}), [])


def test_rules_that_have_no_executor_are_reported_to_the_writer(theirs: Confluent, name: str) -> None:
    rule_set = RuleSet([], [rule("check", "CEL", RuleMode.WRITE, expression="message.id > 0", is_check=True)])
    theirs.register_schema(f"{name}-value", Schema(avro(ID), "AVRO", rule_set=rule_set))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    with pytest.raises(SerializationError):
        theirs.avro_serializer(avro(ID), conf=settings, rule_registry=RuleRegistry())({"id": 1}, context(name))


def test_cel_checks_values(theirs: Confluent, name: str) -> None:
    from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor

    rules = RuleRegistry()
    rules.register_executor(CelExecutor())
    rule_set = RuleSet([], [rule("check", "CEL", RuleMode.WRITE, expression="message.id > 0", is_check=True)])
    theirs.register_schema(f"{name}-value", Schema(avro(ID), "AVRO", rule_set=rule_set))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    write = theirs.avro_serializer(avro(ID), conf=settings, rule_registry=rules)
    assert write({"id": 1}, context(name)) is not None
    with pytest.raises(SerializationError):
        write({"id": -1}, context(name))


def test_fields_are_encrypted_with_keys_of_the_registry(theirs: Confluent, fresh: Confluent, name: str) -> None:
    from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
    from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver

    LocalKmsDriver.register()
    rules = RuleRegistry()
    executor = FieldEncryptionExecutor()
    rules.register_executor(executor)
    params = RuleParams({"encrypt.kek.name": name, "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "mykey"})
    rule_set = RuleSet([], [rule("hide", "ENCRYPT", RuleMode.WRITEREAD, tags=["PII"], params=params)])
    secret = avro(ID, {**NOTE, "confluent:tags": ["PII"]})
    theirs.register_schema(f"{name}-value", Schema(secret, "AVRO", rule_set=rule_set))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    options = {"rule_conf": {"secret": "mysecret"}, "rule_registry": rules}
    with closing(executor):
        data = theirs.avro_serializer(secret, conf=settings, **options)({"id": 1, "note": "hidden"}, context(name))
        assert b"hidden" not in data
        assert fresh.avro_deserializer(**options)(data, context(name)) == {"id": 1, "note": "hidden"}
