"""Every method of Confluent's registry client, blocking and async, against a registry over HTTP."""

import ast
import base64
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.support.registry import RegistryProcess
from tests.support.registry_clients import KINDS, Confluent, confluent


def record(*fields: dict[str, Any], name: str = "Order") -> Schema:
    return Schema(json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields}), "AVRO")


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
REQUIRED = {"name": "buyer", "type": "string"}
ORDER = record(ID)
ORDER_2 = record(ID, NOTE)
ORDER_BROKEN = record(ID, REQUIRED)
STRING = Schema('"string"', "AVRO")
PROTO = Schema('syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int64 id = 1;\n}\n', "PROTOBUF")
JSON = Schema('{"type":"object","properties":{"id":{"type":"integer"}}}', "JSON")
SCHEMAS = {"AVRO": ORDER, "PROTOBUF": PROTO, "JSON": JSON}


@pytest.fixture(params=KINDS)
def theirs(request: pytest.FixtureRequest, registry: RegistryProcess) -> Iterator[Confluent]:
    with confluent(registry.url, request.param) as running:
        yield running


def test_every_public_method_is_called_here() -> None:
    tree = ast.parse(Path(__file__).read_text())
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    public = {
        name
        for kind in (SchemaRegistryClient, AsyncSchemaRegistryClient)
        for name, _ in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }
    assert public - called == set()


# --- register and find ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_registered_and_found_by_all_its_names(theirs: Confluent, name: str, kind: str) -> None:
    schema = SCHEMAS[kind]
    schema_id = theirs.register_schema(name, schema)
    theirs.clear_caches()
    registered = theirs.register_schema_full_response(name, schema)
    assert (registered.schema_id, registered.subject, registered.version) == (schema_id, name, 1)
    theirs.clear_caches()
    found = theirs.get_version(name, 1)
    assert (found.schema_id, found.guid, found.subject, found.version) == (schema_id, registered.guid, name, 1)
    assert _same(found.schema, schema)
    assert theirs.get_latest_version(name) == found
    theirs.clear_caches()
    looked_up = theirs.lookup_schema(name, schema)
    assert (looked_up.schema_id, looked_up.guid, looked_up.version) == (schema_id, registered.guid, 1)
    theirs.clear_caches()
    assert theirs.get_schema(schema_id) == found.schema
    assert theirs.get_schema(schema_id, subject_name=name) == found.schema
    assert theirs.get_schema_by_guid(registered.guid) == found.schema
    assert theirs.get_version(name) == theirs.get_version(name, "latest") == found


def _same(stored: Schema, sent: Schema) -> bool:
    """Avro and JSON may be written with other spaces."""
    read = str if sent.schema_type == "PROTOBUF" else json.loads
    assert stored.schema_str is not None
    assert sent.schema_str is not None
    return stored.schema_type == sent.schema_type and bool(read(stored.schema_str) == read(sent.schema_str))


def test_names_may_need_quoting(theirs: Confluent, name: str) -> None:
    subject = f"{name}/a b%2F+?#é:"
    assert theirs.register_schema(subject, ORDER) > 0
    theirs.clear_caches()
    assert theirs.get_latest_version(subject).subject == subject
    assert theirs.get_subjects(subject_prefix=f"{name}/a b%2F+?#é") == [subject]
    assert theirs.delete_subject(subject) == [1]


def test_a_schema_under_two_subjects_has_one_id(theirs: Confluent, name: str) -> None:
    own = record(ID, name=f"Own{name.replace('-', '_')}")
    schema_id = theirs.register_schema(f"{name}-a", own)
    assert theirs.register_schema(f"{name}-b", own) == schema_id
    both = [f"{name}-a", f"{name}-b"]
    assert sorted(theirs.get_subjects_by_schema_id(schema_id)) == both
    assert sorted(theirs.get_subjects_by_schema_id(schema_id, subject_name=both[1])) == both  # it names a context only
    assert theirs.get_subjects_by_schema_id(schema_id, offset=1, limit=1) == [both[1]]
    versions = theirs.get_schema_versions(schema_id)
    assert sorted((version.subject, version.version) for version in versions) == [(both[0], 1), (both[1], 1)]
    assert [version.subject for version in theirs.get_schema_versions(schema_id, limit=1)] == [both[0]]
    theirs.delete_subject(both[0])
    assert theirs.get_subjects_by_schema_id(schema_id) == [both[1]]
    assert sorted(theirs.get_subjects_by_schema_id(schema_id, deleted=True)) == both
    assert len(theirs.get_schema_versions(schema_id, deleted=True)) == 2


