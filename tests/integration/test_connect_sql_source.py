"""The SQL source against real servers, driven as a worker drives it."""

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect.api import data
from connect.api.data import Type
from connect.api.errors import ConfigError, ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.testing.contexts import FakeConnectorContext, FakeSourceContext
from connect.testing.source_suite import offsets_of
from connectors.sql.dialect import Table
from connectors.sql.source import SqlSourceConnector, SqlSourceTask, format_tables
from tests.support.admin import eventually
from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresServer
from tests.support.sql_databases import (
    MariadbDatabase,
    PostgresDatabase,
    SqlDatabase,
    SqliteDatabase,
    mariadb_database,
    postgres_database,
)

START = datetime(2024, 1, 1, tzinfo=UTC)


def moment(number: int) -> str:
    """A timestamp as every database reads it."""
    return (START + timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S")


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> SqlDatabase:
    match request.param:
        case "postgresql":
            return postgres_database(request.getfixturevalue("postgres"))
        case "mariadb":
            return mariadb_database(request.getfixturevalue("mariadb"))
        case _:
            return SqliteDatabase(tmp_path)


@pytest.fixture
def tasks() -> Iterator[list[SqlSourceTask]]:
    running: list[SqlSourceTask] = []
    yield running
    for task in running:
        task.stop()


def started(
    tasks: list[SqlSourceTask], database: SqlDatabase, context: FakeSourceContext | None = None, /, **options: str
) -> SqlSourceTask:
    given = {
        "connection.url": database.url,
        "connection.attempts": "1",
        "topic.prefix": "db-",
        "poll.interval.ms": "5",
        **{key.replace("_", "."): value for key, value in options.items()},
    }
    if "query" not in given and "tables" not in given:
        given["tables"] = format_tables([table_of(database)])
    task = SqlSourceTask(SqlSourceConnector.config_class.parse(given), context or FakeSourceContext())
    tasks.append(task)
    task.start()
    return task


def table_of(database: SqlDatabase, name: str = "items") -> Table:
    if isinstance(database, PostgresDatabase):
        return Table(name=name, schema="public")
    return Table(name=name)


def read(task: SqlSourceTask, *, idle: int = 4) -> list[SourceRecord]:
    """All that there is now."""
    records: list[SourceRecord] = []
    quiet = 0
    while quiet < idle:
        batch = task.poll()
        quiet = 0 if batch else quiet + 1
        records.extend(batch)
    return records


def column(records: Sequence[SourceRecord], name: str) -> list[Any]:
    return [record.value[name] for record in records]


def items(database: SqlDatabase, rows: Sequence[tuple[int, str]], *, at: str = "TIMESTAMP") -> None:
    database.run(f"CREATE TABLE items (id INTEGER PRIMARY KEY, at {at} NOT NULL)")
    add(database, rows)


def add(database: SqlDatabase, rows: Sequence[tuple[int, str]]) -> None:
    database.run_many("INSERT INTO items (id, at) VALUES (:id, :at)", [{"id": n, "at": text} for n, text in rows])


def test_everything_is_read_again_each_time_in_bulk_mode(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n)) for n in range(25)])
    task = started(tasks, database, mode="bulk", batch_max_rows="10")
    sizes = [len(task.poll()) for _ in range(3)]
    assert sizes == [10, 10, 5]
    again: list[SourceRecord] = []
    while not again:
        again = list(task.poll())
    assert again[0].value["id"] == 0
    assert again[0].source_partition == {"table": "items"}
    assert again[0].topic == "db-items"


def test_offsets_are_those_of_kafka_connects_jdbc_source(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(7, "2024-01-01 00:00:05.250")], at="TIMESTAMP(3)" if "sqlite" not in database.url else "TEXT")
    task = started(
        tasks,
        database,
        mode="timestamp+incrementing",
        timestamp_column_name="at",
        incrementing_column_name="id",
    )
    record = read(task)[0]
    assert record.source_partition == {"protocol": "1", "table": str(table_of(database))}
    milliseconds = int(START.timestamp() * 1000) + 5_250
    assert record.source_offset == {
        "incrementing": 7,
        "timestamp": milliseconds,
        "timestamp_nanos": 250_000_000,
    }


