from typing import Any

import pytest

from deploy.views.sql.blocks import Block, Grid, Lines, NamedValues
from deploy.views.sql.entities import blocks_of, command_of, failure_of
from deploy.views.sql.lists import type_text

QUERY = {
    "queryString": "CREATE TABLE T AS\n  SELECT 1;",
    "sinks": ["T"],
    "sinkKafkaTopics": ["T"],
    "id": "CTAS_T_1",
    "statusCount": {"RUNNING": 1},
    "queryType": "PERSISTENT",
    "state": "RUNNING",
}
INTEGER = {"type": "INTEGER", "fields": None, "memberSchema": None}
SOURCE = {
    "name": "T",
    "type": "TABLE",
    "windowType": "TUMBLING",
    "keyFormat": "KAFKA",
    "valueFormat": "AVRO",
    "topic": "t",
    "partitions": 2,
    "replication": 1,
    "extended": True,
    "timestamp": "",
    "statement": "CREATE TABLE T ...",
    "fields": [
        {"name": "ID", "schema": INTEGER, "type": "KEY"},
        {"name": "H", "schema": INTEGER, "type": "HEADER", "headerKey": "h"},
        {"name": "V", "schema": INTEGER},
    ],
    "readQueries": [QUERY],
    "writeQueries": [],
    "statistics": "",
    "errorStats": "",
    "sourceConstraints": ["U"],
    "clusterStatistics": [
        {"host": {"hostname": "h", "port": 8088}, "name": "total-messages", "value": 3, "timestamp": 1_700_000_000_000}
    ],
    "queryOffsetSummaries": [
        {
            "groupId": "g",
            "topicSummaries": [
                {
                    "kafkaTopic": "t",
                    "offsets": [{"partition": 0, "logStartOffset": 0, "logEndOffset": 9, "consumerOffset": 4}],
                }
            ],
        }
    ],
}


def grids(entity: dict[str, Any]) -> list[Grid]:
    return [block for block in blocks_of(entity) if isinstance(block, Grid)]


def text_of(blocks: list[Block]) -> str:
    lines = [block.lines for block in blocks if isinstance(block, Lines)]
    values = [f"{name}={value}" for block in blocks if isinstance(block, NamedValues) for name, value in block.values]
    return "\n".join([*(line for group in lines for line in group), *values])


@pytest.mark.parametrize(
    ("entity", "columns", "row"),
    [
        (
            {"@type": "streams", "streams": [{"name": "S", "topic": "s", "keyFormat": "KAFKA", "valueFormat": "JSON"}]},
            ("Stream Name", "Kafka Topic", "Key Format", "Value Format", "Windowed"),
            ("S", "s", "KAFKA", "JSON", "false"),
        ),
        (
            {"@type": "tables", "tables": [{"name": "T", "topic": "t", "isWindowed": True}]},
            ("Table Name", "Kafka Topic", "Key Format", "Value Format", "Windowed"),
            ("T", "t", "", "", "true"),
        ),
        (
            {"@type": "kafka_topics", "topics": [{"name": "t", "replicaInfo": [3, 3]}]},
            ("Kafka Topic", "Partitions#", "Partition Replicas"),
            ("t", "2", "3"),
        ),
        (
            {
                "@type": "kafka_topics_extended",
                "topics": [{"name": "t", "replicaInfo": [1, 2], "consumerCount": 4, "consumerGroupCount": 5}],
            },
            ("Kafka Topic", "Partitions#", "Partition Replicas", "Consumers#", "Consumer Groups#"),
            ("t", "2", "1, 2", "4", "5"),
        ),
        (
            {"@type": "queries", "queries": [QUERY]},
            ("Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"),
            ("CTAS_T_1", "PERSISTENT", "RUNNING:1", "T", "T", "CREATE TABLE T AS SELECT 1;"),
        ),
        (
            {
                "@type": "properties",
                "properties": [{"name": "a.b", "scope": "KSQL", "value": None}],
                "overwrittenProperties": ["a.b"],
                "defaultProperties": [],
            },
            ("Property", "Scope", "Default override", "Effective Value"),
            ("a.b", "KSQL", "SESSION", "NULL"),
        ),
        (
            {"@type": "function_names", "functions": [{"name": "ABS", "type": "SCALAR", "category": "MATHEMATICAL"}]},
            ("Function Name", "Category"),
            ("ABS", "MATHEMATICAL"),
        ),
        (
            {"@type": "type_list", "types": {"A": {"type": "STRUCT", "fields": [{"name": "X", "schema": INTEGER}]}}},
            ("Type Name", "Schema"),
            ("A", "STRUCT<X INTEGER>"),
        ),
        (
            {"@type": "variables", "variables": [{"name": "A", "value": "1"}]},
            ("Variable Name", "Value"),
            ("A", "1"),
        ),
        (
            {
                "@type": "connector_list",
                "connectors": [{"name": "c", "type": "sink", "className": "a.b.C", "state": "RUNNING (1/1 tasks)"}],
            },
            ("Connector Name", "Type", "Class", "Status"),
            ("c", "sink", "C", "RUNNING (1/1 tasks)"),
        ),
        (
            {
                "@type": "connector_plugins_list",
                "connectorsPlugins": [{"className": "a.C", "type": "sink", "version": "1"}],
            },
            ("Class", "Type", "Version"),
            ("a.C", "sink", "1"),
        ),
    ],
    ids=lambda value: value.get("@type") if isinstance(value, dict) else "",
)
def test_a_list_is_a_table(entity: dict[str, Any], columns: tuple[str, ...], row: tuple[str, ...]) -> None:
    (found,) = grids(entity)
    assert (found.columns, found.rows) == (columns, (row,))


