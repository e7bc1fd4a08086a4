from core_broker.groups.deadlines import Deadlines

A, B = (0, "a"), (0, "b")


def test_keys_come_due_in_the_order_of_their_moments() -> None:
    deadlines = Deadlines()
    deadlines.arm(A, 5.0)
    deadlines.arm(B, 3.0)
    assert deadlines.next_moment() == 3.0
    assert deadlines.take_due(2.9, limit=10) == []
    assert deadlines.take_due(5.0, limit=10) == [B, A]


def test_arming_for_later_changes_nothing() -> None:
    deadlines = Deadlines()
    assert deadlines.arm(A, 3.0)
    assert not deadlines.arm(A, 5.0)
    assert deadlines.take_due(3.0, limit=10) == [A]
    assert deadlines.take_due(9.0, limit=10) == []


def test_arming_for_earlier_replaces_the_moment_and_comes_due_once() -> None:
    deadlines = Deadlines()
    deadlines.arm(A, 5.0)
    assert deadlines.arm(A, 1.0)
    assert deadlines.take_due(9.0, limit=10) == [A]


def test_only_as_many_as_the_limit_are_taken_at_once() -> None:
    deadlines = Deadlines()
    deadlines.arm(A, 1.0)
    deadlines.arm(B, 1.0)
    assert deadlines.take_due(1.0, limit=1) == [A]
    assert deadlines.take_due(1.0, limit=1) == [B]