def test_offsets_of_old_versions_are_taken_over(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n)) for n in range(5)])
    context = FakeSourceContext([({"table": "items"}, {"incrementing": 2})])
    task = started(tasks, database, context, mode="incrementing", incrementing_column_name="id")
    assert column(read(task), "id") == [3, 4]


def test_rows_of_one_moment_are_all_read_whatever_the_batch(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n // 4)) for n in range(22)])
    options = {"mode": "timestamp", "timestamp_column_name": "at", "batch_max_rows": "3"}
    whole = read(started(tasks, database, **options))
    assert sorted(column(whole, "id")) == list(range(22))
    for committed in range(22):
        offsets = offsets_of(whole[:committed])
        rest = read(started(tasks, database, FakeSourceContext(offsets), **options))
        seen = {record.value["id"] for record in [*whole[:committed], *rest]}
        assert seen == set(range(22)), f"rows are lost after {committed}"


def test_batches_end_between_moments_so_that_nothing_is_read_twice(
    database: SqlDatabase, tasks: list[SqlSourceTask]
) -> None:
    items(database, [(n, moment(n // 3)) for n in range(30)])
    options = {"mode": "timestamp", "timestamp_column_name": "at", "batch_max_rows": "4"}
    task = started(tasks, database, **options)
    records: list[SourceRecord] = []
    while len(records) < 30:
        batch = list(task.poll())
        records += batch
        again = started(tasks, database, FakeSourceContext(offsets_of(records)), **options)
        assert len(read(again, idle=1)) == 0 or batch
        both = [*records, *read(started(tasks, database, FakeSourceContext(offsets_of(records)), **options))]
        assert sorted(column(both, "id")) == list(range(30))


def test_changed_rows_are_read_again(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n)) for n in range(3)])
    task = started(
        tasks, database, mode="timestamp+incrementing", timestamp_column_name="at", incrementing_column_name="id"
    )
    assert column(read(task), "id") == [0, 1, 2]
    database.run("UPDATE items SET at = :at WHERE id = 1", at=moment(50))
    add(database, [(9, moment(50))])
    assert column(read(task), "id") == [1, 9]


def test_rows_of_the_future_wait(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)  # noqa: TID251 - the database's clock is the machine's
    items(database, [(1, moment(1)), (2, later.strftime("%Y-%m-%d %H:%M:%S"))])
    task = started(tasks, database, mode="timestamp", timestamp_column_name="at")
    assert column(read(task), "id") == [1]


def test_the_first_of_several_moments_that_is_not_null_counts(
    database: SqlDatabase, tasks: list[SqlSourceTask]
) -> None:
    optional = "DATETIME NULL" if isinstance(database, MariadbDatabase) else "TIMESTAMP NULL"
    database.run(f"CREATE TABLE items (id INTEGER PRIMARY KEY, changed {optional}, made TIMESTAMP NOT NULL)")
    insert = "INSERT INTO items (id, changed, made) VALUES (:id, :changed, :made)"
    database.run(insert, id=1, changed=None, made=moment(5))
    database.run(insert, id=2, changed=moment(3), made=moment(1))
    task = started(tasks, database, mode="timestamp", timestamp_column_name="changed,made")
    assert column(read(task), "id") == [2, 1]


def test_reading_begins_where_the_operator_says(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n)) for n in range(5)])
    begin = str(int((START + timedelta(seconds=2)).timestamp() * 1000))
    task = started(tasks, database, mode="timestamp", timestamp_column_name="at", timestamp_initial=begin)
    assert column(read(task), "id") == [3, 4]
    assert read(started(tasks, database, mode="timestamp", timestamp_column_name="at", timestamp_initial="-1")) == []


