"""What is defined, as the log says."""

from streams.catalog.state import Change, Cleanup, NamedType, State, put, put_query, put_source
from streams.model.plan import Query
from streams.model.sources import Column, Format, Source


def _source(name: str) -> Source:
    return Source(
        name=name,
        kind="STREAM",
        topic=name.lower(),
        key_format=Format(name="KAFKA"),
        value_format=Format(name="JSON"),
        value=(Column("N", "INTEGER"),),
    )


def _query(name: str, *, reads: str, writes: str) -> Query:
    return Query(id=name, statement="...", reads=(reads,), writes=writes, plans=())


def test_a_copy_is_changed_alone() -> None:
    state = State()
    state.apply(put_source(_source("A")))
    copy = state.copy()
    copy.apply(put_source(_source("B")))
    copy.apply(Change("source", "A"))
    assert [source.name for source in state.sources()] == ["A"]
    assert [source.name for source in copy.sources()] == ["B"]


def test_a_list_that_is_read_stays_as_it_is() -> None:
    state = State()
    state.apply(put_source(_source("A")))
    listed = state.sources()
    state.apply(put_source(_source("B")))
    assert [source.name for source in listed] == ["A"]


def test_queries_are_known_by_what_they_read_and_write() -> None:
    state = State()
    state.apply(put_query(_query("Q1", reads="A", writes="B")))
    state.apply(put_query(_query("Q2", reads="B", writes="C")))
    assert [query.id for query in state.readers("B")] == ["Q2"]
    assert [query.id for query in state.writers("B")] == ["Q1"]


def test_each_kind_of_definition_is_defined_and_removed() -> None:
    state = State()
    state.apply(put(NamedType(name="T", type="MAP<STRING, INTEGER>")))
    state.apply(put(Cleanup(name="Q1", topics=("t",))))
    assert str(state.type("T")) == "MAP<STRING, INTEGER>"
    assert [one.name for one in state.cleanups()] == ["Q1"]
    state.apply(Change("type", "T"))
    state.apply(Change("cleanup", "Q1"))
    state.apply(Change("replacement", "never there"))
    assert (state.type("T"), state.cleanup("Q1"), dict(state.types())) == (None, None, {})
