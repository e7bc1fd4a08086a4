"""Tags inside of schemas."""

import json
import time
from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import TagBody
from tests.support.patience import PATIENCE_S
from tests.support.registry_world import RegistryWorld, record

JSON_TEXT = '{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}'


def tags(path: str, *names: str, kind: str = "sr_field") -> dict[str, Any]:
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(names)}


def change(world: RegistryWorld, **body: Any) -> Any:
    return world.registry.tag("orders", "latest", TagBody.model_validate(body))


def test_tags_of_avro_fields_and_records_become_a_new_version(world: RegistryWorld) -> None:
    world.register("orders", record("a", "b"))
    answer = change(world, tagsToAdd=[tags("Order.a", "PII", "X"), tags("Order", "R", kind="sr_record")])
    document = json.loads(answer.schema_)
    assert answer.version == 2
    assert document["confluent:tags"] == ["R"]
    assert document["fields"][0]["confluent:tags"] == ["PII", "X"]
    assert answer.metadata.properties == {"confluent:version": "2"}
    less = json.loads(change(world, tagsToRemove=[tags(".Order.a", "PII")]).schema_)
    assert less["fields"][0]["confluent:tags"] == ["X"]


def test_the_new_version_can_be_given(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    with pytest.raises(RegistryError, match="one more than previous") as refused:
        change(world, newVersion=7, tagsToAdd=[tags("Order.a", "PII")])
    assert refused.value.code == 42201
    assert change(world, newVersion=2, tagsToAdd=[tags("Order.a", "PII")]).version == 2


def test_tags_of_json_properties(world: RegistryWorld) -> None:
    world.register("orders", JSON_TEXT, schemaType="JSON")
    answer = change(world, tagsToAdd=[tags("object.a.object.b", "PII")])
    assert json.loads(answer.schema_)["properties"]["a"]["properties"]["b"]["confluent:tags"] == ["PII"]


def test_tags_of_protobuf_are_options(world: RegistryWorld) -> None:
    plain = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  message N {\n    string f = 1%s;\n  }\n}\n'
    world.register("orders", plain % "", schemaType="PROTOBUF")
    answer = change(world, tagsToAdd=[tags("M.N.f", "PII"), tags(".p.M.N.f", "X", "PII")])
    tagged = ' [(confluent.field_meta) = {\n      tags: [\n        "PII",\n        "X"\n      ]\n    }]'
    assert answer.schema_ == plain % tagged
    assert answer.metadata.tags is None
    answer = change(world, tagsToAdd=[tags("M", "R", kind="sr_record")], tagsToRemove=[tags("M.N.f", "PII", "X")])
    option = '  option (confluent.message_meta) = {\n    tags: [\n      "R"\n    ]\n  };\n\n'
    assert answer.schema_ == (plain % "").replace("  message N", option + "  message N")


@pytest.mark.parametrize("path", ["M.g", "N.f", "M", "f", "p.M.f.g", ""])
def test_only_what_a_protobuf_schema_has_can_be_tagged(world: RegistryWorld, path: str) -> None:
    world.register("orders", 'syntax = "proto3";\npackage p;\nmessage M { string f = 1; }', schemaType="PROTOBUF")
    with pytest.raises(RegistryError) as refused:
        change(world, tagsToAdd=[tags(path, "PII")])
    assert refused.value.code == 42201


def test_rules_can_be_merged_and_removed_with_tags(world: RegistryWorld) -> None:
    world.register("orders", record("a"), ruleSet={"domainRules": [{"name": "old", "type": "CEL"}]})
    answer = change(
        world, rulesToMerge={"domainRules": [{"name": "new", "type": "CEL"}]}, rulesToRemove=["old"], newVersion=2
    )
    assert [rule.name for rule in answer.rule_set.domain_rules] == ["new"]


@pytest.mark.parametrize(
    ("subject", "version", "code"), [("nowhere", "1", 40401), ("orders", "9", 40402), ("orders", "x", 42202)]
)
def test_versions_that_cannot_be_tagged(world: RegistryWorld, subject: str, version: str, code: int) -> None:
    world.register("orders", record("a"))
    with pytest.raises(RegistryError) as refused:
        world.registry.tag(subject, version, TagBody())
    assert refused.value.code == code


