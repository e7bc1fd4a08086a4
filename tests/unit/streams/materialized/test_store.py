import sqlite3
import threading
from pathlib import Path

import pytest

from streams.materialized.errors import CopyDamaged
from streams.materialized.store import Condition, Store, StoredRow


def rows(*keys: bytes, data: bytes = b"x") -> list[StoredRow]:
    return [StoredRow(key, 0, 0, 1, data) for key in keys]


def windows(key: bytes, *starts: int) -> list[StoredRow]:
    return [StoredRow(key, start, start + 10, start, b"x") for start in starts]


def test_rows_and_positions_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one") as store:
        store.write(rows(b"a", b"b"), (), positions={0: 5, 1: 7}, facts={"complete": 1, "topic_id": "t"})
        store.write((), [(b"a", 0, 0)], positions={0: 6}, facts={})

    with Store(tmp_path / "rows.db", "one") as store:
        assert store.positions == {0: 6, 1: 7}
        assert (store.fact("complete"), store.fact("topic_id"), store.fact("other")) == (1, "t", None)
        assert (store.count(), store.find(b"a"), store.find(b"b")) == (1, [], rows(b"b"))


def test_it_is_empty_for_another_description(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one") as store:
        store.write(rows(b"a"), (), positions={0: 5}, facts={"complete": 1})

    with Store(tmp_path / "rows.db", "two") as store:
        assert (store.count(), store.positions, store.fact("complete")) == (0, {}, None)


def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one") as store:
        store.write(rows(b"a"), (), positions={0: 1}, facts={})
        with pytest.raises(sqlite3.Error):
            store.write(rows(b"b"), (), positions={0: 2, 1: None}, facts={})  # type: ignore[dict-item]  # what is tested
        assert (store.count(), store.positions, store.version) == (1, {0: 1}, 1)
        store.write(rows(b"c"), (), positions={0: 3}, facts={})
        assert store.count() == 2


def test_windows_of_a_key_are_found_by_their_bounds(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one", expires_by="window_start") as store:
        store.write([*windows(b"a", 0, 10, 20, 30), *windows(b"b", 10)], (), positions={}, facts={})

        found = store.find(b"a", [Condition("window_start", ">=", 10), Condition("window_end", "<", 40)])

        assert [row.window_start for row in found] == [10, 20]


def test_reading_by_key_and_window_is_an_index_search(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one", expires_by="window_start"):
        connection = sqlite3.connect(tmp_path / "rows.db")
        try:
            plans = [
                connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM rows WHERE {condition}").fetchall()[0][-1]
                for condition in (
                    "key = x'61' AND window_start >= 1 AND window_start < 9",
                    """(key, window_start, window_end) > (x'61', 1, 2) AND +window_start > 1
                    ORDER BY key, window_start, window_end LIMIT 5""",
                    "window_start <= 7",
                )
            ]
        finally:
            connection.close()

    assert plans == [
        "SEARCH rows USING PRIMARY KEY (key=? AND window_start>? AND window_start<?)",
        "SEARCH rows USING PRIMARY KEY ((key,window_start,window_end)>(?,?,?))",
        "SEARCH rows USING INDEX rows_by_age (window_start<?)",
    ]


def test_windows_that_are_too_old_are_removed(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one", expires_by="window_end") as store:
        store.write(windows(b"a", 0, 10, 20), (), positions={}, facts={})
        store.write((), (), positions={}, facts={}, expired_until_ms=20)
        assert ([row.window_start for row in store.find(b"a")], store.version) == ([20], 2)


def test_pages_continue_where_the_last_one_ended(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one") as store:
        store.write([*windows(b"a", -10, 0), *windows(b"b", 5), *rows(b"c")], (), positions={}, facts={})
        found: list[StoredRow] = []
        while page := store.page(found[-1][:3] if found else None, 1):
            found += page
        assert [(row.key, row.window_start) for row in found] == [(b"a", -10), (b"a", 0), (b"b", 5), (b"c", 0)]


def test_a_reader_sees_one_moment_while_rows_change(tmp_path: Path) -> None:
    with Store(tmp_path / "rows.db", "one") as store:
        store.write(rows(b"a", b"b", b"c"), (), positions={}, facts={})
        chunks = store.all_rows(1)
        seen = next(chunks)
        store.write(rows(b"b", data=b"new"), [(b"c", 0, 0)], positions={}, facts={})
        seen += [row for chunk in chunks for row in chunk]
        assert seen == rows(b"a", b"b", b"c")
        assert store.count() == 2


def test_readers_do_not_wait_for_the_writer(tmp_path: Path) -> None:
    failures: list[Exception] = []
    with Store(tmp_path / "rows.db", "one") as store:
        store.write([StoredRow(b"%d" % n, 0, 0, 0, b"0") for n in range(100)], (), positions={}, facts={})
        is_over = threading.Event()

        def read() -> None:
            try:
                while not is_over.is_set():
                    # All rows of a transaction have the same data.
                    assert len({row.data for chunk in store.all_rows(7) for row in chunk}) == 1
            except Exception as error:  # noqa: BLE001 - reported by the test
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(100):
            store.write([StoredRow(b"%d" % n, 0, 0, 0, b"%d" % turn) for n in range(100)], (), positions={}, facts={})
        is_over.set()
        for thread in threads:
            thread.join()
    assert not failures


@pytest.mark.parametrize("damage", [b"no file of SQLite", b""])
def test_what_is_no_file_of_sqlite_is_damage_or_empty(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "rows.db"
    path.write_bytes(damage * 100)
    if damage:
        with pytest.raises(CopyDamaged):
            Store(path, "one")
        Store.delete(path)
    with Store(path, "one") as store:
        assert store.count() == 0


def test_pages_full_of_noise_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    with Store(path, "one") as store:
        store.write(rows(*(b"%04d" % n for n in range(1000)), data=b"x" * 100), (), positions={}, facts={})
    content = bytearray(path.read_bytes())
    content[4096 * 5 :] = b"\xa5" * (len(content) - 4096 * 5)
    path.write_bytes(content)

    with Store(path, "one") as store, pytest.raises(CopyDamaged):
        list(store.all_rows(100))


def test_another_database_is_made_empty(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "rows.db")
    connection.execute("CREATE TABLE rows (x)")
    connection.close()

    with Store(tmp_path / "rows.db", "one") as store:
        assert store.count() == 0
