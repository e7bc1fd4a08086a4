import datetime as dt

import pytest

from connect.api.data import (
    DATE,
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Value,
    array,
    struct,
)
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink, typed, value_of

NAME = "TimestampConverter$Value"
FORMAT = "yyyy MM dd HH mm ss SSS z"
MOMENT = dt.datetime(1970, 1, 2, 0, 0, 1, 234_000, tzinfo=dt.UTC)
DAY = dt.date(1970, 1, 2)
TIME_OF_DAY = dt.time(0, 0, 1, 234_000)
UNIX = 86_401_234
TEXT = "1970 01 02 00 00 01 234 UTC"
TARGETS = {"Timestamp": TIMESTAMP, "Date": DATE, "Time": TIME, "unix": INT64, "string": STRING}
RESULTS = {"Timestamp": MOMENT, "Date": DAY, "Time": TIME_OF_DAY, "unix": UNIX, "string": TEXT}
MIDNIGHT = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "target.type"),
        ({"target_type": "invalid"}, "one of string, unix, Date, Time, Timestamp"),
        ({"target_type": "timestamp"}, "one of"),
        ({"target_type": "unix", "unix_precision": "invalid"}, "unix.precision"),
        ({"target_type": "string"}, "requires format option to be specified"),
        ({"target_type": "string", "format": "bad-format"}, "SimpleDateFormat-compatible pattern"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(NAME, **options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("schema", "value"), [(TIMESTAMP, MOMENT), (INT64, UNIX), (STRING, TEXT)])
def test_every_kind_of_time_becomes_every_other(target: str, schema: Schema, value: Value) -> None:
    transform = made(NAME, target_type=target, format=FORMAT)
    assert typed(transform, schema, value) == (TARGETS[target], RESULTS[target])
    assert value_of(transform, value) == RESULTS[target]


@pytest.mark.parametrize(
    ("schema", "value", "target", "expected"),
    [
        (DATE, DAY, "Timestamp", MIDNIGHT),
        (TIME, TIME_OF_DAY, "Timestamp", dt.datetime(1970, 1, 1, 0, 0, 1, 234_000, tzinfo=dt.UTC)),
        (DATE, DAY, "unix", 86_400_000),
        (TIME, TIME_OF_DAY, "unix", 1_234),
        (DATE, DAY, "Time", dt.time()),
        (TIME, TIME_OF_DAY, "Date", dt.date(1970, 1, 1)),
        (INT64, -1, "Date", dt.date(1969, 12, 31)),
        (INT64, -1, "Time", dt.time(23, 59, 59, 999_000)),
    ],
)
def test_dates_and_times_become_points_in_time(schema: Schema, value: Value, target: str, expected: Value) -> None:
    transform = made(NAME, target_type=target)
    assert typed(transform, schema, value) == (TARGETS[target], expected)
    assert value_of(transform, value) == expected


@pytest.mark.parametrize(
    ("precision", "number", "back"),
    [
        ("seconds", 86_401, 86_401_000),
        ("milliseconds", 86_401_234, 86_401_234),
        ("microseconds", 86_401_234_123, 86_401_234),
        ("nanoseconds", 86_401_234_123_456, 86_401_234),
        ("microseconds", -1_999, -1),
    ],
)
def test_numbers_count_what_they_are_told_to(precision: str, number: int, back: int) -> None:
    transform = made(NAME, target_type="Timestamp", unix_precision=precision)
    expected = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=back)
    assert typed(transform, INT64, number) == (TIMESTAMP, expected)
    assert value_of(transform, number) == expected


@pytest.mark.parametrize(
    ("precision", "expected"),
    [("seconds", 86_401), ("microseconds", 86_401_234_000), ("nanoseconds", 86_401_234_000_000)],
)
def test_times_become_numbers_of_a_precision(precision: str, expected: int) -> None:
    assert typed(made(NAME, target_type="unix", unix_precision=precision), TIMESTAMP, MOMENT) == (INT64, expected)


def test_seconds_before_1970_are_cut_off_towards_it() -> None:
    before = dt.datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=dt.UTC)
    assert typed(made(NAME, target_type="unix", unix_precision="seconds"), TIMESTAMP, before)[1] == -1