def test_schemas_are_normalized_when_asked(theirs: Confluent, name: str) -> None:
    proto = (
        'syntax = "proto3";\npackage shop;\nimport "google/protobuf/any.proto"; import "google/protobuf/api.proto";\n'
    )
    message = "message M { google.protobuf.Any a = 2; google.protobuf.Api b = 1; }"
    theirs.register_schema(name, Schema(proto + message, "PROTOBUF"), normalize_schemas=True)
    turned = "message M { google.protobuf.Api b = 1; google.protobuf.Any a = 2; }"
    found = theirs.lookup_schema(name, Schema(proto + turned, "PROTOBUF"), normalize_schemas=True)
    assert found.version == 1
    assert "b = 1;\n  .google.protobuf.Any a = 2" in theirs.get_latest_version(name).schema.schema_str


def test_protobuf_is_returned_as_a_descriptor_on_request(theirs: Confluent, name: str) -> None:
    registered = theirs.register_schema_full_response(name, PROTO)
    theirs.clear_caches()
    for found in (
        theirs.get_schema(registered.schema_id, fmt="serialized"),
        theirs.get_schema_by_guid(registered.guid, fmt="serialized"),
        theirs.get_version(name, 1, fmt="serialized").schema,
        theirs.get_latest_version(name, fmt="serialized").schema,
    ):
        descriptor = FileDescriptorProto.FromString(base64.b64decode(found.schema_str))
        assert (descriptor.package, descriptor.message_type[0].name) == ("shop", "Order")


def test_avro_references_are_resolved_into_the_text_when_asked(theirs: Confluent, name: str) -> None:
    theirs.register_schema(f"{name}-order", ORDER)
    lines = _array_of(f"{name}-order")
    schema_id = theirs.register_schema(f"{name}-list", lines)
    theirs.clear_caches()
    plain = theirs.get_schema(schema_id)
    theirs.clear_caches()
    resolved = theirs.get_schema(schema_id, fmt="resolved")
    assert plain.references == lines.references
    assert json.loads(plain.schema_str)["items"] == "shop.Order"
    assert json.loads(resolved.schema_str)["items"] == json.loads(ORDER.schema_str or "")


def test_ids_are_counted_in_each_context(theirs: Confluent, name: str) -> None:
    inside = theirs.register_schema(f":.{name}:order", ORDER)
    theirs.register_schema(f":.{name}:list", _array_of("order"))
    theirs.clear_caches()
    assert inside == 1
    found = theirs.get_schema(2, subject_name=f":.{name}:list", reference_format="qualified")
    # The client asks for reference_format; registries, Confluent's too, take referenceFormat.
    assert found.references == [SchemaReference("shop.Order", "order", 1)]
    assert theirs.get_subjects_by_schema_id(2, subject_name=f":.{name}:") == [f":.{name}:list"]


def _array_of(subject: str) -> Schema:
    return Schema('{"type":"array","items":"shop.Order"}', "AVRO", [SchemaReference("shop.Order", subject, 1)])


