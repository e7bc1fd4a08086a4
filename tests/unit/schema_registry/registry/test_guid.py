"""Identities of schemas: equal in every registry, and different where anything differs."""

import pytest

from schema_registry.formats.schema import SchemaType
from schema_registry.models import Metadata, RuleSet
from schema_registry.registry.data_contracts import tidy_metadata, tidy_rules
from schema_registry.registry.guid import Content
from schema_registry.store.schemas import StoredReference

REFERENCES = (
    StoredReference(name="n.Base", subject="base", version=3, context=".", target="base"),
    StoredReference(name="n.Other", subject="other", version=1, context=".", target="other"),
)
METADATA = tidy_metadata(
    Metadata(tags={"f.b": ["Y", "X"], "a": ["P"]}, properties={"z": "1", "b": "2"}, sensitive=["s", "k"])
)
RULES = tidy_rules(
    RuleSet.model_validate(
        {
            "domainRules": [
                {
                    "name": "r",
                    "kind": "CONDITION",
                    "mode": "WRITE",
                    "type": "CEL",
                    "tags": ["B", "A"],
                    "params": {"p": "1", "a": "2"},
                    "expr": "x",
                    "onFailure": "DLQ",
                    "disabled": True,
                }
            ]
        }
    )
)


def content(
    *,
    text: str = '"string"',
    schema_type: SchemaType = SchemaType.AVRO,
    references: tuple[StoredReference, ...] = (),
    metadata: Metadata | None = None,
    rule_set: RuleSet | None = None,
) -> Content:
    return Content(schema_type=schema_type, text=text, references=references, metadata=metadata, rule_set=rule_set)


@pytest.mark.parametrize(
    ("what", "guid"),
    [
        (content(), "095d71cf-1255-6b9d-5e33-0ad575b3df5d"),
        (content(references=REFERENCES), "ef4b8574-9821-82c7-0639-5cd4e544c8c9"),
        (content(metadata=METADATA), "d2b6951c-89f1-efaf-181a-18d070029f64"),
        (content(rule_set=RULES), "f4b0aebe-6f82-9be2-d45d-d4553699967b"),
        (content(references=REFERENCES, metadata=METADATA, rule_set=RULES), "b0ef3514-7d72-c7ba-ea48-6c3053637fb1"),
        (content(metadata=Metadata()), "cecc02e2-232b-87f1-1b0c-aa0e70dbb74d"),
    ],
)
def test_guids_are_those_of_every_other_registry(what: Content, guid: str) -> None:
    assert what.guid == guid


def test_the_guid_does_not_depend_on_the_order_that_metadata_come_in() -> None:
    turned = Metadata(tags={"a": ["P"], "f.b": ["X", "Y"]}, properties={"b": "2", "z": "1"}, sensitive=["k", "s"])
    assert content(metadata=tidy_metadata(turned)).guid == content(metadata=METADATA).guid


def test_contents_differ_in_everything_that_is_stored() -> None:
    different = [
        content(),
        content(text='"int"'),
        content(schema_type=SchemaType.JSON),
        content(references=REFERENCES),
        content(references=REFERENCES[:1]),
        content(metadata=Metadata()),
        content(metadata=METADATA),
        content(rule_set=RuleSet()),
        content(rule_set=RULES),
    ]
    assert len({one.content_hash for one in different}) == len(different)


def test_a_meaning_does_not_depend_on_the_stated_version() -> None:
    versioned = content(metadata=Metadata(properties={"confluent:version": "3"}))
    assert versioned.meaning_hash("x") == content().meaning_hash("x")
    assert versioned.content_hash != content().content_hash
