from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from core_broker.service.clock import ManualClock
from streams.materialized.row_format import RowFormat
from streams.materialized.snapshots import Snapshots
from streams.materialized.store import Store, StoredRow
from streams.model.sources import Column
from tests.support.materialized_tables import TUMBLING, table

VALUE = (
    Column("D", "DECIMAL(10, 2)"),
    Column("T", "TIME"),
    Column("Y", "DATE"),
    Column("S", "TIMESTAMP"),
    Column("B", "BYTES"),
    Column("M", "MAP<STRING, INTEGER>"),
    Column("R", "STRUCT<`X` ARRAY<DOUBLE>>"),
)
ROW = {
    "WORD": "a",
    "D": Decimal("1.50"),
    "T": time(1, 2, 3),
    "Y": date(2026, 1, 2),
    "S": datetime(2026, 1, 2, tzinfo=UTC),
    "B": b"\x00",
    "M": {"k": 1},
    "R": {"X": [1.5, None]},
}


def read(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def test_all_rows_are_in_the_file_with_their_types(tmp_path: Path) -> None:
    source = table(value=VALUE, window=TUMBLING)
    form = RowFormat(source)
    with Store(tmp_path / "rows.db", "one") as store:
        rows = [StoredRow(form.key_of(ROW), 1000, 2000, 1001, form.data(ROW))]
        rows += [
            StoredRow(b"%d" % number, 0, 1000, 1, form.data({**dict.fromkeys(ROW), "WORD": "b"}))
            for number in range(20_000)
        ]
        store.write(rows, (), positions={}, facts={})

        found = read(Snapshots(tmp_path / "s", source, form, ManualClock()).of(store))

    assert found.num_rows == 20_001
    assert found.column_names == ["WORD", "D", "T", "Y", "S", "B", "M", "R", "ROWTIME", "WINDOWSTART", "WINDOWEND"]
    (first,) = found.filter(pa.compute.equal(found["WORD"], "a")).to_pylist(maps_as_pydicts="strict")
    assert first == {**ROW, "ROWTIME": 1001, "WINDOWSTART": 1000, "WINDOWEND": 2000}


def test_a_table_without_rows_has_a_file_with_its_columns(tmp_path: Path) -> None:
    source = table()
    with Store(tmp_path / "rows.db", "one") as store:
        found = read(Snapshots(tmp_path / "s", source, RowFormat(source), ManualClock()).of(store))
    assert (found.num_rows, found.column_names) == (0, ["WORD", "N", "ROWTIME"])


def test_the_file_is_the_same_until_rows_change_and_is_removed_later(tmp_path: Path) -> None:
    source, clock = table(), ManualClock()
    form = RowFormat(source)
    snapshots = Snapshots(tmp_path / "s", source, form, clock)
    with Store(tmp_path / "rows.db", "one") as store:
        first = snapshots.of(store)
        assert snapshots.of(store) == first
        store.write((), (), positions={0: 1}, facts={})
        assert snapshots.of(store) == first

        store.write([StoredRow(b"k", 0, 0, 0, form.data({"WORD": "a", "N": 1}))], (), positions={}, facts={})
        second = snapshots.of(store)
        assert second != first
        assert read(second).num_rows == 1
        clock.advance(60_000)
        assert snapshots.of(store) == second
        assert first.exists()
        clock.advance(61_000)
        assert snapshots.of(store) == second
        assert [path.name for path in (tmp_path / "s").iterdir()] == [second.name]

        snapshots.delete()
        assert not (tmp_path / "s").exists()
        assert snapshots.of(store).exists()


def test_replaced_files_take_a_bounded_space(tmp_path: Path) -> None:
    source, clock = table(), ManualClock()
    form = RowFormat(source)
    snapshots = Snapshots(tmp_path / "s", source, form, clock, replaced_bytes=5000)
    with Store(tmp_path / "rows.db", "one") as store:
        for number in range(20):
            data = form.data({"WORD": "a" * 500, "N": number})
            store.write([StoredRow(b"k", 0, 0, 0, data)], (), positions={}, facts={})
            assert read(snapshots.of(store)).num_rows == 1
    assert 1 < len(list((tmp_path / "s").iterdir())) < 8