def test_columns_that_may_be_null_are_refused(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    database.run("CREATE TABLE items (id INTEGER, n INTEGER NULL)")
    task = started(tasks, database, mode="incrementing", incrementing_column_name="n")
    with pytest.raises(ConfigError, match="because this column is nullable"):
        task.poll()
    lenient = started(tasks, database, mode="incrementing", incrementing_column_name="n", validate_non_null="false")
    assert read(lenient) == []


def test_a_query_is_read_by_its_own_name(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n)) for n in range(5)])
    task = started(
        tasks,
        database,
        query="SELECT id, 'a%b' AS label, id + 0.5 AS half FROM items",
        mode="incrementing",
        incrementing_column_name="id",
        topic_prefix="answers",
        batch_max_rows="2",
    )
    records = read(task)
    assert column(records, "id") == [0, 1, 2, 3, 4]
    assert {record.topic for record in records} == {"answers"}
    assert records[3].source_partition == {"query": "query"}
    assert records[3].source_offset == {"incrementing": 3}
    assert records[0].value["label"] == "a%b"
    assert float(records[0].value["half"]) == 0.5


def test_a_column_that_is_added_is_read(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(1, moment(1))])
    task = started(tasks, database, mode="incrementing")
    assert list(read(task)[0].value) == ["id", "at"]
    database.run("ALTER TABLE items ADD COLUMN note VARCHAR(20)")
    database.run("INSERT INTO items (id, at, note) VALUES (2, :at, 'new')", at=moment(2))
    record = read(task)[0]
    assert record.value["note"] == "new"
    assert record.value_schema is not None
    assert record.value_schema.by_name["note"] == data.OPTIONAL_STRING


def test_a_table_that_is_dropped_is_an_outage_not_the_end(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(1, moment(1))])
    task = started(tasks, database, mode="incrementing")
    assert len(read(task)) == 1
    database.run("DROP TABLE items")
    with pytest.raises(RetriableError):
        read(task)
    database.run("CREATE TABLE items (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL)")
    add(database, [(2, moment(2))])
    records: list[SourceRecord] = []
    while not records:
        records = list(task.poll())
    assert column(records, "id") == [2]