def test_the_referrers_of_a_schema_are_returned(theirs: Confluent, name: str) -> None:
    theirs.register_schema(f"{name}-order", ORDER)
    reference = SchemaReference("shop.Order", f"{name}-order", 1)
    users = [
        theirs.register_schema(f"{name}-{container}", Schema(text, "AVRO", [reference]))
        for container, text in (
            ("array", '{"type":"array","items":"shop.Order"}'),
            ("map", '{"type":"map","values":"shop.Order"}'),
        )
    ]
    assert theirs.get_referenced_by(f"{name}-order") == theirs.get_referenced_by(f"{name}-order", 1) == users
    assert theirs.get_referenced_by(f"{name}-order", "latest", offset=1, limit=1) == users[1:]
    assert theirs.get_referenced_by(f"{name}-map", 1) == []


def test_metadata_and_rules_are_stored_and_returned(theirs: Confluent, name: str) -> None:
    schema = Schema(ORDER.schema_str, "AVRO", [], _metadata(name, major="1"), RULES)
    registered = theirs.register_schema_full_response(name, schema)
    assert registered.schema.metadata == schema.metadata
    assert registered.schema.rule_set == RULES
    theirs.clear_caches()
    found = theirs.get_latest_version(name).schema
    assert (found.metadata, found.rule_set) == (schema.metadata, RULES)
    assert theirs.get_schema(registered.schema_id).rule_set == RULES


RULES = RuleSet(
    migration_rules=[
        Rule("up", "renames", RuleKind.TRANSFORM, RuleMode.UPGRADE, "JSONATA", None, None, "$", "NONE", "ERROR", False)
    ],
    domain_rules=[
        Rule(
            name="secret",
            doc=None,
            kind=RuleKind.TRANSFORM,
            mode=RuleMode.WRITEREAD,
            type="ENCRYPT",
            tags=["PII"],
            params=RuleParams({"encrypt.kek.name": "k", "encrypt.kms.type": "local-kms"}),
            expr=None,
            on_success=None,
            on_failure="ERROR,NONE",
            disabled=False,
        ),
        Rule("ok", None, RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None, "message.id > 0", None, "DLQ", True),
    ],
    encoding_rules=[
        Rule(
            "all", None, RuleKind.TRANSFORM, RuleMode.WRITEREAD, "ENCRYPT_PAYLOAD", None, None, None, None, None, False
        )
    ],
)


def _metadata(owner: str, **properties: str) -> Metadata:
    """Without tags: the client cannot hash them, and so not cache a schema that has some."""
    return Metadata(None, MetadataProperties({"owner": owner, **properties}), ["owner"])


def test_the_latest_version_with_certain_metadata_is_found(theirs: Confluent, name: str) -> None:
    for number, schema in enumerate((ORDER, ORDER_2), 1):
        theirs.register_schema(name, Schema(schema.schema_str, "AVRO", [], _metadata(name, major=str(number))))
    assert theirs.get_latest_with_metadata(name, {"major": "1"}).version == 1
    assert theirs.get_latest_with_metadata(name, {"major": "2", "owner": name}).version == 2
    theirs.clear_latest_caches()
    assert theirs.get_latest_with_metadata(name, {"owner": name}).version == 2
    theirs.delete_version(name, 1)
    theirs.clear_caches()
    assert theirs.get_latest_with_metadata(name, {"major": "1"}, deleted=True).version == 1


# --- lists and deletes ------------------------------------------------------------------------------------------------


def test_versions_are_listed_and_deleted(theirs: Confluent, name: str) -> None:
    for schema in (ORDER, ORDER_2, record(ID, NOTE, {"name": "n", "type": "int", "default": 0})):
        theirs.register_schema(name, schema)
    assert theirs.get_versions(name) == [1, 2, 3]
    assert theirs.get_versions(name, offset=1, limit=1) == [2]
    assert theirs.delete_version(name, 2) == 2
    assert theirs.get_versions(name) == [1, 3]
    assert theirs.get_versions(name, deleted=True) == [1, 2, 3]
    theirs.clear_caches()
    assert theirs.get_version(name, 2, deleted=True).version == 2
    theirs.clear_caches()
    assert theirs.lookup_schema(name, ORDER_2, deleted=True).version == 2
    assert theirs.delete_version(name, 2, permanent=True) == 2
    assert theirs.get_versions(name, deleted=True) == [1, 3]