def test_numbers_beyond_64_bits_become_the_largest() -> None:
    far = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)
    assert typed(made(NAME, target_type="unix", unix_precision="nanoseconds"), TIMESTAMP, far)[1] == 2**63 - 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "schema", [OPTIONAL_INT64, TIME.as_optional(), DATE.as_optional(), OPTIONAL_STRING, TIMESTAMP.as_optional()]
)
def test_null_stays_null_and_the_schema_changes(target: str, schema: Schema) -> None:
    expected = TARGETS[target].as_optional()
    assert typed(made(NAME, target_type=target, format=FORMAT), schema, None) == (expected, None)
    field = made(NAME, target_type=target, format=FORMAT, field="ts")
    whole = struct({"ts": schema, "other": STRING})
    new = struct({"ts": expected, "other": STRING})
    assert typed(field, whole, {"ts": None, "other": "x"}) == (new, {"ts": None, "other": "x"})
    assert typed(field, whole.as_optional(), None) == (new.as_optional(), None)


@pytest.mark.parametrize("target", TARGETS)
def test_null_without_schema_stays_null(target: str) -> None:
    assert value_of(made(NAME, target_type=target, format=FORMAT), None) is None
    assert value_of(made(NAME, target_type=target, format=FORMAT, field="ts"), None) is None


def test_one_field_is_converted_and_the_others_stay() -> None:
    transform = made(NAME, target_type="Date", field="ts")
    schema = struct({"ts": TIMESTAMP, "other": STRING}, name="n", optional=True)
    expected = struct({"ts": DATE, "other": STRING}, name="n", optional=True)
    assert typed(transform, schema, {"ts": MOMENT, "other": "x"}) == (expected, {"ts": DAY, "other": "x"})
    assert value_of(transform, {"ts": MOMENT, "other": 1}) == {"ts": DAY, "other": 1}


def test_a_field_that_is_missing_changes_nothing_with_schema_and_is_null_without() -> None:
    transform = made(NAME, target_type="Date", field="ts")
    assert typed(transform, struct({"a": INT32}), {"a": 1}) == (struct({"a": INT32}), {"a": 1})
    assert value_of(transform, {"a": 1}) == {"a": 1, "ts": None}


def test_the_default_of_the_whole_is_converted() -> None:
    schema = struct({"ts": INT64}).but(default={"ts": UNIX})
    new, _ = typed(made(NAME, target_type="Date", field="ts"), schema, {"ts": 0})
    assert new == struct({"ts": DATE}).but(default={"ts": DAY})


@pytest.mark.parametrize(("replaces", "expected"), [("true", DAY), ("false", None)])
def test_null_counts_as_the_default_unless_it_is_kept(replaces: str, expected: dt.date | None) -> None:
    transform = made(NAME, target_type="Date", field="ts", replace_null_with_default=replaces)
    assert typed(transform, struct({"ts": OPTIONAL_INT64.but(default=UNIX)}), {})[1].get("ts") == expected


@pytest.mark.parametrize("schema", [INT32, struct({}), array(STRING)])
def test_schemas_that_are_no_times_are_refused(schema: Schema) -> None:
    with pytest.raises(DataError, match="does not correspond to a known timestamp type format"):
        typed(made(NAME, target_type="Timestamp"), schema, 1)


@pytest.mark.parametrize("value", [1.5, True, ["x"]])
def test_values_that_are_no_times_are_refused(value: Value) -> None:
    with pytest.raises(DataError, match="TimestampConverter does not support"):
        value_of(made(NAME, target_type="Timestamp"), value)


def test_text_that_does_not_fit_the_pattern_is_refused() -> None:
    with pytest.raises(DataError, match=r"Could not parse timestamp: value \(nope\) does not match pattern \(yyyy\)"):
        value_of(made(NAME, target_type="unix", format="yyyy"), "nope")
    with pytest.raises(DataError, match="requires format option"):
        value_of(made(NAME, target_type="unix"), "2020")


def test_times_that_no_calendar_holds_are_refused() -> None:
    with pytest.raises(DataError, match="outside the years"):
        value_of(made(NAME, target_type="Timestamp"), 2**62)


def test_keys_are_converted() -> None:
    record = changed(made("TimestampConverter$Key", target_type="unix"), sink(key_schema=TIMESTAMP, key=MOMENT))
    assert (record.key_schema, record.key) == (INT64, UNIX)


def test_nested_fields_are_converted_by_paths() -> None:
    transform = made(NAME, target_type="unix", field="a.ts", field_syntax_version="v2")
    assert typed(transform, struct({"a": struct({"ts": TIMESTAMP})}), {"a": {"ts": MOMENT}}) == (
        struct({"a": struct({"ts": INT64})}),
        {"a": {"ts": UNIX}},
    )
    assert value_of(transform, {"a": {"ts": MOMENT}}) == {"a": {"ts": UNIX}}