def test_what_is_not_there_cannot_be_tagged(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    with pytest.raises(RegistryError, match=r"Order\.z") as refused:
        change(world, tagsToAdd=[tags("Order.z", "PII")])
    assert refused.value.code == 42201


def test_tags_may_come_with_a_registration_and_stay_on(world: RegistryWorld) -> None:
    first = world.register("orders", record("a"), schemaTagsToAdd=[tags("Order.a", "PII")])
    assert first.schema_ is not None
    assert '"confluent:tags":["PII"]' in first.schema_
    second = world.register("orders", record("a", "b"), propagateSchemaTags=True)
    assert second.schema_ is not None
    assert '"confluent:tags":["PII"]' in second.schema_


def test_tags_are_found_if_asked_for(world: RegistryWorld) -> None:
    both = [tags("Order", "R", kind="sr_record"), tags("Order.b", "PII")]
    world.register("orders", record("a", "b"), schemaTagsToAdd=both)
    assert world.registry.version("orders", "1").schema_tags is None
    assert world.registry.version("orders", "1", find_tags=["*"]).schema_tags == both
    assert world.registry.schema_by_id(1, find_tags=["PII", "X"]).schema_tags == both[1:]
    assert world.registry.schema_by_id(1, find_tags=["X"]).schema_tags is None


def test_tags_of_json_properties_are_found_and_stay_on(world: RegistryWorld) -> None:
    world.register("orders", JSON_TEXT, schemaType="JSON", schemaTagsToAdd=[tags("object.a.object.b", "PII")])
    assert world.registry.version("orders", "1", find_tags=["PII"]).schema_tags == [tags("object.a.object.b", "PII")]
    wider = json.loads(JSON_TEXT) | {"title": "T"}
    second = world.register("orders", json.dumps(wider), schemaType="JSON", propagateSchemaTags=True)
    assert second.schema_ is not None
    assert '"confluent:tags":["PII"]' in second.schema_


@pytest.mark.parametrize(
    "path,kind",
    [
        ("object.list.array.object.a", "sr_field"),
        ("object.list.array.object", "sr_record"),
        ("object.both.allof.0.object.a", "sr_field"),
        ("object.both.allof.0.object", "sr_record"),
        ("object.never.not.object.a", "sr_field"),
        ("conditional.then.object.a", "sr_field"),
        ("allof.1.object.colour", "sr_field"),
        ("object", "sr_record"),
        ("list.array.a", "sr_field"),
    ],
)
def test_paths_in_json_schema_go_through_arrays_and_combinations(world: RegistryWorld, path: str, kind: str) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    properties = {
        "list": {"type": "array", "items": inner},
        "both": {"allOf": [{"type": "string"}, inner]},
        "never": {"not": inner},
        "colour": {"enum": ["red"]},
    }
    text = json.dumps({"type": "object", "properties": properties, "if": {}, "then": inner}, separators=(",", ":"))
    world.register("orders", text, schemaType="JSON")
    tagged = change(world, tagsToAdd=[tags(path, "PII", kind=kind)]).schema_
    assert tagged is not None
    assert tagged.count('"confluent:tags":["PII"]') == 1
    assert change(world, tagsToRemove=[tags(path, "PII", kind=kind)]).schema_ == text


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_endless_paths_lead_nowhere(world: RegistryWorld, kind: str) -> None:
    texts = {
        "AVRO": record("a"),
        "JSON": '{"type":"object"}',
        "PROTOBUF": 'syntax = "proto3";\nmessage object { string a = 1; }',
    }
    world.register("orders", texts[kind], schemaType=kind)
    with pytest.raises(RegistryError) as refused:
        change(world, tagsToAdd=[tags("object." * 100_000, "PII")])
    assert refused.value.code == 42201


def test_tags_in_many_places_are_written_at_once(world: RegistryWorld) -> None:
    names = [f"f{number}" for number in range(3_000)]
    world.register("orders", record(*names))
    started = time.process_time()
    answer = change(world, tagsToAdd=[tags(f"Order.{name}", "PII") for name in names[-500:]])
    assert time.process_time() - started < PATIENCE_S
    assert answer.schema_.count("PII") == 500


def test_tags_in_more_places_than_a_request_may_name_are_refused(world: RegistryWorld) -> None:
    world.register("orders", record("a"))
    with pytest.raises(RegistryError, match="changes the tags of 501 records and fields, but at most 500 are allowed"):
        change(world, tagsToAdd=[tags("Order.a", "PII")] * 501)


def test_tags_of_protobuf_are_found_and_go_on_to_the_next_version(world: RegistryWorld) -> None:
    text = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  string f = 1;\n  string g = 2;\n%s}\n'
    world.register("orders", text % "", schemaType="PROTOBUF")
    change(world, tagsToAdd=[tags("M.f", "PII"), tags("M", "R", kind="sr_record")])
    found = world.registry.version("orders", "latest", find_tags=["PII"])
    assert found.schema_tags == [tags(".M.f", "PII")]
    world.register("orders", text % "  string h = 3;\n", schemaType="PROTOBUF", propagateSchemaTags=True)
    everything = world.registry.version("orders", "latest", find_tags=["*"])
    assert everything.schema_tags == [tags(".M", "R", kind="sr_record"), tags(".M.f", "PII")]
    assert "string h = 3;" in (everything.schema_ or "")
