"""The REST API of the SQL service, over the wire: formats, errors, limits, and what happens when clients leave."""

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from websockets.sync.client import connect

from tests.support.broker import BrokerProcess
from tests.support.patience import eventually
from tests.support.registry import RegistryProcess
from tests.support.streams_process import StreamsProcess

V1 = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
EARLIEST = {"auto.offset.reset": "earliest"}
PATIENCE_S = 240.0
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("streams-rest")]


class Api:
    """Requests to one server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx2.Client(base_url=url, timeout=PATIENCE_S)

    def ksql(self, text: str, status: int = 200, **more: Any) -> Any:
        answer = self.client.post("/ksql", json={"ksql": text, **more})
        assert answer.status_code == status, answer.text
        return answer.json()

    def rows(self, text: str, *, path: str = "/query-stream", accept: str | None = None) -> Any:
        """The body of a response with rows, and its media type."""
        body = {"sql": text, "properties": EARLIEST}
        answer = self.client.post(path, json=body, headers={"Accept": accept} if accept else {})
        assert answer.status_code == 200, answer.text
        return answer.text, answer.headers["content-type"]

    def open_queries(self, kind: str) -> float:
        """How many queries of clients the server counts."""
        wanted = f'streams_client_queries{{kind="{kind}"}} '
        lines = self.client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(wanted)).removeprefix(wanted))


@pytest.fixture(scope="module")
def api(broker: BrokerProcess, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("streams")
    settings = {"ksql.max.push.queries": "2", "ksql.service.id": "rest_", "request.read.timeout.ms": "3000"}
    with StreamsProcess(folder, bootstrap=broker.bootstrap, registry=registry.url, settings=settings) as process:
        api = Api(process.url)
        with api.client:
            api.ksql(
                "CREATE STREAM shop (id STRING KEY, n INT, price DECIMAL(6, 2)) "
                "WITH (kafka_topic='rest-shop', partitions=1, value_format='JSON');"
            )
            api.ksql("INSERT INTO shop VALUES ('a', 1, 1.50); INSERT INTO shop (id, n) VALUES ('b', 2);")
            yield api


# --- without rows ---


def test_information(api: Api) -> None:
    info = api.client.get("/info").json()["KsqlServerInfo"]
    assert (info["ksqlServiceId"], info["serverStatus"]) == ("rest_", "RUNNING")
    assert api.client.get("/healthcheck").json()["isHealthy"] is True
    scope = api.client.get("/v1/metadata").json()["scope"]
    assert scope["clusters"] == {"kafka-cluster": info["kafkaClusterId"], "ksql-cluster": "rest_"}
    assert api.client.get("/").headers["location"] == "/info"
    for path in ("/chc/ready", "/chc/live", "/livez", "/readyz", "/health"):
        assert api.client.get(path).status_code == 200


def test_state_of_a_statement(api: Api) -> None:
    assert api.client.get("/status").json()["commandStatuses"]["stream/`SHOP`/create"] == "SUCCESS"
    for name in ("`SHOP`", "%60SHOP%60"):
        assert api.client.get(f"/status/stream/{name}/create").json()["status"] == "SUCCESS"
    missing = api.client.get("/status/stream/none/create")
    assert (missing.status_code, missing.json()["error_code"]) == (404, 40400)


def test_properties_can_be_checked(api: Api) -> None:
    assert api.client.get("/is_valid_property/auto.offset.reset").json() is True
    for name in ("foo.bar", "ksql.service.id"):
        refused = api.client.get(f"/is_valid_property/{name}")
        assert (refused.status_code, refused.json()["error_code"]) == (400, 40000)


@pytest.mark.parametrize("accept", [V1, "application/json"])
def test_response_has_the_media_type_that_was_asked_for(api: Api, accept: str) -> None:
    answer = api.client.post("/ksql", json={"ksql": "SHOW STREAMS;"}, headers={"Accept": accept})
    assert answer.headers["content-type"] == accept
    assert answer.json()[0]["streams"][0]["name"] == "SHOP"


@pytest.mark.parametrize(
    "path,content,status,code",
    [
        ("/ksql", "{", 400, 40000),
        ("/ksql", "{}", 400, 40000),
        ("/ksql", '{"ksql": "SELECT FROM;"}', 400, 40001),
        ("/ksql", '{"ksql": "SELECT * FROM shop;"}', 400, 40002),
        ("/ksql", '{"ksql": "SHOW STREAMS;", "streamsProperties": {"foo": 1}}', 400, 40000),
        ("/query", '{"ksql": "SHOW STREAMS;"}', 400, 40000),
        ("/query-stream", '{"sql": "SELECT * FROM nowhere;"}', 400, 40001),
        ("/query-stream", '{"sql": "SELECT * FROM shop; SELECT * FROM shop;"}', 400, 40001),
        ("/query-stream", '{"sql": "PRINT \'nowhere\';"}', 400, 40001),
        ("/close-query", '{"queryId": "none"}', 400, 40000),
        ("/close-query", "{}", 400, 40000),
        ("/nowhere", "{}", 404, 40400),
        ("/info", "{}", 405, 40500),
    ],
)
def test_errors_have_a_code(api: Api, path: str, content: str, status: int, code: int) -> None:
    answer = api.client.post(path, content=content)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code), answer.text
    assert answer.json()["@type"] in ("generic_error", "statement_error")


def test_body_that_is_too_long_and_media_type_that_there_is_not(api: Api) -> None:
    assert api.client.post("/ksql", content=b" " * 5_000_000).status_code == 413
    refused = api.client.post("/query-stream", json={"sql": "SELECT * FROM shop;"}, headers={"Accept": "text/html"})
    assert refused.status_code == 406


# --- inserts ---


def test_rows_are_inserted_and_acknowledged(api: Api) -> None:
    api.ksql(
        "CREATE STREAM many (id STRING KEY, `x y` INT) WITH (kafka_topic='rest-many', partitions=1, format='JSON');"
    )
    rows = "".join(json.dumps({"id": "k", "`x y`": number}) + "\n" for number in range(3000))
    answer = api.client.post("/inserts-stream", content='{"target": "MANY"}\n' + rows)
    acks = [json.loads(line) for line in answer.text.splitlines()]
    assert [ack["status"] for ack in acks] == ["ok"] * 3000
    assert sorted(ack["seq"] for ack in acks) == list(range(3000))
    printed, _ = api.rows("PRINT 'rest-many' FROM BEGINNING LIMIT 3000;")
    assert printed.splitlines()[-1].endswith('value: {"x y":2999}, partition: 0')


def test_acks_can_be_one_array(api: Api) -> None:
    body = '{"target": "shop2"}\n{"n": 1}\n{"n": 2}'
    api.ksql("CREATE STREAM shop2 (n INT) WITH (kafka_topic='rest-shop2', partitions=1, value_format='JSON');")
    answer = api.client.post("/inserts-stream", content=body, headers={"Accept": "application/json"})
    assert answer.json() == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]


def test_a_row_that_does_not_fit_ends_the_stream(api: Api) -> None:
    body = '{"target": "shop"}\n{"id": "x", "n": "many"}\n'
    (ack,) = api.client.post("/inserts-stream", content=body).text.splitlines()
    assert json.loads(ack) == {
        "status": "error",
        "seq": 0,
        "error_code": 40000,
        "message": json.loads(ack)["message"],
    }
    assert "N" in json.loads(ack)["message"]


@pytest.mark.parametrize(
    "content,code", [("", 40000), ("x\n", 40000), ("{}\n", 40000), ('{"target": "none"}\n', 40001)]
)
def test_inserts_that_cannot_begin(api: Api, content: str, code: int) -> None:
    answer = api.client.post("/inserts-stream", content=content)
    assert (answer.status_code, answer.json()["error_code"]) == (400, code)


# --- printed topics ---


def test_print_guesses_formats(api: Api) -> None:
    text, media_type = api.rows("PRINT 'rest-shop' FROM BEGINNING LIMIT 2;", path="/query", accept=V1)
    key, value, first, second = text.splitlines()
    assert (key, value) == ("Key format: KAFKA_STRING", "Value format: JSON or KAFKA_STRING")
    assert first.endswith('key: a, value: {"N":1,"PRICE":1.50}, partition: 0')
    assert second.endswith('key: b, value: {"N":2,"PRICE":null}, partition: 0')
    assert media_type == DELIMITED


def test_print_of_every_second_record(api: Api) -> None:
    text, _ = api.rows("PRINT 'rest-shop' FROM BEGINNING INTERVAL 2 LIMIT 1;")
    assert "key: a" in text
    assert "key: b" not in text


def test_client_that_leaves_ends_its_print(api: Api) -> None:
    with api.client.stream("POST", "/query", json={"ksql": "PRINT 'rest-shop' FROM BEGINNING;"}) as answer:
        assert next(answer.iter_lines()).startswith("Key format")
        assert api.open_queries("print") == 1
    eventually(lambda: api.open_queries("print"), lambda count: count == 0)


def test_websocket_of_a_print_and_of_an_error(api: Api) -> None:
    frames, code = _frames(api, "PRINT 'rest-shop' FROM BEGINNING LIMIT 1;")
    assert (len(frames), code) == (3, 1000)
    frames, code = _frames(api, "SELECT * FROM nowhere;")
    assert (json.loads(frames[0])["errorMessage"]["error_code"], code) == (40001, 1003)


def _frames(api: Api, text: str) -> tuple[list[str], int | None]:
    request = quote(json.dumps({"ksql": text, "streamsProperties": EARLIEST}))
    with connect(f"{api.url.replace('http', 'ws', 1)}/ws/query?request={request}") as socket:
        frames: list[str] = []
        try:
            while True:
                frames.append(str(socket.recv(PATIENCE_S)))
        except Exception:  # noqa: BLE001  # however it was closed
            return frames, socket.close_code


def test_foreign_pages_cannot_open_websockets(api: Api) -> None:
    with pytest.raises(Exception, match="403"):
        connect(
            f"{api.url.replace('http', 'ws', 1)}/ws/query", additional_headers={"Origin": "https://elsewhere.example"}
        )


# --- rows; the first of them starts Spark ---


def test_push_query_in_every_format(api: Api) -> None:
    select = "SELECT id, price FROM shop EMIT CHANGES LIMIT 2;"
    text, media_type = api.rows(select)
    header, *rows = text.splitlines()
    assert json.loads(header)["columnTypes"] == ["STRING", "DECIMAL(6, 2)"]
    assert (rows, media_type) == (['["a",1.50]', '["b",null]'], DELIMITED)

    text, media_type = api.rows(select, accept="application/json")
    assert json.loads(text)[1:] == [["a", 1.5], ["b", None]]
    text, media_type = api.rows(select, path="/query")
    header, *objects = json.loads(text)
    assert header["header"]["schema"] == "`ID` STRING, `PRICE` DECIMAL(6, 2)"
    assert objects == [
        {"row": {"columns": ["a", 1.5]}},
        {"row": {"columns": ["b", None]}},
        {"finalMessage": "Limit Reached"},
    ]
    assert media_type == V1


def test_pull_query_over_a_stream(api: Api) -> None:
    text, _ = api.rows("SELECT * FROM shop WHERE n = 2;")
    assert text.splitlines()[1:] == ['["b",2,null]']


def test_websocket_of_rows(api: Api) -> None:
    frames, code = _frames(api, "SELECT id FROM shop EMIT CHANGES LIMIT 1;")
    schema = [{"name": "ID", "schema": {"type": "STRING", "fields": None, "memberSchema": None}}]
    assert [json.loads(frame) for frame in frames] == [
        schema,
        {"row": {"columns": ["a"]}},
        {"finalMessage": "Limit Reached"},
    ]
    assert code == 1000


def test_push_query_lives_longer_than_requests_may_take_and_is_closed_by_its_id(api: Api) -> None:
    body = {"sql": "SELECT id FROM shop EMIT CHANGES;", "properties": EARLIEST}
    with api.client.stream("POST", "/query-stream", json=body) as answer:
        lines = answer.iter_lines()
        query_id = json.loads(next(lines))["queryId"]
        assert [next(lines), next(lines)] == ['["a"]', '["b"]']
        (listed,) = api.ksql("SHOW QUERIES;")
        assert (query_id, "PUSH") in {(one["id"], one["queryType"]) for one in listed["queries"]}
        time.sleep(4.0)  # longer than request.read.timeout.ms
        api.client.post("/inserts-stream", content='{"target": "shop"}\n{"id": "c"}\n')
        assert next(lines) == '["c"]'
        assert api.client.post("/close-query", json={"queryId": query_id}).status_code == 200
        assert list(lines) == []
    eventually(lambda: api.open_queries("push"), lambda count: count == 0)


def test_push_queries_are_limited_and_end_with_their_clients(api: Api) -> None:
    body = {"ksql": "SELECT id FROM shop EMIT CHANGES;"}
    with (
        api.client.stream("POST", "/query", json=body) as first,
        api.client.stream("POST", "/query", json=body) as second,
    ):
        assert (first.status_code, second.status_code) == (200, 200)
        refused = api.client.post("/query", json=body)
        assert (refused.status_code, refused.json()["error_code"]) == (400, 40003)
    eventually(lambda: api.open_queries("push"), lambda count: count == 0, timeout_s=120)
    eventually(lambda: api.ksql("SHOW QUERIES;")[0]["queries"], lambda queries: queries == [])


def test_pull_query_over_a_table(api: Api) -> None:
    api.ksql("CREATE TABLE counts AS SELECT id, COUNT(*) AS c FROM shop GROUP BY id;", streamsProperties=EARLIEST)
    select = "SELECT * FROM counts WHERE id = 'a';"
    text = eventually(lambda: api.rows(select, path="/query")[0], lambda text: "row" in text, timeout_s=PATIENCE_S)
    header, row = json.loads(text)
    assert header["header"]["schema"] == "`ID` STRING KEY, `C` BIGINT"
    assert row == {"row": {"columns": ["a", 1]}}


def test_everything_can_be_removed(api: Api) -> None:
    api.client.post("/ksql/terminate", json={"deleteTopicList": ["rest-.*"]})
    (streams, tables, topics) = api.ksql("SHOW STREAMS; SHOW TABLES; SHOW TOPICS;")
    assert (streams["streams"], tables["tables"]) == ([], [])
    assert [one["name"] for one in topics["topics"] if one["name"].startswith("rest-")] == []
