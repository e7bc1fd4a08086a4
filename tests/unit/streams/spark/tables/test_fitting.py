"""Whether rows and files fit into a table."""

from pathlib import Path

import pyarrow as pa
import pytest

from streams.errors import SchemaConflict
from streams.spark.tables.fitting import check_fits, must_be_rewritten, plan_growth
from streams.spark.tables.model import pack_schema
from streams.spark.types import Change, list_of
from tests.support.staged_files import staged

HAS = pa.schema([("id", pa.int32()), ("name", pa.string())])
ALL: frozenset[Change] = frozenset({"add", "widen"})


def test_schemas_that_fit_grow_the_table_and_others_do_not() -> None:
    given = [
        pa.schema([("id", pa.int64())]),
        pa.schema([("id", pa.string())]),
        pa.schema([("extra", pa.bool_())]),
        pa.schema([("name", pa.null()), ("later", pa.null())]),
    ]
    columns, verdicts = plan_growth("t", HAS, given, allowed=ALL)
    assert columns == pa.schema([("id", pa.int64()), ("name", pa.string()), ("extra", pa.bool_())])
    assert [verdict and verdict.column for verdict in verdicts] == [None, "id", None, None]


def test_schemas_that_fit_one_by_one_but_not_together_are_told_apart() -> None:
    given = [pa.schema([("new", pa.int32())]), pa.schema([("new", pa.string())])]
    _, verdicts = plan_growth("t", HAS, given, allowed=ALL)
    assert verdicts[0] is None
    assert isinstance(verdicts[1], SchemaConflict)


@pytest.mark.parametrize(
    ("allowed", "fits"),
    [(ALL, [True, True]), (frozenset({"add"}), [False, True]), (frozenset({"widen"}), [True, False])],
)
def test_changes_that_are_not_allowed_are_conflicts(allowed: frozenset[Change], fits: list[bool]) -> None:
    given = [pa.schema([("id", pa.int64())]), pa.schema([("extra", pa.int8())])]
    _, verdicts = plan_growth("t", HAS, given, allowed=allowed)
    assert [verdict is None for verdict in verdicts] == fits


def test_any_columns_fit_into_a_table_that_is_not_there_yet() -> None:
    columns, verdicts = plan_growth("t", None, [HAS], allowed=frozenset())
    assert (columns, verdicts) == (HAS, [None])


def test_a_type_that_no_table_has_is_a_conflict() -> None:
    _, verdicts = plan_growth("t", HAS, [pa.schema([("span", pa.duration("s"))])], allowed=ALL)
    assert verdicts[0] is not None
    assert verdicts[0].column == "span"


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        (pa.schema([("id", pa.int8())]), True),
        (pa.schema([("id", pa.int64())]), False),
        (pa.schema([("other", pa.int8())]), False),
        (pa.schema([("other", pa.null()), ("id", pa.int32())]), True),
    ],
)
def test_a_file_with_more_than_the_table_has_is_refused(tmp_path: Path, schema: pa.Schema, *, fits: bool) -> None:
    file = staged(tmp_path, [{}], schema)
    if fits:
        check_fits("t", HAS, [file])
    else:
        with pytest.raises(SchemaConflict):
            check_fits("t", HAS, [file])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int8(), False),
        (pa.large_string(), False),
        (list_of(pa.struct([("a", pa.int32())])), False),
        (pa.null(), True),
        (pa.struct([("a", pa.null())]), True),
        (pa.timestamp("ns", "UTC"), True),
        (pa.time64("us"), True),
    ],
)
def test_types_that_spark_does_not_read_are_rewritten(kind: pa.DataType, *, expected: bool) -> None:
    assert must_be_rewritten(pack_schema(pa.schema([("c", kind)]))) is expected
