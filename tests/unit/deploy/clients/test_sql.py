import json

import pytest

from deploy.clients.connections import sql_client
from deploy.clients.failures import explain
from deploy.clients.sql import (
    LoginRefused,
    NotReady,
    ServerUnreachable,
    Session,
    SqlCallError,
    SqlClient,
    StatementRefused,
)
from tests.support.scripted_http import ScriptedHttp
from tests.support.scripted_sql import INFO, ScriptedSql, header, row

ENTITY = {"@type": "streams", "statementText": "SHOW STREAMS;", "streams": [], "warnings": []}


def client_of(url: str) -> SqlClient:
    return sql_client(url, timeout=5)


def test_a_statement_goes_with_the_properties_and_variables_of_its_session() -> None:
    session = Session(properties={"auto.offset.reset": "earliest"}, variables={"A": "1"}, sequence=3)
    with ScriptedSql({"SHOW STREAMS": (200, [ENTITY])}) as server, client_of(server.url) as client:
        assert client.info() == INFO
        assert client.execute("SHOW STREAMS;", session) == [ENTITY]
        assert server.bodies == [
            {
                "ksql": "SHOW STREAMS;",
                "streamsProperties": {"auto.offset.reset": "earliest"},
                "sessionVariables": {"A": "1"},
                "commandSequenceNumber": 3,
            }
        ]


def test_rows_come_one_by_one_and_the_query_is_closed() -> None:
    items = [header("`A` INTEGER"), row(1), row(None, is_deleted=True), {"finalMessage": "Limit Reached"}]
    text = "SELECT a FROM b EMIT CHANGES;"
    with ScriptedSql(queries={text.rstrip(";"): items}) as server, client_of(server.url) as client:
        with client.rows(text, Session()) as found:
            assert next(found) == items[0]
        assert server.targets == ["/query", "/close-query"]
        assert server.bodies[-1] == {"queryId": "transient_1"}
        with client.rows(text, Session()) as found:
            assert list(found) == items


@pytest.mark.parametrize(
    "text",
    [
        '[{"header":{"schema":"`A` STRING"}},\n{"row":{"columns":["}],\\n["]}}]\n',
        '[{"header":{"schema":"`A` STRING"}}\n,{"row":{"columns":["}],\\n["]}}\n]',
        '{"header":{"schema":"`A` STRING"}}\n{"row":{"columns":["}],\\n["]}}\n',
    ],
)
def test_lines_may_end_anywhere(text: str) -> None:
    with (
        ScriptedHttp((200, text.encode())) as server,
        client_of(server.url) as client,
        client.rows("SELECT;", Session()) as found,
    ):
        assert [*found][1] == {"row": {"columns": ["}],\n["]}}


@pytest.mark.parametrize("text", ['[{"row":', "no JSON", "[1]", ""])
def test_what_is_no_answer_with_rows_is_refused(text: str) -> None:
    with (
        ScriptedHttp((200, text.encode())) as server,
        client_of(server.url) as client,
        client.rows("SELECT;", Session()) as found,
    ):
        if text:
            with pytest.raises(StatementRefused):
                list(found)
        else:
            assert list(found) == []


def test_an_error_among_the_rows_is_raised() -> None:
    error = {"errorMessage": {"@type": "generic_error", "error_code": 50000, "message": "Spark died"}}
    with (
        ScriptedSql(queries={"SELECT": [header("`A` INTEGER"), error]}) as server,
        client_of(server.url) as client,
        client.rows("SELECT;", Session()) as found,
        pytest.raises(StatementRefused, match="Spark died"),
    ):
        list(found)


def test_lines_of_a_topic_come_as_they_are() -> None:
    lines = ["Key format: KAFKA_STRING", "rowtime: 1, key: a, value: b"]
    with (
        ScriptedSql(queries={"PRINT t": lines}) as server,
        client_of(server.url) as client,
        client.lines("PRINT t;", Session()) as found,
    ):
        assert list(found) == lines


@pytest.mark.parametrize(
    ("status", "code", "kind", "said"),
    [
        (400, 40001, StatementRefused, ""),
        (401, 40100, LoginRefused, "--client-config"),
        (403, 40300, LoginRefused, "caudal acl list"),
        (503, 50302, NotReady, "try again"),
    ],
)
def test_an_error_says_what_to_do(status: int, code: int, kind: type[SqlCallError], said: str) -> None:
    body = {"@type": "statement_error", "error_code": code, "message": "no", "entities": [ENTITY]}
    with (
        ScriptedHttp((status, json.dumps(body).encode())) as server,
        client_of(server.url) as client,
        pytest.raises(kind, match="no") as raised,
    ):
        client.execute("SHOW STREAMS;", Session())
    assert raised.value.entities == [ENTITY]
    assert said in " ".join(explain(raised.value)[1])


def test_no_service_and_another_service_are_told_apart() -> None:
    with client_of("http://127.0.0.1:1") as client, pytest.raises(ServerUnreachable) as raised:
        client.info()
    assert "caudal up" in " ".join(explain(raised.value)[1])
    with (
        ScriptedHttp((200, b"[]")) as server,
        client_of(server.url) as client,
        pytest.raises(StatementRefused, match="no service of SQL"),
    ):
        client.info()
    with (
        ScriptedHttp((404, b"Not Found")) as server,
        client_of(server.url) as client,
        pytest.raises(StatementRefused, match="HTTP 404"),
    ):
        client.info()
    with pytest.raises(ValueError, match="must look like http://host:8088"):
        client_of("localhost:8088")
