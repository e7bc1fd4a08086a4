import json
from decimal import Decimal

import pytest
from typing_extensions import override

from streams.model.sources import Column
from streams.rest.media_types import DELIMITED, JSON, V1_JSON, choose
from streams.rest.row_formats import Delimited, JsonArray, PlainLines, RowFormat, StreamedRows
from streams.server.errors import BadStatement, ServiceError
from streams.server.row_streams import Batch, Kind, RowStream

COLUMNS = (Column("ID", "STRING"), Column("a b", "ARRAY<DECIMAL(4, 2)>"))
ROWS = Batch([["x", [Decimal("1.50")]], ["y", None]], [False, True])


class Rows(RowStream):
    def __init__(self, kind: Kind, *, has_reached_limit: bool = False) -> None:
        super().__init__("query_1", kind, COLUMNS, key_columns=1 if kind == "pull" else 0)
        self.has_reached_limit = has_reached_limit

    @override
    def take(self) -> Batch | None:
        return None

    @override
    def release(self) -> None:
        pass


def _written(row_format: RowFormat, rows: RowStream, *, error: ServiceError | None = None) -> str:
    middle = row_format.write(ROWS) if error is None else row_format.fail(error)
    return (row_format.begin(rows) + middle + row_format.end(None if error else rows)).decode()


def test_delimited_has_a_line_for_each_row() -> None:
    header, *rows = _written(Delimited(), Rows("push")).splitlines()
    assert json.loads(header) == {
        "queryId": "query_1",
        "columnNames": ["ID", "a b"],
        "columnTypes": ["STRING", "ARRAY<DECIMAL(4, 2)>"],
    }
    assert rows == ['["x",[1.50]]', '["y",null]']


def test_array() -> None:
    header, *rows = json.loads(_written(JsonArray(), Rows("push")))
    assert header["queryId"] == "query_1"
    assert rows == [["x", [1.5]], ["y", None]]


@pytest.mark.parametrize(
    "kind,at_limit,final", [("push", True, "Limit Reached"), ("push", False, "Query Completed"), ("pull", True, None)]
)
def test_streamed_rows_say_why_they_end(kind: Kind, at_limit: bool, final: str | None) -> None:
    header, *rest = json.loads(_written(StreamedRows(), Rows(kind, has_reached_limit=at_limit)))
    key = " KEY" if kind == "pull" else ""
    assert header == {"header": {"queryId": "query_1", "schema": f"`ID` STRING{key}, `a b` ARRAY<DECIMAL(4, 2)>"}}
    rows = [{"row": {"columns": ["x", [1.5]]}}, {"row": {"columns": ["y", None], "tombstone": True}}]
    assert rest == rows + ([{"finalMessage": final}] if final else [])


def test_errors_take_the_place_of_rows() -> None:
    error = BadStatement("no", "SELECT 1;")
    assert json.loads(_written(Delimited(), Rows("push"), error=error).splitlines()[1]) == error.body()
    assert json.loads(_written(JsonArray(), Rows("push"), error=error))[1:] == [error.body()]
    assert json.loads(_written(StreamedRows(), Rows("push"), error=error))[1:] == [{"errorMessage": error.body()}]


def test_printed_lines_are_text() -> None:
    assert PlainLines().write(Batch([["one"], ["two é"]])).decode() == "one\ntwo é\n"


@pytest.mark.parametrize(
    "accept,chosen",
    [
        (None, DELIMITED),
        (b"*/*", DELIMITED),
        (b"application/json", JSON),
        (b"application/vnd.ksql.v1+json", V1_JSON),
        (b"application/json;q=0.5, application/vnd.ksql.v1+json", V1_JSON),
    ],
)
def test_media_type_is_that_of_the_accept_header(accept: bytes | None, chosen: bytes) -> None:
    headers = [] if accept is None else [(b"accept", accept)]
    assert choose({"headers": headers}, (DELIMITED, JSON, V1_JSON)) == chosen


def test_media_type_that_there_is_not() -> None:
    with pytest.raises(ServiceError) as caught:
        choose({"headers": [(b"accept", b"text/html")]}, (JSON,))
    assert caught.value.status == 406
