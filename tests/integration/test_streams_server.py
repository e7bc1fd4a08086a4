"""Statements of SQL, from their text to topics, definitions and running queries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.server.errors import BadStatement, ServiceError, WrongEndpoint
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.patience import eventually
from tests.support.registry import RegistryProcess, register
from tests.support.streams_desk import WITHOUT_ENGINE, Desk, running_service


@pytest.fixture(scope="module")
def quiet_desk(
    broker: BrokerProcess,
    registry: RegistryProcess,
    connect_process: ConnectProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Desk]:
    """A server whose queries are defined but never run: it may not start an engine."""
    more = {
        **WITHOUT_ENGINE,
        "ksql.schema.registry.url": registry.url,
        "ksql.connect.url": connect_process.url,
        "ksql.readonly.topics": "frozen.*",
    }
    with running_service(broker, tmp_path_factory.mktemp("quiet"), more) as desk:
        yield desk


@pytest.fixture
def desk(quiet_desk: Desk) -> Iterator[Desk]:
    yield quiet_desk
    for _ in range(5):
        for source in list(quiet_desk.service.catalog.sources()):
            try:
                quiet_desk.run(f"DROP {source.kind} `{source.name}` DELETE TOPIC;")
            except ServiceError:
                continue


ORDERS = "CREATE STREAM ORDERS (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='orders', PARTITIONS=2, VALUE_FORMAT='JSON');"


def test_a_stream_makes_its_topic_and_is_listed(desk: Desk) -> None:
    created = desk.one(ORDERS)
    assert created["@type"] == "currentStatus"
    assert created["commandId"] == "stream/`ORDERS`/create"
    assert created["commandStatus"] == {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    assert created["commandSequenceNumber"] >= 0
    assert desk.service.topics.partitions()["orders"] == 2
    assert desk.one("SHOW STREAMS;") == {
        "@type": "streams",
        "statementText": "SHOW STREAMS;",
        "streams": [
            {
                "type": "STREAM",
                "name": "ORDERS",
                "topic": "orders",
                "keyFormat": "KAFKA",
                "valueFormat": "JSON",
                "isWindowed": False,
            }
        ],
        "warnings": [],
    }
    assert desk.service.command_status("stream/`ORDERS`/create")["status"] == "SUCCESS"


def test_a_described_stream_has_fields_that_say_what_is_the_key(desk: Desk) -> None:
    desk.run(ORDERS)
    described = desk.one("DESCRIBE ORDERS EXTENDED;")["sourceDescription"]
    assert described["fields"] == [
        {"name": "ID", "schema": {"type": "STRING", "fields": None, "memberSchema": None}, "type": "KEY"},
        {"name": "N", "schema": {"type": "INTEGER", "fields": None, "memberSchema": None}},
    ]
    assert (described["partitions"], described["replication"], described["topic"]) == (2, 1, "orders")
    assert described["statement"].startswith("CREATE STREAM ORDERS")


def test_an_error_says_where_and_leaves_nothing_behind(desk: Desk) -> None:
    with pytest.raises(BadStatement) as caught:
        desk.run(f"{ORDERS}\nCREATE STREAM B AS SELECT * FROM NOWHERE EMIT CHANGES;")
    assert caught.value.message.startswith("line 2:")
    assert caught.value.body()["statementText"].startswith("CREATE STREAM B")
    assert desk.one("SHOW STREAMS;")["streams"] == []
    assert "orders" not in desk.topics()


def test_rows_have_their_own_endpoint(desk: Desk) -> None:
    with pytest.raises(WrongEndpoint):
        desk.run("SELECT * FROM X;")


def test_statements_see_what_those_before_them_have_defined(desk: Desk) -> None:
    answers = desk.run(
        f"""
        SET 'auto.offset.reset' = 'latest';
        {ORDERS}
        CREATE STREAM BIG AS SELECT * FROM ORDERS WHERE N > 10 EMIT CHANGES;
        CREATE TABLE COUNTS AS SELECT ID, COUNT(*) AS C FROM BIG GROUP BY ID EMIT CHANGES;
        DESCRIBE COUNTS;
        """
    )
    assert [one["@type"] for one in answers] == ["currentStatus"] * 3 + ["sourceDescription"]
    query_id = answers[1]["commandStatus"]["queryId"]
    assert answers[1]["commandStatus"]["message"] == f"Created query with ID {query_id}"
    assert query_id.startswith("CSAS_BIG_")
    query = desk.service.catalog.query(query_id)
    assert query is not None
    assert query.plans[0].inputs[0].starting == "latest"
    assert query.properties == {"auto.offset.reset": "latest"}
    assert {"orders", "BIG", "COUNTS"} <= desk.topics()
    queries = desk.one("SHOW QUERIES;")["queries"]
    assert [(one["sinks"], one["queryType"]) for one in queries] == [
        (["BIG"], "PERSISTENT"),
        (["COUNTS"], "PERSISTENT"),
    ]


def test_a_custom_type_is_listed_and_used(desk: Desk) -> None:
    message = desk.one("CREATE TYPE POINT AS STRUCT<X INT, Y INT>;")["commandStatus"]["message"]
    assert message.startswith("Registered custom type with name 'POINT'")
    assert desk.one("SHOW TYPES;")["types"]["POINT"]["type"] == "STRUCT"
    desk.run("CREATE STREAM PATHS (P POINT) WITH (KAFKA_TOPIC='paths', PARTITIONS=1, VALUE_FORMAT='JSON');")
    source = desk.service.catalog.source("PATHS")
    assert source is not None
    assert source.value[0].type == "STRUCT<`X` INTEGER, `Y` INTEGER>"
    with pytest.raises(BadStatement, match="already registered"):
        desk.run("CREATE TYPE POINT AS INT;")
    assert desk.one("CREATE TYPE IF NOT EXISTS POINT AS INT;")["@type"] == "warning_entity"
    assert desk.one("DROP TYPE POINT;")["commandId"] == "type/POINT/drop"


def test_what_is_read_cannot_be_dropped_before_what_reads_it(desk: Desk) -> None:
    desk.run(ORDERS)
    desk.run("CREATE STREAM BIG AS SELECT * FROM ORDERS WHERE N > 10 EMIT CHANGES;")
    with pytest.raises(BadStatement, match=r"Cannot drop ORDERS\.\n.*\[BIG\]\.\nYou need to drop them"):
        desk.run("DROP STREAM ORDERS;")
    with pytest.raises(BadStatement, match="but statement was DROP TABLE"):
        desk.run("DROP TABLE BIG;")
    dropped = desk.one("DROP STREAM BIG DELETE TOPIC;")
    assert dropped["commandId"] == "stream/BIG/drop"
    assert dropped["commandStatus"]["message"] == "Source `BIG` (topic: BIG) was dropped."
    assert "BIG" not in desk.topics()
    assert list(desk.service.catalog.queries()) == []
    assert desk.one("DROP STREAM IF EXISTS BIG;")["commandStatus"]["message"] == "Source `BIG` does not exist."


def test_a_query_is_paused_resumed_and_terminated(desk: Desk) -> None:
    desk.run(ORDERS)
    query_id = desk.one("CREATE STREAM BIG AS SELECT * FROM ORDERS EMIT CHANGES;")["commandStatus"]["queryId"]
    assert desk.one(f"PAUSE {query_id};")["commandId"] == f"pause/{query_id}/execute"
    assert desk.status(query_id) == "PAUSED"
    desk.run("RESUME ALL;")
    assert desk.status(query_id) != "PAUSED"
    assert desk.one(f"TERMINATE {query_id};")["commandStatus"]["message"] == "Query terminated."
    assert desk.status(query_id) == "GONE"
    assert desk.one("DESCRIBE BIG;")["sourceDescription"]["writeQueries"] == []
    with pytest.raises(BadStatement, match="Unknown queryId"):
        desk.run("TERMINATE NONE_OF_OURS;")


def test_columns_are_added_to_a_stream(desk: Desk) -> None:
    desk.run(ORDERS)
    altered = desk.one("ALTER STREAM ORDERS ADD COLUMN COLOUR STRING;")
    assert altered["commandStatus"]["message"] == "Stream ORDERS altered."
    names = [one["name"] for one in desk.one("DESCRIBE ORDERS;")["sourceDescription"]["fields"]]
    assert names == ["ID", "N", "COLOUR"]


def test_a_name_that_is_taken_is_refused_or_a_warning(desk: Desk) -> None:
    desk.run(ORDERS)
    with pytest.raises(BadStatement, match="same name"):
        desk.run(ORDERS)
    again = desk.one(ORDERS.replace("STREAM ORDERS", "STREAM IF NOT EXISTS ORDERS"))
    assert again["@type"] == "warning_entity"
    assert "same name" in again["message"]


def test_a_new_server_knows_what_another_has_defined(desk: Desk, broker: BrokerProcess, tmp_path: Path) -> None:
    desk.run(ORDERS)
    first = desk.one("CREATE STREAM BIG AS SELECT * FROM ORDERS EMIT CHANGES;")
    service_id = desk.service.settings.ksql_service_id
    with running_service(broker, tmp_path, WITHOUT_ENGINE, service_id=service_id) as other:
        assert [source.name for source in other.service.catalog.sources()] == ["BIG", "ORDERS"]
        assert other.service.command_status(first["commandId"])["queryId"] == first["commandStatus"]["queryId"]
        # Each takes the log over from the other, and knows what that has written.
        there = other.one("CREATE STREAM C AS SELECT * FROM BIG EMIT CHANGES;")
        assert desk.service.wait_for(there["commandSequenceNumber"], 10)
        here = desk.one("CREATE STREAM D AS SELECT * FROM C EMIT CHANGES;")
        assert here["commandSequenceNumber"] > there["commandSequenceNumber"]
        with pytest.raises(BadStatement, match="same name"):
            other.run("CREATE STREAM D AS SELECT * FROM C EMIT CHANGES;")


def test_functions_properties_and_topics_are_told(desk: Desk) -> None:
    desk.run(ORDERS)
    listed = {one["name"]: one for one in desk.one("SHOW FUNCTIONS;")["functions"]}
    assert listed["UCASE"]["type"] == "scalar"
    assert desk.one("DESCRIBE FUNCTION UCASE;")["functions"][0]["returnType"] == "STRING"
    topics = {one["name"]: one for one in desk.one("SHOW TOPICS EXTENDED;")["topics"]}
    assert topics["orders"]["replicaInfo"] == [1, 1]
    shown = desk.run("SET 'auto.offset.reset' = 'earliest'; SHOW PROPERTIES;")[0]
    assert "ksql.streams.auto.offset.reset" in shown["overwrittenProperties"]
    assert desk.one("DEFINE A = '1'; SHOW VARIABLES;")["variables"] == [{"name": "A", "value": "1"}]
    assert desk.one("ASSERT TOPIC orders WITH (PARTITIONS=2) TIMEOUT 1 SECONDS;")["exists"] is True
    with pytest.raises(ServiceError) as caught:
        desk.run("ASSERT NOT EXISTS TOPIC orders TIMEOUT 1 MILLISECONDS;")
    assert caught.value.code == 41700


def test_a_statement_is_explained_without_being_carried_out(desk: Desk) -> None:
    desk.run(ORDERS)
    explained = desk.one("EXPLAIN CREATE TABLE C AS SELECT ID, COUNT(*) AS N FROM ORDERS GROUP BY ID EMIT CHANGES;")
    described = explained["queryDescription"]
    assert described["executionPlan"].splitlines()[0].startswith(" > [ SINK ] | Schema: `ID` STRING KEY, `N` BIGINT")
    assert "[ SOURCE ]" in described["executionPlan"]
    assert desk.one("SHOW TABLES;")["tables"] == []


def test_only_a_query_whose_state_fits_takes_the_place_of_another(desk: Desk) -> None:
    desk.run(ORDERS)
    old = desk.one("CREATE STREAM BIG AS SELECT ID, N FROM ORDERS WHERE N > 10 EMIT CHANGES;")["commandStatus"][
        "queryId"
    ]
    new = desk.one("CREATE OR REPLACE STREAM BIG AS SELECT ID, N FROM ORDERS WHERE N > 20 EMIT CHANGES;")
    assert new["commandStatus"]["queryId"] == old
    query = desk.service.catalog.query(old)
    assert query is not None
    assert "20" in query.statement
    other = "CREATE OR REPLACE STREAM BIG {} AS SELECT N AS ID2, ID FROM ORDERS PARTITION BY N EMIT CHANGES;"
    with pytest.raises(BadStatement, match="side-by-side"):
        desk.run(other.format(""))
    restarted = desk.one(other.format("WITH (`replace.mode`='restart', `replace.from`='latest')"))
    replaced = restarted["commandStatus"]["queryId"]
    assert replaced != old
    assert [query.id for query in desk.service.catalog.queries()] == [replaced]


AVRO = "CREATE STREAM A (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='avros', PARTITIONS=1, VALUE_FORMAT='AVRO');"


def test_schemas_are_registered_with_a_stream_and_deleted_with_its_topic(desk: Desk) -> None:
    desk.run(AVRO)
    found = desk.one("ASSERT SCHEMA SUBJECT 'avros-value' TIMEOUT 1 SECONDS;")
    assert (found["@type"], found["subject"], found["id"], found["exists"]) == (
        "assert_schema",
        "avros-value",
        None,
        True,
    )
    made = desk.one("CREATE STREAM B WITH (KAFKA_TOPIC='avros2') AS SELECT * FROM A EMIT CHANGES;")
    assert made["commandStatus"]["status"] == "SUCCESS"
    desk.run("ASSERT SCHEMA SUBJECT 'avros2-value' TIMEOUT 1 SECONDS;")
    desk.run("DROP STREAM B DELETE TOPIC; ASSERT NOT EXISTS SCHEMA SUBJECT 'avros2-value' TIMEOUT 1 SECONDS;")


def test_columns_come_from_the_registry(desk: Desk, registry: RegistryProcess) -> None:
    register(registry.url, "shopped-value")
    desk.run("CREATE STREAM S WITH (KAFKA_TOPIC='shopped', PARTITIONS=1, VALUE_FORMAT='AVRO');")
    (field,) = desk.one("DESCRIBE S;")["sourceDescription"]["fields"]
    assert (field["name"], field["schema"]["type"]) == ("n", "INTEGER")
    with pytest.raises(BadStatement, match="nothing-value"):
        desk.run("CREATE STREAM S2 WITH (KAFKA_TOPIC='nothing', PARTITIONS=1, VALUE_FORMAT='AVRO');")


def test_connectors_are_made_listed_described_and_dropped(desk: Desk, connect: ConnectProcess, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\n")
    create = (
        "CREATE SOURCE CONNECTOR {} LINES WITH ('connector.class' = 'FileStreamSource', 'tasks.max' = '1', "
        f"'topic' = 'lines', 'file' = '{file}');"
    )
    made = desk.one(create.format(""))
    assert made["@type"] == "connector_info"
    assert (made["info"]["name"], made["info"]["type"]) == ("LINES", "source")
    assert desk.one(create.format("IF NOT EXISTS"))["@type"] == "warning_entity"
    with pytest.raises(BadStatement, match="already exists"):
        desk.run(create.format(""))
    (listed,) = eventually(
        lambda: desk.one("SHOW SOURCE CONNECTORS;")["connectors"],
        lambda found: found[0]["state"] == "RUNNING (1/1 tasks RUNNING)",
    )
    assert (listed["name"], listed["type"]) == ("LINES", "source")
    assert desk.one("SHOW SINK CONNECTORS;")["connectors"] == []
    desk.run("CREATE STREAM L (LINE STRING) WITH (KAFKA_TOPIC='lines', PARTITIONS=1, VALUE_FORMAT='KAFKA');")
    described = eventually(lambda: desk.one("DESCRIBE CONNECTOR LINES;"), lambda found: bool(found["topics"]))
    assert [source["name"] for source in described["sources"]] == ["L"]
    assert described["status"]["connector"]["state"] == "RUNNING"
    plugins = desk.one("SHOW CONNECTOR PLUGINS;")["connectorsPlugins"]
    assert {"source", "sink"} <= {one["type"] for one in plugins}
    assert desk.one("DROP CONNECTOR LINES;")["connectorName"] == "LINES"
    with pytest.raises(BadStatement, match="does not exist"):
        desk.run("DROP CONNECTOR LINES;")
    assert desk.one("DROP CONNECTOR IF EXISTS LINES;")["@type"] == "warning_entity"


def test_rows_are_inserted_with_the_properties_of_their_stream(desk: Desk) -> None:
    assert desk.run(f"{ORDERS} INSERT INTO ORDERS (ID, N) VALUES ('a', 2 + 3);")[1:] == []
    assert desk.values("orders") == [{"N": 5}]
    with pytest.raises(BadStatement, match="NOWHERE"):
        desk.run("INSERT INTO NOWHERE VALUES (1);")


def test_a_topic_that_is_read_only_is_not_written(desk: Desk) -> None:
    desk.run(ORDERS)
    with pytest.raises(BadStatement, match="read-only"):
        desk.run("CREATE STREAM F WITH (KAFKA_TOPIC='frozen1') AS SELECT * FROM ORDERS EMIT CHANGES;")


def test_the_server_tells_who_and_how_it_is(desk: Desk) -> None:
    info = desk.service.info()["KsqlServerInfo"]
    assert info["ksqlServiceId"] == desk.service.settings.ksql_service_id
    assert info["serverStatus"] == "RUNNING"
    assert info["kafkaClusterId"]
    assert desk.service.health()["isHealthy"] is True
