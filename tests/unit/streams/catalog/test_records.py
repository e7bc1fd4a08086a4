"""Definitions as records of the log."""

import pytest

from streams.catalog.records import (
    CommandNote,
    UnknownRecord,
    read_change,
    read_note,
    write_change,
    write_note,
)
from streams.catalog.state import Change, Cleanup, NamedType, Replacement, put, put_query, put_source
from streams.model.plan import Aggregate, Input, ProcessStep, Query, QueryPlan, SessionAggregates, SqlStep
from streams.model.sources import Column, Format, Source, WindowInfo

_SOURCE = Source(
    name="größe/S",
    kind="TABLE",
    topic="t",
    key_format=Format(name="KAFKA"),
    value_format=Format(name="AVRO", schema_id=7),
    key=(Column("K", "STRING"),),
    value=(Column("V", "STRUCT<`a``b` DECIMAL(4, 2)>"),),
    window=WindowInfo(kind="SESSION"),
)
_PLAN = QueryPlan(
    name="Q",
    inputs=(Input(view="A", source=_SOURCE, watermark_ms=5),),
    steps=(
        SqlStep(view="B", text="SELECT 1"),
        ProcessStep(
            view="C",
            input="B",
            keys=("K",),
            processor=SessionAggregates(
                gap_ms=1, grace_ms=2, aggregates=(Aggregate(name="N", function="COUNT", literals=()),)
            ),
            output=(Column("N", "BIGINT"),),
        ),
    ),
    sink=_SOURCE,
)


@pytest.mark.parametrize(
    "change",
    [
        put_source(_SOURCE),
        put_query(Query(id="Q", statement="SELECT", reads=("A",), writes="B", plans=(_PLAN,), properties={"a": "b"})),
        put(NamedType(name="T", type="INTEGER")),
        put(Replacement(name="S", old_query="Q", new_query="R", source=_SOURCE)),
        put(Cleanup(name="Q", jobs=("Q", "Q-2"), topics=("t",), groups=("g",))),
        Change("query", "Q"),
    ],
)
def test_a_change_is_read_as_it_was_written(change: Change) -> None:
    key, value = write_change(change)
    assert read_change(key, value) == change
    assert (value is None) == (change.definition is None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"planet/X", b"{}"),
        (b"source/X", b"not JSON"),
        (b"source/X", b'{"kind": "comet"}'),
        (b"\xff", b""),
    ],
)
def test_what_cannot_be_read_is_refused(key: bytes | None, value: bytes) -> None:
    with pytest.raises(UnknownRecord):
        read_change(key, value)


def test_a_note_tells_of_the_statement() -> None:
    note = CommandNote(id="stream/`S`/create", message="Stream created", query_id="CSAS_S_1")
    assert read_note(write_note(note)) == note
    with pytest.raises(UnknownRecord):
        read_note(b"[]")
