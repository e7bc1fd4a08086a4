"""The statements of a request."""

import pytest

from streams.catalog.state import NamedType, State, put
from streams.server.errors import BadStatement
from streams.server.script import Replacing, Written, read_statements
from streams.sql.language.variables import Variables


def _read(text: str, state: State | None = None) -> list[Written]:
    return list(read_statements(text, Variables({}), state or State()))


def test_each_statement_has_its_own_text() -> None:
    assert [one.text for one in _read("SHOW STREAMS ;\n-- a remark\nSHOW TABLES;")] == ["SHOW STREAMS;", "SHOW TABLES;"]


def test_a_mistake_is_told_with_line_and_column() -> None:
    with pytest.raises(BadStatement, match=r"^line 2:1: ") as caught:
        _read("SHOW STREAMS;\nSHWO TABLES;")
    assert caught.value.statement_text == "SHWO TABLES;"


@pytest.mark.parametrize("text", ["", "  ", "-- nothing", ";"])
def test_a_text_without_statements_is_refused(text: str) -> None:
    with pytest.raises(BadStatement, match="no statement"):
        _read(text)


def test_too_many_statements_are_refused() -> None:
    with pytest.raises(BadStatement, match="more than 1000"):
        _read("SHOW STREAMS;" * 1001)


def test_types_that_were_defined_before_are_known() -> None:
    state = State()
    text = "CREATE STREAM S (A INTEGR) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    with pytest.raises(BadStatement, match="no type INTEGR"):
        _read(text, state)
    state.apply(put(NamedType(name="INTEGR", type="INTEGER")))
    assert len(_read(text, state)) == 1
    assert len(_read(f"CREATE TYPE INTEGR AS INTEGER; {text}")) == 2


_CREATE = "CREATE {} STREAM S WITH ({}) AS SELECT * FROM A EMIT CHANGES;"


def test_how_a_query_is_replaced_stands_in_with() -> None:
    (one,) = _read(_CREATE.format("OR REPLACE", "`replace.mode`='side-by-side', 'REPLACE.FROM'='latest', PARTITIONS=2"))
    assert one.replacing == Replacing(mode="side-by-side", start="latest", is_given=True)
    assert "PARTITIONS" in str(one.statement)
    assert "replace" not in str(one.statement).lower().replace("or_replace", "")


@pytest.mark.parametrize(
    ("words", "properties", "message"),
    [
        ("", "`replace.mode`='restart'", "is for CREATE OR REPLACE"),
        ("OR REPLACE", "`replace.mode`='quickly'", "is one of"),
        ("OR REPLACE", "`replace.mode`=TRUE", "is one of"),
        ("OR REPLACE", "`replace.from`='latest'", "goes on where it is"),
        ("OR REPLACE", "`replace.by`='latest'", "Unknown property"),
    ],
)
def test_other_ways_to_replace_are_refused(words: str, properties: str, message: str) -> None:
    with pytest.raises(BadStatement, match=message):
        _read(_CREATE.format(words, properties))
