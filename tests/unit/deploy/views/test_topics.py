import pytest

from deploy.views.topics import explain_replicas


@pytest.mark.parametrize(
    ("replicas", "minimum", "expected"),
    [
        (3, 2, "on at least 2 of them, and 1 broker may fail"),
        (3, 1, "on at least 1 of them, and 2 brokers may fail"),
        (2, 2, "and no broker may fail"),
        (1, 1, "one copy of each partition: none can be read or written while its broker is down"),
        (1, 2, "one copy of each partition"),
        (2, 3, "on at least 2 of them, and no broker may fail"),
    ],
)
def test_replicas_are_explained_by_what_they_survive(replicas: int, minimum: int, expected: str) -> None:
    assert expected in explain_replicas("orders", replicas, minimum=minimum)


def test_too_few_replicas_come_with_the_command_for_more() -> None:
    assert "caudal cluster grow --topic orders" in explain_replicas("orders", 1, minimum=1)