def test_subjects_are_listed_and_deleted(theirs: Confluent, name: str) -> None:
    subjects = [f"{name}-{letter}" for letter in "abc"]
    for subject in subjects:
        theirs.register_schema(subject, ORDER)
    assert set(subjects) <= set(theirs.get_subjects())
    assert theirs.get_subjects(subject_prefix=name) == subjects
    assert theirs.get_subjects(subject_prefix=name, offset=1, limit=1) == [subjects[1]]
    assert theirs.delete_subject(subjects[0]) == [1]
    assert theirs.get_subjects(subject_prefix=name) == subjects[1:]
    assert theirs.get_subjects(subject_prefix=name, deleted=True) == subjects
    # The client asks for deleted_only; registries, Confluent's too, take deletedOnly.
    assert theirs.get_subjects(subject_prefix=name, deleted_only=True) == subjects[1:]
    assert theirs.delete_subject(subjects[0], permanent=True) == [1]
    assert theirs.get_subjects(subject_prefix=name, deleted=True) == subjects[1:]


def test_types_and_contexts_are_listed(theirs: Confluent, name: str) -> None:
    assert theirs.get_schema_types() == ["JSON", "PROTOBUF", "AVRO"]
    theirs.register_schema(f":.{name}:order", ORDER)
    contexts = theirs.get_contexts()
    assert {".", f".{name}"} <= set(contexts)
    assert theirs.get_contexts(offset=1, limit=1) == contexts[1:2]


# --- compatibility, config and mode -----------------------------------------------------------------------------------


def test_compatibility_is_judged(theirs: Confluent, name: str) -> None:
    theirs.register_schema(name, ORDER)
    for judge in (theirs.test_compatibility, theirs.test_compatibility_all_versions):
        assert judge(name, ORDER_2) is True
        assert judge(name, ORDER_BROKEN, verbose=True, normalize=True) is False
    assert theirs.test_compatibility(name, ORDER_BROKEN, version=1) is False
    assert theirs.test_compatibility(f"{name}-unknown", ORDER_BROKEN) is True


@pytest.mark.parametrize("is_global", [False, True])
def test_the_level_is_set_returned_and_deleted(theirs: Confluent, name: str, is_global: bool) -> None:
    subject = None if is_global else name
    try:
        assert theirs.set_compatibility(subject, level="full_transitive") == {"compatibility": "FULL_TRANSITIVE"}
        assert theirs.get_compatibility(subject) == "FULL_TRANSITIVE"
        level = ConfigCompatibilityLevel.FULL_TRANSITIVE
        assert theirs.get_config(subject) == ServerConfig(compatibility_level=level)
    finally:
        old = theirs.delete_config(subject)
    assert old.compatibility_level == level
    if is_global:
        assert theirs.get_compatibility() == "BACKWARD"


def test_all_of_a_config_is_stored_and_applied(theirs: Confluent, name: str) -> None:
    defaults, overrides = _metadata("default"), Metadata(None, MetadataProperties({"site": "eu"}), [])
    config = ServerConfig(
        compatibility=ConfigCompatibilityLevel.FORWARD,
        compatibility_group="major",
        default_metadata=defaults,
        override_metadata=overrides,
        default_rule_set=RULES,
        override_rule_set=RuleSet([], RULES.domain_rules, []),
    )
    theirs.set_config(name, config)
    stored = theirs.get_config(name)
    assert stored.compatibility_level == ConfigCompatibilityLevel.FORWARD
    assert stored.compatibility_group == "major"
    assert stored.default_metadata == defaults
    assert stored.override_metadata == overrides
    assert stored.default_rule_set == RULES
    assert stored.override_rule_set == config.override_rule_set
    theirs.register_schema(name, ORDER)
    theirs.clear_caches()
    found = theirs.get_latest_version(name).schema
    assert found.metadata.properties.properties == {"owner": "default", "site": "eu"}
    assert [rule.name for rule in found.rule_set.migration_rules] == ["up"]
    deleted = theirs.delete_config(name)
    assert deleted.default_rule_set == RULES


