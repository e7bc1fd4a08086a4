import pytest

from connect.api.data import (
    FLOAT64,
    INT32,
    OPTIONAL_BOOLEAN,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    struct,
)
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink, typed, value_of


@pytest.mark.parametrize(("amount", "kept"), [(500, True), (5, False)])
def test_records_for_which_the_condition_is_true_are_kept(amount: int, kept: bool) -> None:
    transform = made("caudal.Filter", condition="value.amount > 100")
    record = sink(struct({"amount": INT32}), {"amount": amount})
    assert transform.apply(record) is (record if kept else None)


def test_a_condition_may_ask_for_null() -> None:
    transform = made("caudal.Filter", condition="value != null")
    assert transform.apply(sink(None, None)) is None
    assert transform.apply(sink(None, 1)) is not None


@pytest.mark.parametrize(("mode", "kept"), [("keep", True), ("drop", False), ("evaluate", False)])
def test_null_is_kept_dropped_or_looked_at(mode: str, kept: bool) -> None:
    transform = made("io.debezium.transforms.Filter", condition="value.op == 'u'", null_handling_mode=mode)
    assert (transform.apply(sink(None, None)) is not None) is kept


def test_simple_conditions_of_debezium_mean_the_same() -> None:
    options = {"language": "jsr223.groovy", "condition": "value.op == 'u' && value.before.id == 2"}
    transform = made("io.debezium.transforms.Filter", **options, topic_regex="db.*")
    wanted = {"op": "u", "before": {"id": 2}}
    assert transform.apply(sink(None, wanted, topic="db.a")) is not None
    assert transform.apply(sink(None, {"op": "c"}, topic="db.a")) is None
    assert transform.apply(sink(None, {"op": "c"}, topic="other")) is not None
    assert transform.apply(sink(None, None, topic="db.a")) is not None


def test_a_condition_that_fails_is_a_fault_of_the_record() -> None:
    with pytest.raises(DataError, match="the expression condition"):
        made("caudal.Filter", condition="value.amount > 100").apply(sink(None, {}))


def test_an_expression_tells_the_topic() -> None:
    options = {"language": "jsr223.groovy", "topic_expression": "'big' if value.n > 10 else null"}
    transform = made("io.debezium.transforms.ContentBasedRouter", **options)
    assert changed(transform, sink(None, {"n": 11})).topic == "big"
    assert changed(transform, sink(None, {"n": 1})).topic == "topic"
    assert changed(transform, sink(None, None)).topic == "topic"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("caudal.Filter", {}),
        ("caudal.Filter", {"condition": "value >"}),
        ("caudal.Filter", {"condition": "true", "topic_regex": "("}),
        ("io.debezium.transforms.ContentBasedRouter", {"topic_expression": "nope"}),
        ("caudal.Map", {}),
        ("caudal.Map", {"value": "1 +"}),
        ("caudal.Map", {"field_x": "nope"}),
    ],
)
def test_options_that_cannot_work_are_refused(name: str, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made(name, **options)


def test_key_value_and_topic_are_set_from_the_record_as_it_came() -> None:
    transform = made("caudal.Map", key="value.id", value="{'id': key, 'n': value.n + 1}", topic="upper(topic)")
    record = changed(transform, sink(None, {"id": 7, "n": 1}, key="k"))
    assert (record.topic, record.key_schema, record.key) == ("TOPIC", None, 7)
    assert (record.value_schema, record.value) == (None, {"id": "k", "n": 2})


def test_results_get_a_schema_when_the_record_has_one() -> None:
    transform = made("caudal.Map", key="value.id", value="{'id': value.id, 'ok': value.n > 1, 'half': value.n / 2}")
    record = changed(transform, sink(struct({"id": STRING, "n": INT32}), {"id": "x", "n": 3}))
    assert (record.key_schema, record.key) == (OPTIONAL_STRING, "x")
    expected = {"id": OPTIONAL_STRING, "ok": OPTIONAL_BOOLEAN, "half": OPTIONAL_FLOAT64}
    assert record.value_schema == struct(expected, optional=True)
    assert record.value == {"id": "x", "ok": True, "half": 1.5}


def test_a_value_that_becomes_null_has_no_schema() -> None:
    assert typed(made("caudal.Map", value="null"), STRING, "x") == (None, None)


def test_fields_are_set_and_keep_their_schema_where_they_fit() -> None:
    options = {"field_n": "value.n + 1", "field_f": "value.n", "field_s": "value.n", "field_new": "lower(value.s)"}
    schema = struct({"n": INT32, "f": FLOAT64, "s": STRING}, name="r")
    new_schema, value = typed(made("caudal.Map", **options), schema, {"n": 1, "f": 0.0, "s": "S"})
    assert new_schema == struct({"n": INT32, "f": FLOAT64, "s": OPTIONAL_INT64, "new": OPTIONAL_STRING}, name="r")
    assert value == {"n": 2, "f": 1.0, "s": 1, "new": "s"}
    assert type(value["f"]) is float


def test_a_number_that_the_field_cannot_hold_gets_a_wider_one() -> None:
    transform = made("caudal.Map", field_n="value.n * 1000000")
    assert typed(transform, struct({"n": INT32}), {"n": 2_000_000})[0] == struct({"n": OPTIONAL_INT64})


def test_null_fits_what_the_field_was_before() -> None:
    transform = made("caudal.Map", field_n="value.m", field_new="value.m")
    schema = struct({"n": INT32, "m": OPTIONAL_INT32})
    assert typed(transform, schema, {"n": 1, "m": None})[0] == struct(
        {"n": OPTIONAL_INT32, "m": OPTIONAL_INT32, "new": OPTIONAL_STRING}
    )
    typed(transform, schema, {"n": 1, "m": 5})
    assert typed(transform, schema, {"n": 1, "m": None})[0] == struct(
        {"n": OPTIONAL_INT32, "m": OPTIONAL_INT32, "new": OPTIONAL_INT64}
    )


def test_fields_of_maps_are_set_and_tombstones_stay() -> None:
    transform = made("caudal.Map", field_a="value.b + 1")
    assert value_of(transform, {"b": 1}) == {"a": 2, "b": 1}
    assert value_of(made("caudal.Map", field_a="1"), None) is None


@pytest.mark.parametrize("topic", ["null", "''", "5"])
def test_a_topic_must_be_text(topic: str) -> None:
    with pytest.raises(DataError, match="a topic must be a non-empty text"):
        made("caudal.Map", topic=topic).apply(sink(None, 1))


def test_fields_need_a_value_with_fields() -> None:
    for schema in (None, STRING):
        with pytest.raises(DataError, match=r"\[setting fields\]"):
            typed(made("caudal.Map", field_a="1"), schema, "text")


def test_numbers_beyond_64_bits_have_no_schema() -> None:
    with pytest.raises(DataError, match="more than 64 bits"):
        typed(made("caudal.Map", field_a="9223372036854775807 + 1"), struct({}), {})
