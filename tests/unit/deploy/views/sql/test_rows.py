import pytest

from deploy.views.sql.keys import key_places
from deploy.views.sql.rows import KEYS_MAX, Column, LiveTable, as_object, cell, columns_of, header_columns
from deploy.views.sql.script import parts_of
from streams.sql.language.tree.queries import Query


def test_columns_are_read_from_a_header() -> None:
    found = columns_of("`A,B` INTEGER KEY, `C``D` STRUCT<`X` ARRAY<STRING>, `Y` DECIMAL(4, 2)>, E BIGINT PRIMARY KEY")
    assert found == [
        Column("A,B", "INTEGER", is_key=True),
        Column("C`D", "STRUCT<`X` ARRAY<STRING>, `Y` DECIMAL(4, 2)>"),
        Column("E", "BIGINT", is_key=True),
    ]
    assert columns_of("") == []
    assert header_columns({"columnNames": ["A"], "columnTypes": ["DOUBLE"]}) == [Column("A", "DOUBLE")]
    assert [column.heading for column in found] == ["A,B#", "C`D", "E#"]


def test_cells_are_short_and_safe() -> None:
    assert cell(None) == "null"
    assert cell(True) == "true"
    assert cell({"a": [1]}) == '{"a": [1]}'
    assert cell("\x1b[2J\n") == "\\x1b[2J\\n"
    assert len(cell("x" * 1000)) == 201
    assert len(cell("x" * 1000, is_whole=True)) == 1000


def test_a_deleted_row_says_so_to_programs() -> None:
    columns = [Column("A", "INTEGER"), Column("B", "STRING")]
    assert as_object(columns, [1, "x"]) == {"A": 1, "B": "x"}
    assert as_object(columns, [1, None], is_deleted=True) == {"A": 1, "B": None, "_deleted": True}


def test_a_newer_row_takes_the_place_of_the_older_one_of_its_key() -> None:
    table = LiveTable((0,))
    for number, (key, value) in enumerate([(10, "a"), (9, "b"), (10, "c"), ([1], "d")]):
        table.take([key, value], is_deleted=False, now_s=number)
    table.take([9, None], is_deleted=True, now_s=4)
    assert (len(table), table.changes) == (2, 5)
    assert table.latest(10, now_s=3.5) == [((10, "c"), False), (([1], "d"), True)]
    assert table.latest(1, now_s=9) == [(([1], "d"), False)]
    assert table.latest(0, now_s=9) == []


def test_a_table_has_an_end() -> None:
    table = LiveTable((0,))
    for number in range(KEYS_MAX + 10):
        table.take([number], is_deleted=False, now_s=0)
    assert len(table) == KEYS_MAX
    assert table.latest(KEYS_MAX, now_s=0)[0][0] == (10,)


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ("SELECT item, COUNT(*) FROM o GROUP BY item EMIT CHANGES;", "`ITEM` STRING, `C` BIGINT", (0,)),
        ("SELECT COUNT(*), b, a FROM o GROUP BY a, b EMIT CHANGES;", "`C` BIGINT, `B` STRING, `A` STRING", (1, 2)),
        ("SELECT COUNT(*) FROM o GROUP BY a EMIT CHANGES;", "`C` BIGINT", None),
        ("SELECT a, a + 1 FROM o EMIT CHANGES;", "`A` INTEGER, `C` INTEGER", None),
        (
            "SELECT a, WINDOWSTART, COUNT(*) FROM o WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY a EMIT CHANGES;",
            "`A` STRING, `WINDOWSTART` BIGINT, `C` BIGINT",
            (0, 1),
        ),
        (
            "SELECT a, COUNT(*) FROM o WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY a EMIT CHANGES;",
            "`A` STRING, `C` BIGINT",
            None,
        ),
        ("SELECT * FROM t EMIT CHANGES;", "`ID` INTEGER, `V` STRING", (0,)),
        ("SELECT v, id AS number FROM t EMIT CHANGES;", "`V` STRING, `NUMBER` INTEGER", (1,)),
        ("SELECT v FROM t EMIT CHANGES;", "`V` STRING", None),
        ("SELECT * FROM t JOIN s ON t.id = s.id EMIT CHANGES;", "`T_ID` INTEGER", None),
    ],
)
def test_rows_of_tables_have_keys_and_events_have_none(
    text: str, schema: str, expected: tuple[int, ...] | None
) -> None:
    (part,) = parts_of(text, {})
    assert isinstance(part.statement, Query), part.problems
    keys = {"T": ["ID"]}
    assert key_places(part.statement, columns_of(schema), keys.get) == expected