def test_tags_are_stored_in_a_config(theirs: Confluent, name: str) -> None:
    tagged = Metadata(MetadataTags({"shop.Order.*": ["GDPR", "PII"]}), None, [])
    theirs.set_config(name, ServerConfig(override_metadata=tagged))
    assert theirs.get_config(name).override_metadata == tagged


def test_groups_of_versions_are_compared_among_themselves(theirs: Confluent, name: str) -> None:
    theirs.set_config(name, ServerConfig(compatibility_group="major"))
    theirs.register_schema(name, Schema(ORDER.schema_str, "AVRO", [], _metadata(name, major="1")))
    with pytest.raises(SchemaRegistryError, match="incompatible"):
        theirs.register_schema(name, Schema(ORDER_BROKEN.schema_str, "AVRO", [], _metadata(name, major="1")))
    broken = Schema(ORDER_BROKEN.schema_str, "AVRO", [], _metadata(name, major="2"))
    assert theirs.register_schema_full_response(name, broken).version == 2


def test_a_subject_s_mode_is_set_returned_and_deleted(theirs: Confluent, name: str) -> None:
    theirs.register_schema(name, ORDER)
    assert theirs.update_mode(name, "READONLY") == "READONLY"
    assert theirs.get_mode(name) == "READONLY"
    with pytest.raises(SchemaRegistryError) as refusal:
        theirs.register_schema(name, ORDER_2)
    assert (refusal.value.http_status_code, refusal.value.error_code) == (422, 42205)
    assert theirs.delete_mode(name) == "READONLY"
    assert theirs.register_schema(name, ORDER_2) > 0
    with pytest.raises(SchemaRegistryError) as refusal:
        theirs.update_mode(name, "IMPORT")
    assert refusal.value.error_code == 42205
    assert theirs.update_mode(name, "IMPORT", force=True) == "IMPORT"


def test_the_global_mode_is_set_and_returned(theirs: Confluent, name: str) -> None:
    assert theirs.get_global_mode() == "READWRITE"
    try:
        assert theirs.update_global_mode("READONLY") == "READONLY"
        assert theirs.get_global_mode() == "READONLY"
        with pytest.raises(SchemaRegistryError, match="read-only mode"):
            theirs.register_schema(name, ORDER)
    finally:
        theirs.update_global_mode("READWRITE", force=True)
    assert theirs.register_schema(name, ORDER) > 0


# --- associations -----------------------------------------------------------------------------------------------------


def test_topics_are_associated_with_subjects(theirs: Confluent, name: str) -> None:
    for subject in ("mine", "other"):
        theirs.register_schema(f"{name}-{subject}", ORDER)
    wanted = {("value", f"{name}-mine", "WEAK"), ("key", f"{name}-other", "STRONG")}
    infos = [AssociationCreateOrUpdateInfo(subject, kind, lifecycle) for kind, subject, lifecycle in sorted(wanted)]
    answer = theirs.create_association(AssociationCreateOrUpdateRequest(name, "cluster", f"id-{name}", "topic", infos))
    assert (answer.resource_name, answer.resource_namespace, answer.resource_id) == (name, "cluster", f"id-{name}")
    assert {(made.association_type, made.subject, made.lifecycle) for made in answer.associations} == wanted
    found = theirs.get_associations_by_resource_name(name, "cluster", "topic", ["value"])
    assert [(each.subject, each.association_type) for each in found] == [(f"{name}-mine", "value")]
    assert len(theirs.get_associations_by_resource_name(name, "-")) == 2
    assert len(theirs.get_associations_by_resource_name(name, "cluster", offset=1, limit=5)) == 1
    theirs.delete_associations(f"id-{name}", "topic", ["value"])
    assert [each.association_type for each in theirs.get_associations_by_resource_name(name, "cluster")] == ["key"]
    theirs.delete_associations(f"id-{name}", cascade_lifecycle=True)
    assert theirs.get_associations_by_resource_name(name, "cluster") == []
    assert theirs.get_subjects(subject_prefix=name, deleted=True) == [f"{name}-mine"]