@pytest.mark.parametrize("kind", ["streams", "tables", "kafka_topics", "queries", "type_list", "connector_list"])
def test_an_empty_list_says_what_to_do(kind: str) -> None:
    assert text_of(blocks_of({"@type": kind, kind: []}))


def test_a_description_has_columns_queries_counts_and_lag() -> None:
    blocks = blocks_of({"@type": "sourceDescription", "sourceDescription": SOURCE})
    columns, reading, counts, lag = (block for block in blocks if isinstance(block, Grid))
    assert columns.rows == (
        ("ID", "INTEGER          (primary key) (Window type: TUMBLING)"),
        ("H", "INTEGER          (header('h'))"),
        ("V", "INTEGER"),
    )
    assert reading.rows == (("CTAS_T_1", "RUNNING:1", "CREATE TABLE T AS\n  SELECT 1;"),)
    assert counts.rows == (("h:8088", "total-messages", "3", "2023-11-14 22:13:20 UTC"),)
    assert (lag.title, lag.rows) == ("Consumer group g, topic t, max lag 5", (("0", "0", "9", "4", "5"),))
    told = text_of(blocks)
    assert "Kafka topic=t (partitions: 2, replication: 1)" in told
    assert "Not set - using <ROWTIME>" in told
    assert "Read by: U" in told


def test_a_short_description_points_to_the_long_one() -> None:
    source = {**SOURCE, "extended": False}
    told = text_of(blocks_of({"@type": "sourceDescription", "sourceDescription": source}))
    assert "DESCRIBE T EXTENDED" in told


def test_an_explained_query_has_its_plan_and_its_errors() -> None:
    entity = {
        "@type": "queryDescription",
        "queryDescription": {
            "id": "CTAS_T_1",
            "statementText": "CREATE TABLE T AS SELECT 1;",
            "queryType": "PERSISTENT",
            "fields": SOURCE["fields"],
            "sources": ["S"],
            "sinks": ["T"],
            "executionPlan": " > [ SINK ]\n  > [ SOURCE ]",
            "topology": "Sink <- Source",
            "overriddenProperties": {"auto.offset.reset": "earliest"},
            "ksqlHostQueryStatus": {"h:8088": "RUNNING"},
            "queryErrors": [{"timestamp": 1_700_000_000_000, "type": "USER", "errorMessage": "no"}],
        },
    }
    blocks = blocks_of(entity)
    told = text_of(blocks)
    assert "> [ SINK ]" in told
    assert "Host status=h:8088 RUNNING" in told
    assert [grid.rows for grid in grids(entity)][1:] == [
        (("auto.offset.reset", "earliest"),),
        (("2023-11-14 22:13:20 UTC", "USER", "no"),),
    ]


def test_a_function_has_its_variations_and_arguments() -> None:
    entity = {
        "@type": "describe_function",
        "name": "CONCAT",
        "description": "Joins texts.",
        "functions": [
            {
                "arguments": [{"name": "col", "type": "STRING", "description": "A text.", "isVariadic": True}],
                "returnType": "STRING",
                "description": "texts",
            }
        ],
    }
    variations, arguments = grids(entity)
    assert variations.rows == (("CONCAT(col STRING[])", "STRING", "texts"),)
    assert arguments.rows == (("col", "A text."),)


@pytest.mark.parametrize(
    ("entity", "said"),
    [
        ({"@type": "currentStatus", "commandStatus": {"status": "SUCCESS", "message": "Stream created"}}, "created"),
        ({"@type": "warning_entity", "message": "it exists"}, "it exists"),
        ({"@type": "terminate_query", "queryId": "q", "wasTerminated": True}, "Query q terminated."),
        ({"@type": "drop_connector", "connectorName": "c"}, "Dropped connector c"),
        ({"@type": "connector_info", "info": {"name": "c", "config": {"connector.class": "a.B"}}}, "c created (B)"),
        ({"@type": "assert_topic", "topicName": "t", "exists": False}, "t does not exist"),
        ({"@type": "assert_schema", "subject": "s", "id": 3, "exists": True}, "subject s and id 3 exists"),
        ({"@type": "streams", "streams": [], "warnings": [{"message": "beware"}]}, "Warning: beware"),
        ({"@type": "something new", "x": 1}, '"x": 1'),
    ],
    ids=lambda value: value.get("@type") if isinstance(value, dict) else "",
)
def test_an_answer_is_told(entity: dict[str, Any], said: str) -> None:
    assert said in text_of(blocks_of(entity))


def test_an_answer_of_another_form_is_shown_as_it_is() -> None:
    assert '"offsets": 3' in text_of(blocks_of({"@type": "streams", "streams": [3], "offsets": 3}))


def test_a_command_that_runs_and_one_that_failed_are_told_apart() -> None:
    running = {"commandId": "stream/`S`/create", "commandStatus": {"status": "EXECUTING", "message": ""}}
    assert (command_of(running), failure_of(running)) == ("stream/`S`/create", None)
    failed = {"commandId": "stream/`S`/create", "commandStatus": {"status": "ERROR", "message": "no"}}
    assert (command_of(failed), failure_of(failed)) == (None, "no")


def test_types_are_told_as_sql() -> None:
    member = {"type": "DECIMAL", "parameters": {"precision": 4, "scale": 2}}
    assert type_text({"type": "ARRAY", "memberSchema": {"type": "MAP", "memberSchema": member}}) == (
        "ARRAY<MAP<STRING, DECIMAL(4, 2)>>"
    )
    assert type_text("INTEGER") == "INTEGER"
