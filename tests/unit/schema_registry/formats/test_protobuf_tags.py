"""Tags of messages and fields: read from and written into Confluent's options."""

import pytest

from schema_registry.formats.protobuf import parse
from schema_registry.formats.protobuf_tags import TagChange, change_tags, has, tags_of

PLAIN = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  string f = 1%s;\n\n  message N {\n    string g = 1;\n  }\n}\n'
TAGGED = PLAIN % ' [(confluent.field_meta) = {\n    tags: [\n      "PII",\n      "X"\n    ]\n  }]'


def field(path: str, *add: str, remove: tuple[str, ...] = ()) -> TagChange:
    return TagChange(path=path, is_field=True, add=list(add), remove=remove)


@pytest.mark.parametrize("path", ["M.f", ".M.f", "p.M.f", ".p.M.f"])
def test_a_field_is_tagged_and_untagged(path: str) -> None:
    assert change_tags(parse(PLAIN % ""), [field(path, "PII"), field(path, "X", "PII")]) == TAGGED
    assert change_tags(parse(TAGGED), [field(path, remove=("X", "PII"))]) == PLAIN % ""


def test_the_rest_of_the_option_stays() -> None:
    schema = parse(PLAIN % ' [deprecated = true, (confluent.field_meta) = { doc: "d" tags: "A" }]')
    text = change_tags(schema, [field("M.f", "B", remove=("A",))])
    assert 'deprecated = true,\n    (confluent.field_meta) = {\n      doc: "d",\n      tags: [\n        "B"\n' in text
    assert parse(text).canonical == text


def test_the_same_goes_for_files_that_import_the_definition() -> None:
    text = PLAIN.replace("package p;\n", 'package p;\n\nimport "confluent/meta.proto";\n') % ""
    tagged = change_tags(parse(text), [field("M.N.g", 'quo"te')])
    assert [(item.path, item.add) for item in tags_of(parse(tagged))] == [(".M.N.g", ['quo"te'])]
    assert change_tags(parse(tagged), [field("M.N.g", remove=('quo"te',))]) == text


@pytest.mark.parametrize(
    "option",
    [
        '(confluent.field_meta) = { tags: ["PII", "X"] }',
        '(confluent.field_meta).tags = "PII", (confluent.field_meta).tags = "X"',
    ],
)
def test_tags_are_found_however_they_are_written(option: str) -> None:
    schema = parse(PLAIN % f" [{option}]")
    assert tags_of(schema) == [field(".M.f", "PII", "X")]
    assert tags_of(parse(schema.normalized)) == tags_of(schema)


def test_messages_have_tags_too() -> None:
    text = change_tags(parse(PLAIN % ""), [TagChange(path="M.N", is_field=False, add=["R"])])
    assert tags_of(parse(text)) == [TagChange(path=".M.N", is_field=False, add=["R"])]


@pytest.mark.parametrize("path", ["M.g", "N.f", "M", "q.M.f", "M.f.f", ""])
def test_what_is_not_there_cannot_be_tagged(path: str) -> None:
    assert not has(parse(PLAIN % ""), field(path))
    with pytest.raises(KeyError):
        change_tags(parse(PLAIN % ""), [field(path, "PII")])
