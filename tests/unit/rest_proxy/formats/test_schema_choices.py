import pytest

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import NO_CHOICE, Format, SchemaChoice
from rest_proxy.formats.rules import V2, V3, Rules
from rest_proxy.formats.schema_choices import MAX_TEXT_CHARACTERS, Target, check
from schema_registry.serdes.subject_names import SubjectNameStrategy


def check_choice(format_: Format | None, choice: SchemaChoice, rules: Rules) -> None:
    check(Target(format=format_, topic="t", is_key=False, choice=choice), rules)


@pytest.mark.parametrize(
    ("format_", "choice", "rules"),
    [
        (Format.AVRO, SchemaChoice(schema="x"), V3),
        (Format.AVRO, SchemaChoice(schema="x", subject="s"), V3),
        (Format.AVRO, SchemaChoice(schema="x", strategy=SubjectNameStrategy.RECORD_NAME), V3),
        (None, SchemaChoice(schema_id=1), V3),
        (None, SchemaChoice(schema_id=1, subject="s"), V3),
        (None, SchemaChoice(schema_version=1), V3),
        (None, SchemaChoice(subject="s"), V3),
        (None, NO_CHOICE, V3),
        (Format.BINARY, NO_CHOICE, V3),
        (Format.AVRO, SchemaChoice(schema_id=1), V2),
        (Format.AVRO, SchemaChoice(schema="x"), V2),
    ],
)
def test_what_is_clear_is_taken(format_: Format | None, choice: SchemaChoice, rules: Rules) -> None:
    check_choice(format_, choice, rules)


@pytest.mark.parametrize(
    ("format_", "choice", "rules", "message"),
    [
        (None, SchemaChoice(subject="s", strategy=SubjectNameStrategy.TOPIC_NAME), V3, "Only one of 'subject_name_str"),
        (
            None,
            SchemaChoice(schema_id=1, schema_version=1),
            V3,
            "Only one of 'schema_id', 'schema_version' or 'schema'",
        ),
        (
            Format.AVRO,
            SchemaChoice(schema_id=1, schema="x"),
            V2,
            "Only one of 'schema_id', 'schema_version' or 'schema'",
        ),
        (
            Format.AVRO,
            SchemaChoice(schema_id=1),
            V3,
            "'type=AVRO' needs a 'schema': with 'schema_id', leave out the type",
        ),
        (Format.AVRO, SchemaChoice(schema_version=1), V3, "'type=AVRO' needs a 'schema'"),
        (Format.PROTOBUF, NO_CHOICE, V3, "'type=PROTOBUF' needs a 'schema'"),
        (None, SchemaChoice(schema="x"), V3, "'schema' cannot be used without 'type'"),
        (Format.BINARY, SchemaChoice(subject="s"), V3, "'type=BINARY' cannot be used with 'subject'"),
        (Format.JSON, SchemaChoice(schema="x"), V3, "'type=JSON' cannot be used with 'schema'"),
        (Format.JSON, SchemaChoice(schema_id=1), V3, "'type=JSON' cannot be used with 'schema_id'"),
        (Format.JSON, SchemaChoice(schema_version=1), V3, "'type=JSON' cannot be used with 'schema_version'"),
        (
            Format.STRING,
            SchemaChoice(strategy=SubjectNameStrategy.TOPIC_NAME),
            V3,
            "'type=STRING' cannot be used with 'subject_name_strategy'",
        ),
        (None, SchemaChoice(schema_id=-1), V3, "schema_id=-1 is not a valid schema id"),
        (None, SchemaChoice(schema_id=2**31), V3, "schema_id=2147483648 is not a valid schema id"),
    ],
)
def test_contradictory_choices_are_refused(
    format_: Format | None, choice: SchemaChoice, rules: Rules, message: str
) -> None:
    with pytest.raises(ProxyError, match=message) as error:
        check_choice(format_, choice, rules)
    assert error.value.code == 400


def test_a_schema_has_a_size() -> None:
    check_choice(Format.AVRO, SchemaChoice(schema="x" * MAX_TEXT_CHARACTERS), V3)
    with pytest.raises(ProxyError, match="longer than 1048576 characters") as error:
        check_choice(Format.AVRO, SchemaChoice(schema="x" * (MAX_TEXT_CHARACTERS + 1)), V3)
    assert error.value.code == 42205
