import pytest

from streams.server.errors import TooManyQueries
from streams.server.transient import OpenQueries, OpenQuery


class Rows:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def _query(name: str, kind: str) -> OpenQuery:
    return OpenQuery(id=name, statement=f"{name};", kind=kind, rows=Rows())


def test_push_queries_and_prints_are_limited_together_but_not_pull_queries() -> None:
    queries = OpenQueries(push_max=2)
    for name, kind in [("a", "push"), ("b", "print"), ("c", "pull"), ("d", "pull")]:
        queries.add(_query(name, kind))
    with pytest.raises(TooManyQueries, match="ksql.max.push.queries"):
        queries.add(_query("e", "push"))
    queries.remove("b")
    queries.add(_query("e", "push"))
    assert [query.id for query in queries.all()] == ["a", "c", "d", "e"]
    assert (queries.count("push"), queries.count("push", "pull")) == (2, 4)


def test_a_query_is_closed_by_its_id_once() -> None:
    queries, query = OpenQueries(push_max=2), _query("a", "push")
    queries.add(query)
    assert queries.close("a")
    assert isinstance(query.rows, Rows)
    assert query.rows.is_closed
    assert not queries.close("a")


def test_all_are_closed() -> None:
    queries = OpenQueries(push_max=3)
    added = [_query(name, "push") for name in "abc"]
    for query in added:
        queries.add(query)
    queries.close_all()
    assert len(queries) == 0
    assert all(isinstance(query.rows, Rows) and query.rows.is_closed for query in added)