def test_several_tables_are_read_in_turn(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    names = ["items", "orders", "users"]
    for name in names:
        database.run(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
        database.run(f"INSERT INTO {name} (id) VALUES (1), (2)")
    task = started(
        tasks, database, mode="incrementing", tables=format_tables([table_of(database, name) for name in names])
    )
    records = read(task, idle=8)
    assert sorted((record.topic, record.value["id"]) for record in records) == [
        (f"db-{name}", number) for name in names for number in (1, 2)
    ]


# --- planning ---


def connector(database: SqlDatabase, context: FakeConnectorContext, **options: str) -> SqlSourceConnector:
    given = {"connection.url": database.url, "mode": "bulk", "topic.prefix": "db-", "connection.attempts": "1"}
    given |= {key.replace("_", "."): value for key, value in options.items()}
    made = SqlSourceConnector(SqlSourceConnector.config_class.parse(given), context)
    made.start()
    return made


def test_tables_are_shared_out_to_tasks(database: SqlDatabase) -> None:
    for number in range(5):
        database.run(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY)")
    planned = connector(database, FakeConnectorContext(), table_blacklist="t4")
    try:
        assert [len(json.loads(config["tables"])) for config in planned.task_configs(3)] == [1, 1, 2]
        assert len(planned.task_configs(10)) == 4
    finally:
        planned.stop()


def test_a_new_table_asks_for_a_new_plan(database: SqlDatabase) -> None:
    database.run("CREATE TABLE t1 (id INTEGER PRIMARY KEY)")
    context = FakeConnectorContext()
    planned = connector(database, context, table_poll_interval_ms="20")
    try:
        assert len(planned.task_configs(10)) == 1
        database.run("CREATE TABLE t2 (id INTEGER PRIMARY KEY)")
        eventually(lambda: context.reconfigurations == 1)
        assert len(planned.task_configs(10)) == 2
    finally:
        planned.stop()


def test_a_database_that_comes_later_gets_its_plan(database: SqlDatabase) -> None:
    database.run("CREATE TABLE t1 (id INTEGER PRIMARY KEY)")
    database.break_down()
    context = FakeConnectorContext()
    options = {"table_poll_interval_ms": "20", "table_monitoring_startup_polling_limit_ms": "1"}
    planned = connector(database, context, **options)
    try:
        assert planned.task_configs(10) == []
        database.mend()
        eventually(lambda: context.reconfigurations == 1)
        assert len(planned.task_configs(10)) == 1
    finally:
        database.mend()
        planned.stop()


def test_offsets_that_make_no_sense_are_refused(database: SqlDatabase) -> None:
    planned = connector(database, FakeConnectorContext())
    try:
        assert planned.alter_offsets([({"protocol": "1", "table": "items"}, {"incrementing": 5})]) is False
        with pytest.raises(ConnectError, match="whole number"):
            planned.alter_offsets([({"table": "items"}, {"incrementing": "5"})])
        with pytest.raises(ConnectError, match="partition"):
            planned.alter_offsets([({"file": "items"}, {"incrementing": 5})])
    finally:
        planned.stop()


# --- PostgreSQL alone ---


def test_a_number_that_is_committed_late_is_not_missed(postgres: PostgresServer, tasks: list[SqlSourceTask]) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE items (id serial PRIMARY KEY, name text)")
    task = started(tasks, database, mode="incrementing", incrementing_column_name="id")
    database.run("INSERT INTO items (name) VALUES ('first')")
    assert column(read(task), "name") == ["first"]
    with database.session() as slow:
        slow.exec_driver_sql("INSERT INTO items (name) VALUES ('slow')")
        database.run("INSERT INTO items (name) VALUES ('fast')")
        assert read(task) == []
        slow.commit()
    assert column(read(task), "name") == ["slow", "fast"]


def test_a_row_that_is_changed_meanwhile_does_not_hide_those_before_it(
    postgres: PostgresServer, tasks: list[SqlSourceTask]
) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE items (id serial PRIMARY KEY, name text)")
    database.run("INSERT INTO items (name) VALUES ('a'), ('b'), ('c')")
    database.run("CREATE TABLE others (id int)")
    task = started(tasks, database, mode="incrementing", incrementing_column_name="id")
    with database.session() as other:
        other.exec_driver_sql("INSERT INTO others VALUES (1)")
        database.run("UPDATE items SET name = 'B' WHERE id = 2")
        assert column(read(task), "name") == ["a"]
        other.commit()
    assert column(read(task), "name") == ["B", "c"]


def test_a_moment_that_is_committed_late_is_not_missed(postgres: PostgresServer, tasks: list[SqlSourceTask]) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE items (name text, at timestamptz NOT NULL DEFAULT now())")
    options = {"mode": "timestamp", "timestamp_column_name": "at"}
    task, careless = (
        started(tasks, database, **options),
        started(tasks, database, open_transactions="ignore", **options),
    )
    with database.session() as slow:
        slow.exec_driver_sql("INSERT INTO items (name) VALUES ('slow')")
        database.run("INSERT INTO items (name) VALUES ('fast')")
        assert read(task) == []
        assert column(read(careless), "name") == ["fast"]
        slow.commit()
    assert column(read(task), "name") == ["slow", "fast"]
    assert read(careless) == []  # what Kafka Connect does


def test_types_of_postgresql_become_those_of_connect(postgres: PostgresServer, tasks: list[SqlSourceTask]) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    database.run(
        "CREATE TABLE items (id bigint NOT NULL, small smallint, n int, f real, d double precision, "
        "price numeric(10,2), free numeric, flag boolean, note text, raw bytea, day date, at time, local timestamp, "
        "moment timestamptz, doc jsonb, key uuid, tags text[], numbers int[], state mood, "
        "span interval, ip inet, period int4range)"
    )
    database.run(
        "INSERT INTO items VALUES (1, 2, 3, 0.5, 0.25, 12.5, 1.25, true, 'x', '\\x00ff', '2024-02-29', '01:02:03', "
        "'2024-07-01 12:00', '2024-07-01 10:00+00', '{\"a\": 1}', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', "
        "ARRAY['a', NULL], ARRAY[1, 2], 'happy', '1 day', '10.0.0.1', '[1,3)')"
    )
    ten = datetime(2024, 7, 1, 10, tzinfo=UTC)
    expected: dict[str, tuple[data.Schema, Any]] = {
        "id": (data.INT64, 1),
        "small": (data.OPTIONAL_INT16, 2),
        "n": (data.OPTIONAL_INT32, 3),
        "f": (data.OPTIONAL_FLOAT32, 0.5),
        "d": (data.OPTIONAL_FLOAT64, 0.25),
        "price": (data.decimal(2, optional=True), Decimal("12.50")),
        "free": (data.decimal(38, optional=True), Decimal("1.25")),
        "flag": (data.OPTIONAL_BOOLEAN, True),
        "note": (data.OPTIONAL_STRING, "x"),
        "raw": (data.OPTIONAL_BYTES, b"\x00\xff"),
        "day": (data.DATE.as_optional(), date(2024, 2, 29)),
        "at": (data.TIME.as_optional(), time_of_day(1, 2, 3)),
        "local": (data.TIMESTAMP.as_optional(), ten),
        "moment": (data.TIMESTAMP.as_optional(), ten),
        "doc": (data.OPTIONAL_STRING, '{"a": 1}'),
        "key": (data.OPTIONAL_STRING, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        "tags": (data.array(data.OPTIONAL_STRING, optional=True), ["a", None]),
        "numbers": (data.array(data.OPTIONAL_INT32, optional=True), [1, 2]),
        "state": (data.OPTIONAL_STRING, "happy"),
        "span": (data.OPTIONAL_STRING, "1 day"),
        "ip": (data.OPTIONAL_STRING, "10.0.0.1"),
        "period": (data.OPTIONAL_STRING, "[1,3)"),
    }
    task = started(tasks, database, mode="bulk", db_timezone="Europe/Madrid")
    from_table = task.poll()[0]
    from_query = started(tasks, database, mode="bulk", query="SELECT * FROM items", db_timezone="Europe/Madrid").poll()[
        0
    ]
    assert from_table.value == from_query.value == {name: value for name, (_, value) in expected.items()}
    assert from_table.value_schema is not None
    assert from_query.value_schema is not None
    assert dict(from_table.value_schema.by_name) == {name: schema for name, (schema, _) in expected.items()}
    changed = {"id": data.OPTIONAL_INT64}  # a query does not tell what may be null
    assert dict(from_query.value_schema.by_name) == {**from_table.value_schema.by_name, **changed}
    assert from_table.value_schema.name == "items"


def test_types_of_mariadb_become_those_of_connect(mariadb: MariadbServer, tasks: list[SqlSourceTask]) -> None:
    database = MariadbDatabase(mariadb)
    database.run(
        "CREATE TABLE items (id BIGINT NOT NULL, tiny TINYINT, small SMALLINT UNSIGNED, n INT UNSIGNED, f FLOAT, "
        "d DOUBLE, price DECIMAL(10,2), note VARCHAR(20), more TEXT, raw VARBINARY(10), big BLOB, day DATE, "
        "span TIME(3), local DATETIME(6), moment TIMESTAMP NULL, state ENUM('sad','happy'), made YEAR, flags BIT(8))"
    )
    database.run(
        "INSERT INTO items VALUES (1, -2, 65535, 4294967295, 0.5, 0.25, 12.5, 'x', 'y', x'00ff', x'01', '2024-02-29', "
        "'01:02:03.004', '2024-07-01 10:00:00.000001', '2024-07-01 10:00:00', 'happy', 2024, b'101')"
    )
    task = started(tasks, database, mode="bulk")
    record = task.poll()[0]
    assert record.value_schema is not None
    types = {name: schema.name or schema.type for name, schema in record.value_schema.by_name.items()}
    assert types == {
        "id": Type.INT64,
        "tiny": Type.INT8,
        "small": Type.INT32,
        "n": Type.INT64,
        "f": Type.FLOAT32,
        "d": Type.FLOAT64,
        "price": data.DECIMAL_NAME,
        "note": Type.STRING,
        "more": Type.STRING,
        "raw": Type.BYTES,
        "big": Type.BYTES,
        "day": data.DATE_NAME,
        "span": data.TIME_NAME,
        "local": data.TIMESTAMP_NAME,
        "moment": data.TIMESTAMP_NAME,
        "state": Type.STRING,
        "made": Type.INT16,
        "flags": Type.BYTES,
    }
    ten = datetime(2024, 7, 1, 10, tzinfo=UTC)
    values = record.value
    assert (values["n"], values["small"], values["price"]) == (4_294_967_295, 65_535, Decimal("12.50"))
    assert (values["span"], values["flags"], values["raw"]) == (time_of_day(1, 2, 3, 4000), b"\x05", b"\x00\xff")
    assert (values["local"], values["moment"]) == (ten + timedelta(microseconds=1), ten)


def test_a_row_that_does_not_fit_is_reported_and_the_others_are_read(
    mariadb: MariadbServer, tasks: list[SqlSourceTask]
) -> None:
    database = MariadbDatabase(mariadb)
    database.run("CREATE TABLE items (id INTEGER PRIMARY KEY, span TIME)")
    database.run("INSERT INTO items VALUES (1, '01:00:00'), (2, '200:00:00'), (3, '02:00:00')")
    context = FakeSourceContext()
    task = started(tasks, database, context, mode="incrementing")
    assert column(read(task), "id") == [1, 3]
    assert [(report.offset, "within a day" in str(report.error)) for report in context.reported] == [
        ({"incrementing": 2}, True)
    ]


@pytest.mark.parametrize(
    "mapping, wanted",
    [
        ("none", [data.DECIMAL_NAME, data.DECIMAL_NAME, data.DECIMAL_NAME]),
        ("best_fit", [Type.INT16, Type.FLOAT64, data.DECIMAL_NAME]),
        ("best_fit_eager_double", [Type.INT16, Type.FLOAT64, data.DECIMAL_NAME]),
        ("precision_only", [Type.INT16, data.DECIMAL_NAME, data.DECIMAL_NAME]),
    ],
)
def test_decimals_are_mapped_as_the_operator_says(
    postgres: PostgresServer, tasks: list[SqlSourceTask], mapping: str, wanted: list[str]
) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE items (whole numeric(4), price numeric(8,2), long numeric(25))")
    database.run("INSERT INTO items VALUES (1234, 1.5, 1)")
    record = started(tasks, database, mode="bulk", numeric_mapping=mapping).poll()[0]
    assert record.value_schema is not None
    assert [field.schema.name or field.schema.type for field in record.value_schema.fields] == wanted
    assert record.value["whole"] == 1234


def test_a_big_table_is_streamed(database: SqlDatabase, tasks: list[SqlSourceTask]) -> None:
    items(database, [(n, moment(n)) for n in range(20_000)])
    task = started(tasks, database, mode="incrementing", batch_max_rows="1000")
    started_at = time.monotonic()
    sizes = [len(task.poll()) for _ in range(20)]
    assert sizes == [1000] * 20
    assert time.monotonic() > started_at