def test_a_schema_that_is_brought_along_belongs_to_the_topic(theirs: Confluent, name: str) -> None:
    brought = AssociationCreateOrUpdateInfo(association_type="key", lifecycle="STRONG", schema=STRING)
    answer = theirs.create_association(AssociationCreateOrUpdateRequest(name, "cluster", name, "topic", [brought]))
    (made,) = answer.associations
    assert (made.subject, made.frozen) == (f":.cluster:{name}-key", True)
    assert theirs.get_latest_version(made.subject).schema.schema_str == STRING.schema_str


# --- the client itself ------------------------------------------------------------------------------------------------


def test_a_client_is_made_asked_for_its_settings_and_closed(registry: RegistryProcess) -> None:
    made = SchemaRegistryClient.new_client({"url": registry.url})
    assert made.config() == {"url": registry.url}
    made.close()
    with pytest.raises(RuntimeError, match="closed"):
        made.get_subjects()


async def test_an_async_client_is_made_asked_for_its_settings_and_closed(registry: RegistryProcess) -> None:
    made = AsyncSchemaRegistryClient.new_client({"url": registry.url})
    assert made.config() == {"url": registry.url}
    assert isinstance(await made.get_subjects(), list)
    await made.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await made.get_subjects()


def test_the_next_address_is_tried_when_one_does_not_answer(registry: RegistryProcess, name: str) -> None:
    with confluent(f"http://127.0.0.1:1,{registry.url}", settings={"max.retries": 0}) as theirs:
        assert theirs.register_schema(name, ORDER) > 0


# --- what is refused --------------------------------------------------------------------------------------------------


def _known(theirs: Confluent, subject: str) -> str:
    theirs.register_schema(subject, ORDER)
    return subject


def _deleted(theirs: Confluent, subject: str) -> str:
    theirs.delete_subject(_known(theirs, subject))
    return subject


def _referenced(theirs: Confluent, subject: str) -> str:
    theirs.register_schema(f"{subject}-user", _array_of(_known(theirs, subject)))
    return subject


_NO_GUID = "00000000-0000-0000-0000-000000000001"
_RULE = RULES.domain_rules[1]  # type: ignore[index] # they are there
_TWICE = RuleSet([], [_RULE, _RULE])
_MISSING = [SchemaReference("x", "surely-not-there", 1)]

