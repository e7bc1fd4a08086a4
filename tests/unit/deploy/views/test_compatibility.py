import pytest

from deploy.views.compatibility import Difference, read_judgement, swap_sides

AVRO = (
    "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'total' at path '/fields/1' in the new "
    "schema has no default value and is missing in the old schema', additionalInfo:'total'}"
)
TYPE = (
    "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in the new schema does not "
    "match with the old schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'}"
)
JSON = (
    '{errorType:"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", description:"The new has a closed content model and is '
    "missing a property or item present at path '#/properties/it's' in the old schema\"}"
)


@pytest.mark.parametrize(
    "message,kind,path,detail",
    [
        (AVRO, "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1", "total"),
        (TYPE, "TYPE_MISMATCH", "/fields/0/type", "reader type: INT not compatible with writer type: STRING"),
        (JSON, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/it's", ""),
        (JSON.replace('schema"}', "schema'}"), "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/it's", ""),
        (AVRO.replace(", additionalInfo:'total'", ""), "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1", ""),
    ],
    ids=["avro", "type", "json", "careless-quotes", "no-detail"],
)
def test_difference_is_read_with_type_path_words_and_detail(message: str, kind: str, path: str, detail: str) -> None:
    (found,) = read_judgement([message], is_compatible=False).differences
    assert (found.type, found.path, found.detail) == (kind, path, detail)
    assert found.words.endswith(" schema")


def test_version_and_level_are_read_and_the_old_schema_is_left_out() -> None:
    about = ["{oldSchemaVersion: 3}", "{oldSchema: '\"string\"'}", "{validateFields: 'false', compatibility: 'FULL'}"]
    judged = read_judgement([AVRO, TYPE, *about], is_compatible=False)
    assert (len(judged.differences), judged.version, judged.level) == (2, 3, "FULL")


def test_words_of_any_other_kind_are_kept() -> None:
    words = "Incompatible because of different schema type"
    assert read_judgement([words], is_compatible=False).differences == (Difference(words=words),)


def test_no_messages_are_no_differences() -> None:
    judged = read_judgement([], is_compatible=True)
    assert (judged.is_compatible, judged.differences, judged.version, judged.level) == (True, (), None, None)


def test_swapped_words_call_the_new_schema_old_and_leave_names_alone() -> None:
    difference = Difference(words="The field 'new' at path '/old' in the new schema is missing in the old schema")
    turned = swap_sides(read_judgement([difference.words], is_compatible=False)).differences[0]
    assert turned.words == "The field 'new' at path '/old' in the old schema is missing in the new schema"
