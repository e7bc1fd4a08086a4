from collections.abc import Iterable

from connectors.sql.changes import KeyedChanges, PlainChanges, Step, parts

ALL = ("id", "a", "b")


def plain(steps: Iterable[Step]) -> list[tuple[bool, tuple[str, ...], list[tuple[object, ...]]]]:
    return [(step.is_delete, step.columns, step.rows) for step in steps]


def test_the_last_row_of_a_key_wins_and_stands_where_it_came_last() -> None:
    changes = KeyedChanges()
    for row in ((1, "x", 0), (2, "y", 0), (1, "z", 1)):
        changes.write(ALL, row, key_count=1)
    assert plain(changes.steps(("id",))) == [(False, ALL, [(2, "y", 0), (1, "z", 1)])]


def test_fields_that_only_an_earlier_row_has_are_kept() -> None:
    changes = KeyedChanges()
    changes.write(("id", "a"), (1, "x"), key_count=1)
    changes.write(("id", "b"), (1, 5), key_count=1)
    assert plain(changes.steps(("id",))) == [(False, ALL, [(1, "x", 5)])]


def test_what_comes_after_a_delete_is_a_new_row() -> None:
    changes = KeyedChanges()
    changes.write(("id", "a"), (1, "x"), key_count=1)
    changes.delete((1,))
    changes.write(("id", "b"), (1, 5), key_count=1)
    assert plain(changes.steps(("id",))) == [(True, ("id",), [(1,)]), (False, ("id", "b"), [(1, 5)])]


def test_an_update_after_a_delete_finds_no_row() -> None:
    changes = KeyedChanges(only_existing=True)
    changes.delete((1,))
    changes.write(("id", "b"), (1, 5), key_count=1)
    assert plain(changes.steps(("id",))) == [(True, ("id",), [(1,)])]


def test_rows_with_the_same_columns_are_written_together() -> None:
    changes = KeyedChanges()
    for number in range(6):
        changes.write(("id", "a") if number % 2 else ("id", "b"), (number, 0), key_count=1)
    assert [len(step.rows) for step in changes.steps(("id",))] == [3, 3]


def test_inserts_keep_their_order_and_their_doubles() -> None:
    changes = PlainChanges()
    changes.write(("id",), (1,), key_count=1)
    changes.write(("id",), (1,), key_count=1)
    changes.delete((1,))
    changes.write(("id",), (1,), key_count=1)
    wanted = [(False, ("id",), [(1,), (1,)]), (True, ("id",), [(1,)]), (False, ("id",), [(1,)])]
    assert plain(changes.steps(("id",))) == wanted


def test_parts_are_bounded() -> None:
    assert [len(part) for part in parts([(n,) for n in range(7)], 3)] == [3, 3, 1]
    assert [len(part) for part in parts([(1,)], 3)] == [1]