REFUSALS: dict[str, tuple[int, Callable[[Confluent, str], object]]] = {
    "unknown subject: latest": (40401, lambda t, s: t.get_latest_version(s)),
    "unknown subject: version": (40401, lambda t, s: t.get_version(s, 1)),
    "unknown subject: versions": (40401, lambda t, s: t.get_versions(s)),
    "unknown subject: look-up": (40401, lambda t, s: t.lookup_schema(s, ORDER)),
    "unknown subject: delete": (40401, lambda t, s: t.delete_subject(s)),
    "unknown subject: delete version": (40401, lambda t, s: t.delete_version(s, 1)),
    "unknown subject: metadata": (40401, lambda t, s: t.get_latest_with_metadata(s, {"a": "b"})),
    "unknown subject: referenced by": (40401, lambda t, s: t.get_referenced_by(s, 1)),
    "unknown subject: delete config": (40401, lambda t, s: t.delete_config(s)),
    "unknown subject: delete mode": (40401, lambda t, s: t.delete_mode(s)),
    "unknown version": (40402, lambda t, s: t.get_version(_known(t, s), 9)),
    "unknown version: delete": (40402, lambda t, s: t.delete_version(_known(t, s), 9)),
    "unknown version: compatibility": (40402, lambda t, s: t.test_compatibility(_known(t, s), ORDER, 9)),
    "unknown id": (40403, lambda t, _: t.get_schema(2_000_000_000)),
    "unknown id: subjects": (40403, lambda t, _: t.get_subjects_by_schema_id(2_000_000_000)),
    "unknown id: versions": (40403, lambda t, _: t.get_schema_versions(2_000_000_000)),
    "unknown guid": (40403, lambda t, _: t.get_schema_by_guid(_NO_GUID)),
    "unknown schema: look-up": (40403, lambda t, s: t.lookup_schema(_known(t, s), ORDER_2)),
    "unknown metadata": (40403, lambda t, s: t.get_latest_with_metadata(_known(t, s), {"a": "b"})),
    "deleted twice": (40404, lambda t, s: t.delete_subject(_deleted(t, s))),
    "permanently deleted at once": (40405, lambda t, s: t.delete_subject(_known(t, s), permanent=True)),
    "version permanently deleted at once": (40407, lambda t, s: t.delete_version(_two(t, s), 1, permanent=True)),
    "version deleted twice": (40406, lambda t, s: [t.delete_version(_two(t, s), 1), t.delete_version(s, 1)]),
    "config of no subject": (40408, lambda t, s: t.get_config(s)),
    "level of no subject": (40408, lambda t, s: t.get_compatibility(s)),
    "mode of no subject": (40409, lambda t, s: t.get_mode(s)),
    "incompatible": (40901, lambda t, s: t.register_schema(_known(t, s), ORDER_BROKEN)),
    "no schema": (42201, lambda t, s: t.register_schema(s, Schema('{"type":"recor"}', "AVRO"))),
    "no such type": (42201, lambda t, s: t.register_schema(s, Schema('"int"', "THRIFT"))),
    "no such reference": (42201, lambda t, s: t.register_schema(s, Schema('"x"', "AVRO", _MISSING))),
    "no schema: look-up": (42201, lambda t, s: t.lookup_schema(_known(t, s), Schema("{", "JSON"))),
    "no schema: compatibility": (42201, lambda t, s: t.test_compatibility(_known(t, s), Schema("x", "PROTOBUF"))),
    "no version": (42202, lambda t, s: t.get_version(_known(t, s), 0)),
    "no version: delete": (42202, lambda t, s: t.delete_version(_known(t, s), 0)),
    "no level": (42203, lambda t, s: t.set_compatibility(s, level="SIDEWAYS")),
    "no mode": (42204, lambda t, s: t.update_mode(s, "WRITEONLY")),
    "read only": (42205, lambda t, s: t.delete_subject(_read_only(t, s))),
    "referenced": (42206, lambda t, s: t.delete_subject(_referenced(t, s))),
    "referenced version": (42206, lambda t, s: t.delete_version(_referenced(t, s), 1)),
    "reserved name": (42208, lambda t, _: t.register_schema("__GLOBAL", ORDER)),
    "too large": (42209, lambda t, s: t.register_schema(s, Schema(f'"{"x" * (1 << 20)}"', "AVRO"))),
    "rules of one name": (42210, lambda t, s: t.register_schema(s, Schema(ORDER.schema_str, "AVRO", [], None, _TWICE))),
    "association of nothing": (
        42212,
        lambda t, s: t.create_association(AssociationCreateOrUpdateRequest(s, "c", s, "topic", [])),
    ),
    "association of an unknown subject": (
        40907,
        lambda t, s: t.create_association(
            AssociationCreateOrUpdateRequest(s, "c", s, "topic", [AssociationCreateOrUpdateInfo(s, "value", "WEAK")])
        ),
    ),
}


def _two(theirs: Confluent, subject: str) -> str:
    theirs.register_schema(_known(theirs, subject), ORDER_2)
    return subject


def _read_only(theirs: Confluent, subject: str) -> str:
    theirs.update_mode(_known(theirs, subject), "READONLY")
    return subject


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_has_the_code_that_clients_branch_on(theirs: Confluent, name: str, case: str) -> None:
    code, call = REFUSALS[case]
    with pytest.raises(SchemaRegistryError) as refusal:
        call(theirs, name)
    assert (refusal.value.http_status_code, refusal.value.error_code) == (code // 100, code)
    assert refusal.value.error_message
