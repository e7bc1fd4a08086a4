from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streams.materialized.lookup import Answer
from streams.materialized.row_format import RowFormat
from streams.materialized.store import Store, StoredRow
from streams.model.pull import Filter, Lookup, Operator, Output
from streams.model.sources import Column, Source
from tests.support.materialized_tables import TUMBLING, table

VALUE = (
    Column("N", "BIGINT"),
    Column("PRICE", "DECIMAL(30, 10)"),
    Column("DAY", "DATE"),
    Column("PLACE", "STRUCT<`CITY` STRING, `AT` STRUCT<`X` DOUBLE>>"),
)


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(value if isinstance(value, bytes) else msgspec.json.encode(value))


def lookup(
    *outputs: str,
    keys: list[Any] | None = None,
    filters: list[tuple[str, Operator, Any]] | None = None,
    limit: int | None = None,
) -> Lookup:
    return Lookup(
        source="T",
        keys=None if keys is None else tuple((raw(key),) for key in keys),
        filters=tuple(Filter(column=name, operator=sign, literal=raw(value)) for name, sign, value in filters or ()),
        outputs=tuple(Output(name=name, path=tuple(name.split("->"))) for name in outputs),
        limit=limit,
    )


def fill(store: Store, source: Source, records: list[dict[str, Any]]) -> None:
    form = RowFormat(source)
    rows = [
        StoredRow(
            form.key_of(record),
            record.get("WINDOWSTART", 0),
            record.get("WINDOWEND", 0),
            record.get("ROWTIME", 0),
            form.data({column.name: record.get(column.name) for column in source.columns}),
        )
        for record in records
    ]
    store.write(rows, (), positions={}, facts={})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "rows.db", "one") as store:
        yield store


def answer(store: Store, source: Source, plan: Lookup) -> list[tuple[object, ...]]:
    return list(Answer(plan, source, RowFormat(source)).rows(store))


def test_rows_are_found_by_their_keys_in_the_order_asked_for(store: Store) -> None:
    source = table()
    fill(store, source, [{"WORD": word, "N": number, "ROWTIME": 7} for number, word in enumerate("abc")])

    found = answer(store, source, lookup("N", "WORD", "ROWTIME", keys=["c", "nothing", "a", "c"]))

    assert found == [(2, "c", 7), (0, "a", 7)]


def test_keys_of_several_columns_are_found(store: Store) -> None:
    source = table(key=(Column("A", "INTEGER"), Column("B", "DOUBLE")))
    fill(store, source, [{"A": 1, "B": 2.0, "N": 5}, {"A": 1, "B": 2.5, "N": 6}, {"A": 2, "B": 2.0, "N": 7}])
    plan = lookup("N")

    assert answer(store, source, msgspec.structs.replace(plan, keys=((raw(1), raw(2)),))) == [(5,)]


def test_windows_are_chosen_by_their_bounds(store: Store) -> None:
    source = table(window=TUMBLING)
    windows = [
        {"WORD": word, "N": start, "WINDOWSTART": start, "WINDOWEND": start + 1000, "ROWTIME": start + 5}
        for word in "ab"
        for start in (0, 1000, 2000)
    ]
    fill(store, source, windows)

    def of(keys: list[str] | None, *filters: tuple[str, Operator, Any]) -> list[tuple[object, ...]]:
        return answer(store, source, lookup("WORD", "WINDOWSTART", "WINDOWEND", keys=keys, filters=list(filters)))

    assert of(["a"]) == [("a", 0, 1000), ("a", 1000, 2000), ("a", 2000, 3000)]
    assert of(["a"], ("WINDOWSTART", "=", 1000)) == [("a", 1000, 2000)]
    assert of(["a"], ("WINDOWSTART", ">", 0), ("WINDOWEND", "<=", 2000)) == [("a", 1000, 2000)]
    assert of(["b"], ("WINDOWSTART", "<>", 1000), ("ROWTIME", ">=", 2005)) == [("b", 2000, 3000)]
    assert of(None, ("WINDOWEND", "<", 2000)) == [("a", 0, 1000), ("b", 0, 1000)]
    assert of(None, ("WINDOWSTART", "=", None)) == []
    assert len(of(None, ("WINDOWSTART", "IS NOT NULL", None))) == 6


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ([("N", ">", 1)], "c"),
        ([("N", "<>", 1)], "ac"),
        ([("N", "=", None)], ""),
        ([("N", "IS NULL", None)], "d"),
        ([("N", "IS NOT NULL", None), ("WORD", "<=", "b")], "ab"),
        ([("PRICE", "=", b"12345678901234567890.00000000020")], "c"),
        ([("DAY", ">=", "2024-10-05")], "bc"),
        ([("ROWTIME", "<", 2)], "ab"),
    ],
)
def test_scans_give_the_rows_that_all_filters_hold_for(
    store: Store, filters: list[tuple[str, Operator, Any]], words: str
) -> None:
    source = table(value=VALUE)
    fill(
        store,
        source,
        [
            {
                "WORD": word,
                "N": number,
                "PRICE": Decimal(f"12345678901234567890.000000000{number}"),
                "DAY": date(2024, 10, 4 + number),
                "ROWTIME": number,
            }
            for number, word in enumerate("abc")
        ]
        + [{"WORD": "d", "ROWTIME": 9}],
    )

    assert "".join(str(word) for (word,) in answer(store, source, lookup("WORD", filters=filters))) == words


def test_fields_inside_of_a_null_are_null(store: Store) -> None:
    source = table(value=VALUE)
    fill(store, source, [{"WORD": "a", "PLACE": {"CITY": "Ulm", "AT": {"X": 1.5}}}, {"WORD": "b"}])

    found = answer(store, source, lookup("WORD", "PLACE->CITY", "PLACE->AT->X"))

    assert found == [("a", "Ulm", 1.5), ("b", None, None)]


def test_scans_read_page_after_page_and_stop_at_the_limit(store: Store) -> None:
    source = table()
    fill(store, source, [{"WORD": f"{number:05}", "N": number % 2} for number in range(5000)])

    assert len(answer(store, source, lookup("WORD"))) == 5000
    assert len(answer(store, source, lookup("WORD", filters=[("N", "=", 1)]))) == 2500
    assert answer(store, source, lookup("WORD", limit=2)) == [("00000",), ("00001",)]
    assert answer(store, source, lookup("WORD", filters=[("N", "=", 1)], limit=2)) == [("00001",), ("00003",)]
    assert answer(store, source, lookup("WORD", limit=0)) == []
    assert answer(store, source, lookup("N", keys=["00001", "00003"], limit=1)) == [(1,)]
