"""The SQL sink against real servers, driven as a worker drives it."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.testing.contexts import FakeSinkContext
from connect.testing.samples import sink_record
from connectors.sql.sink import SqlSinkConnector, SqlSinkTask
from tests.support.mariadb import MariadbServer, running_mariadb
from tests.support.postgres import PostgresServer, running_server
from tests.support.sql_databases import (
    MariadbDatabase,
    PostgresDatabase,
    SqlDatabase,
    SqliteDatabase,
    mariadb_database,
    postgres_database,
)

# PyMySQL leaves its socket to the collector when a server that listens on a unix socket is away.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")

ORDER = data.struct({"id": data.INT64, "name": data.OPTIONAL_STRING}, name="Order")


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
def tasks() -> Iterator[list[SqlSinkTask]]:
    running: list[SqlSinkTask] = []
    yield running
    for task in running:
        task.stop()


def started(
    tasks: list[SqlSinkTask], database: SqlDatabase, context: FakeSinkContext | None = None, /, **options: str
) -> SqlSinkTask:
    given = {"connection.url": database.url, "connection.attempts": "1", "retry.backoff.ms": "10"}
    given |= {key.replace("_", "."): value for key, value in options.items()}
    config = SqlSinkConnector.config_class.parse(given)
    task = SqlSinkTask(config, context or FakeSinkContext([("orders", 0)]))
    tasks.append(task)
    task.start()
    task.open([("orders", 0)])
    return task


def order(offset: int, value: Value, *, schema: Schema | None = None, key: Any = None) -> SinkRecord:
    key_schema = None if key is None else data.STRING
    return sink_record("orders", offset, value=value, value_schema=schema, key=key, key_schema=key_schema)


UPSERT = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"}


def test_the_last_record_of_a_key_wins(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    task = started(tasks, database, auto_create="true", **UPSERT)
    schema = data.struct({"n": data.INT32})
    task.put([order(n, {"n": n}, schema=schema, key="a" if n % 2 else "b") for n in range(10)])
    assert database.rows("SELECT id, n FROM orders ORDER BY id") == [{"id": "a", "n": 9}, {"id": "b", "n": 8}]


def test_deletes_and_upserts_of_a_batch_happen_in_their_order(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    task = started(tasks, database, auto_create="true", **UPSERT)
    schema = data.struct({"n": data.OPTIONAL_INT32, "m": data.OPTIONAL_INT32})
    task.put([order(0, {"n": 1, "m": 1}, schema=schema, key=key) for key in "abc"])
    task.put(
        [
            order(1, None, key="a"),
            order(2, {"n": 2}, schema=schema, key="a"),
            order(3, {"n": 2}, schema=schema, key="b"),
            order(4, None, key="b"),
        ]
    )
    found = database.rows("SELECT id, n, m FROM orders ORDER BY id")
    assert found == [{"id": "a", "n": 2, "m": None}, {"id": "c", "n": 1, "m": 1}]


def test_plain_dicts_change_only_the_columns_they_have(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    database.run("CREATE TABLE orders (id VARCHAR(20) PRIMARY KEY, n INTEGER, note VARCHAR(20))")
    task = started(tasks, database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    task.put([order(0, {"id": "a", "n": 1, "note": "x"}), order(1, {"id": "a", "n": 2}), order(2, {"id": "b"})])
    task.put([order(3, {"id": "b", "note": "y"})])
    found = database.rows("SELECT id, n, note FROM orders ORDER BY id")
    assert found == [{"id": "a", "n": 2, "note": "x"}, {"id": "b", "n": None, "note": "y"}]


def test_a_table_is_created_from_plain_dicts(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    task = started(tasks, database, auto_create="true", auto_evolve="true", pk_mode="record_value", pk_fields="id")
    task.put(
        [
            order(0, {"id": 1, "price": 2, "later": None, "inner": {"a": [1, None]}}),
            order(1, {"id": 2, "price": 2.5, "later": None, "inner": None}),
        ]
    )
    task.put([order(2, {"id": 3, "price": 3.5, "later": "now", "inner": None})])
    found = database.rows("SELECT id, price, later FROM orders ORDER BY id")
    assert found == [
        {"id": 1, "price": 2, "later": None},
        {"id": 2, "price": 2.5, "later": None},
        {"id": 3, "price": 3.5, "later": "now"},
    ]


def test_columns_are_added_for_new_fields_and_old_records_still_fit(
    database: SqlDatabase, tasks: list[SqlSinkTask]
) -> None:
    task = started(tasks, database, auto_create="true", auto_evolve="true", pk_mode="record_value", pk_fields="id")
    newer = data.struct({"id": data.INT64, "state": data.STRING.but(default="it's new")})
    task.put([order(0, {"id": 1, "name": "a"}, schema=ORDER)])
    task.put([order(1, {"id": 2}, schema=newer), order(2, {"id": 3, "name": "c"}, schema=ORDER)])
    found = database.rows("SELECT id, name, state FROM orders ORDER BY id")
    assert [row["state"] for row in found] == ["it's new"] * 3
    assert [row["name"] for row in found] == ["a", None, "c"]


def test_a_field_that_must_have_a_value_cannot_be_added(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    task = started(tasks, database, auto_create="true", auto_evolve="true")
    task.put([order(0, {"id": 1}, schema=ORDER)])
    strict = data.struct({"id": data.INT64, "state": data.STRING})
    with pytest.raises(DataError, match="not optional and does not have a default value"):
        task.put([order(1, {"id": 2, "state": "x"}, schema=strict)])


def test_a_field_without_a_column_is_refused_not_dropped(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    database.run("CREATE TABLE orders (id INTEGER)")
    task = started(tasks, database)
    with pytest.raises(DataError, match="missing fields"):
        task.put([order(0, {"id": 1, "name": "a"})])
    with pytest.raises(DataError, match="missing fields"):
        task.put([order(0, {"id": 1, "name": "a"}, schema=ORDER)])
    task.put([order(1, {"id": 2, "name": None})])
    lenient = started(tasks, database, unknown_fields="ignore")
    lenient.put([order(2, {"id": 3, "name": "a"}), order(3, {"id": 4, "name": "a"}, schema=ORDER)])
    assert [row["id"] for row in database.rows("SELECT id FROM orders ORDER BY id")] == [2, 3, 4]


def test_a_table_that_is_missing_is_the_operators_concern(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    with pytest.raises(ConfigError, match="orders is missing and auto-creation is disabled"):
        started(tasks, database).put([order(0, {"id": 1})])


def test_a_put_that_fails_leaves_nothing_behind(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    database.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(5) NOT NULL)")
    task = started(tasks, database, batch_size="3")
    with pytest.raises(DataError):
        task.put([order(n, {"id": n, "name": None if n == 7 else "x"}) for n in range(10)])
    assert database.rows("SELECT * FROM orders") == []
    task.put([order(n, {"id": n, "name": "x"}) for n in range(10)])
    assert len(database.rows("SELECT * FROM orders")) == 10


def test_a_row_that_is_there_already_is_bad_data_in_insert_mode(
    database: SqlDatabase, tasks: list[SqlSinkTask]
) -> None:
    database.run("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    task = started(tasks, database)
    task.put([order(0, {"id": 1})])
    with pytest.raises(DataError):
        task.put([order(1, {"id": 2}), order(2, {"id": 1})])
    assert database.rows("SELECT id FROM orders") == [{"id": 1}]


def test_updates_change_only_rows_that_exist(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    database.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(20), other INTEGER DEFAULT 5)")
    database.run("INSERT INTO orders (id, name) VALUES (1, 'a'), (2, 'b')")
    task = started(tasks, database, insert_mode="update", pk_mode="record_value", pk_fields="id")
    task.put([order(0, {"id": 1, "name": "x"}, schema=ORDER), order(1, {"id": 9, "name": "y"}, schema=ORDER)])
    found = database.rows("SELECT id, name, other FROM orders ORDER BY id")
    assert found == [{"id": 1, "name": "x", "other": 5}, {"id": 2, "name": "b", "other": 5}]


def test_the_place_in_kafka_is_the_key(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    task = started(tasks, database, auto_create="true", insert_mode="upsert", pk_mode="kafka")
    for _ in range(2):
        task.put([order(n, {"id": n}, schema=ORDER) for n in range(3)])
    found = database.rows("SELECT * FROM orders ORDER BY id")
    assert [row["__connect_offset"] for row in found] == [0, 1, 2]
    assert {row["__connect_topic"] for row in found} == {"orders"}


def test_names_with_quotes_percents_and_spaces(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    odd = 'a "b" (c) %s é'
    schema = data.struct({"id": data.INT64, odd: data.STRING})
    task = started(tasks, database, auto_create="true", insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    task.put([order(0, {"id": 1, odd: "100%"}, schema=schema)])
    task.put([order(1, {"id": 1, odd: "50% o'clock \\"}, schema=schema)])
    assert database.rows("SELECT * FROM orders") == [{"id": 1, odd: "50% o'clock \\"}]


def test_two_tasks_add_the_same_column_at_once(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    started(tasks, database, auto_create="true").put([order(0, {"id": 0}, schema=ORDER)])
    schema = data.struct({"id": data.INT64, **{f"more_{n}": data.OPTIONAL_INT32 for n in range(5)}})
    racers = [started(tasks, database, auto_evolve="true") for _ in range(4)]
    for racer in racers:
        racer.put([order(1, {"id": 1}, schema=ORDER)])  # each knows the table as it was
    failures: list[Exception] = []

    def put(task: SqlSinkTask) -> None:
        for _ in range(50):
            try:
                return task.put([order(2, {"id": 2, "more_3": 3}, schema=schema)])
            except RetriableError:
                continue
            except Exception as error:  # noqa: BLE001
                failures.append(error)
                return None
        return failures.append(TimeoutError("it never came through"))

    threads = [Thread(target=put, args=(racer,)) for racer in racers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(database.rows("SELECT more_3 FROM orders WHERE id = 2")) == 4


def test_a_column_that_comes_behind_our_back_is_seen(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    database.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    task = started(tasks, database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    task.put([order(0, {"id": 1, "name": "a"}, schema=ORDER)])
    database.run("DROP TABLE orders")
    database.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(20), extra INTEGER)")
    task.put([order(1, {"id": 2, "name": "b"}, schema=ORDER)])
    assert database.rows("SELECT id, name FROM orders") == [{"id": 2, "name": "b"}]


def test_tasks_that_get_in_each_others_way_are_told_to_try_again(
    database: SqlDatabase, tasks: list[SqlSinkTask]
) -> None:
    database.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20))")
    rivals = [started(tasks, database, insert_mode="upsert", pk_mode="record_value", pk_fields="id") for _ in range(2)]
    errors: list[Exception] = []

    def put(task: SqlSinkTask, numbers: range) -> None:
        records = [order(n, {"id": n, "name": "x"}, schema=ORDER) for n in numbers]
        for _ in range(4):
            for _ in range(100):
                try:
                    task.put(records)
                    break
                except RetriableError:
                    continue
                except Exception as error:  # noqa: BLE001
                    errors.append(error)
                    return

    threads = [
        Thread(target=put, args=(rivals[0], range(300))),
        Thread(target=put, args=(rivals[1], range(299, -1, -1))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(database.rows("SELECT id FROM orders")) == 300


# --- exactly once ---


def test_a_task_goes_on_where_the_database_says(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    context = FakeSinkContext([("orders", 0)])
    first = started(tasks, database, context, auto_create="true", exactly_once="true")
    assert context.rewound == {}
    first.put([order(n, {"id": n}, schema=ORDER) for n in range(5)])
    again = FakeSinkContext([("orders", 0)])
    started(tasks, database, again, exactly_once="true")
    assert again.rewound == {("orders", 0): 5}


def test_a_task_that_has_lost_its_partition_writes_nothing(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    zombie = started(tasks, database, auto_create="true", exactly_once="true")
    zombie.put([order(0, {"id": 0}, schema=ORDER)])
    owner = started(tasks, database, exactly_once="true")
    with pytest.raises(RetriableError, match="another task has taken over"):
        zombie.put([order(1, {"id": 1}, schema=ORDER)])
    owner.put([order(1, {"id": 1}, schema=ORDER)])
    assert [row["id"] for row in database.rows("SELECT id FROM orders ORDER BY id")] == [0, 1]


def test_partitions_that_come_during_an_outage_are_claimed_after_it(
    database: SqlDatabase, tasks: list[SqlSinkTask]
) -> None:
    started(tasks, database, auto_create="true", exactly_once="true").put(
        [order(n, {"id": n}, schema=ORDER) for n in range(3)]
    )
    context = FakeSinkContext([("orders", 0)])
    database.break_down()
    try:
        task = started(tasks, database, context, exactly_once="true")
        with pytest.raises(RetriableError):
            task.put([order(0, {"id": 0}, schema=ORDER)])
    finally:
        database.mend()
    task.put([order(0, {"id": 0}, schema=ORDER)])
    assert context.rewound == {("orders", 0): 3}
    task.put([order(3, {"id": 3}, schema=ORDER)])
    assert [row["id"] for row in database.rows("SELECT id FROM orders ORDER BY id")] == [0, 1, 2, 3]


def test_plain_dicts_of_one_batch_may_have_different_keys(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    database.run("CREATE TABLE orders (a INTEGER UNIQUE, b INTEGER UNIQUE)")
    task = started(tasks, database, insert_mode="upsert", pk_mode="record_key")
    keys = [{"a": 1}, {"b": 2}, {"a": 1}]
    task.put([sink_record("orders", n, key=key, value=dict(key)) for n, key in enumerate(keys)])
    found = database.rows("SELECT a, b FROM orders")
    assert sorted(found, key=str) == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_a_commit_of_unknown_end_is_looked_up_not_repeated(database: SqlDatabase, tasks: list[SqlSinkTask]) -> None:
    task = started(tasks, database, auto_create="true", exactly_once="true")
    records = [order(n, {"id": n}, schema=ORDER) for n in range(4)]
    task.put(records[:2])
    task.put(records[2:])
    assert task._offsets is not None
    task._offsets._next = {("orders", 0): 2}  # as after a commit whose answer was lost
    task._offsets.mark_unsure()
    task.put(records[2:])
    assert len(database.rows("SELECT id FROM orders")) == 4
    task.put([order(0, {"id": 100}, schema=ORDER)])  # an old record that somebody sends again on purpose
    assert len(database.rows("SELECT id FROM orders")) == 5
    assert database.rows("SELECT * FROM connect_offsets")[0]["offset"] == 4


# --- PostgreSQL alone ---


def test_types_of_postgresql_are_made_and_filled(postgres: PostgresServer, tasks: list[SqlSinkTask]) -> None:
    database = PostgresDatabase(postgres)
    moment = datetime(2024, 2, 29, 12, 30, 15, 123_000, tzinfo=UTC)
    fields: dict[str, tuple[Schema, Value, str]] = {
        "id": (data.INT64, 1, "bigint"),
        "flag": (data.BOOLEAN, True, "boolean"),
        "price": (data.decimal(2), Decimal("1.50"), "numeric"),
        "day": (data.DATE, date(2024, 2, 29), "date"),
        "at": (data.TIME, time(1, 2, 3), "time without time zone"),
        "moment": (data.TIMESTAMP, moment, "timestamp without time zone"),
        "raw": (data.BYTES, b"\x00\xff", "bytea"),
        "tags": (data.array(data.STRING), ["a", 'b"c', "d,e"], "ARRAY"),
        "inner": (data.struct({"a": data.INT32, "b": data.array(data.INT32)}), {"a": 1, "b": [2]}, "jsonb"),
        "uuid": (
            data.STRING.but(name="io.debezium.data.Uuid"),
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "uuid",
        ),
        "micros": (
            data.INT64.but(name="io.debezium.time.MicroTimestamp"),
            1_709_209_815_123_456,
            "timestamp without time zone",
        ),
    }
    schema = data.struct({name: parts[0] for name, parts in fields.items()})
    task = started(tasks, database, auto_create="true", insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    task.put([order(0, {name: parts[1] for name, parts in fields.items()}, schema=schema)])
    query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'orders'"
    types = {row["column_name"]: row["data_type"] for row in database.rows(query)}
    assert types == {name: parts[2] for name, parts in fields.items()}
    row = database.rows("SELECT * FROM orders")[0]
    assert row["tags"] == ["a", 'b"c', "d,e"]
    assert row["inner"] == {"a": 1, "b": [2]}
    assert row["moment"] == moment.replace(tzinfo=None)
    assert row["micros"] == datetime(2024, 2, 29, 12, 30, 15, 123_456)  # noqa: DTZ001
    assert (row["price"], row["day"], row["at"], bytes(row["raw"])) == (
        Decimal("1.50"),
        date(2024, 2, 29),
        time(1, 2, 3),
        b"\x00\xff",
    )


def test_plain_json_is_mapped_to_what_the_columns_are(postgres: PostgresServer, tasks: list[SqlSinkTask]) -> None:
    database = PostgresDatabase(postgres)
    database.run(
        "CREATE TABLE orders (id uuid PRIMARY KEY, at timestamptz, local timestamp, doc jsonb, tags text[], "
        "n numeric(10,2), flag boolean, day date, note text, mood text)"
    )
    task = started(
        tasks, database, insert_mode="upsert", pk_mode="record_value", pk_fields="id", db_timezone="Europe/Madrid"
    )
    key = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    value = {
        "id": key,
        "at": "2024-07-01T10:00:00Z",
        "local": 1_719_828_000_000,
        "doc": {"a": 1},
        "tags": ["x"],
        "n": "12.50",
        "flag": 1,
        "day": 19_905,
        "note": True,
        "MOOD": {"b": [1]},
    }
    task.put([order(0, value)])
    row = database.rows("SELECT at, local, doc, tags, n, flag, day, note, mood FROM orders")[0]
    assert row["at"] == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert row["local"] == datetime(2024, 7, 1, 12)  # noqa: DTZ001 - ten in UTC is noon in Madrid
    assert (row["doc"], row["tags"], row["n"]) == ({"a": 1}, ["x"], Decimal("12.50"))
    assert (row["flag"], row["day"], row["note"], row["mood"]) == (True, date(2024, 7, 1), "true", '{"b":[1]}')


def test_a_user_who_may_not_make_temporary_tables_still_upserts(
    postgres: PostgresServer, tasks: list[SqlSinkTask]
) -> None:
    database = PostgresDatabase(postgres)
    name = database.rows("SELECT current_database() AS name")[0]["name"]
    database.run("CREATE TABLE orders (id bigint PRIMARY KEY, name text)")
    database.run(f"CREATE ROLE plain_{name} LOGIN")
    database.run(f"GRANT ALL ON orders TO plain_{name}")
    database.run(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    task = started(
        tasks,
        database,
        insert_mode="upsert",
        pk_mode="record_value",
        pk_fields="id",
        connection_user=f"plain_{name}",
    )
    for state in ("old", "new"):
        task.put([order(n, {"id": n, "name": state}, schema=ORDER) for n in range(3)])
    assert {row["name"] for row in database.rows("SELECT name FROM orders")} == {"new"}


def test_a_lock_of_somebody_else_is_not_the_records_fault(postgres: PostgresServer, tasks: list[SqlSinkTask]) -> None:
    database = PostgresDatabase(postgres)
    name = database.rows("SELECT current_database() AS name")[0]["name"]
    database.run("CREATE TABLE orders (id bigint PRIMARY KEY, name text)")
    database.run(f"ALTER DATABASE {name} SET lock_timeout = '100ms'")
    task = started(tasks, database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    with database.session() as other:
        other.exec_driver_sql("LOCK TABLE orders IN EXCLUSIVE MODE")
        with pytest.raises(RetriableError):
            task.put([order(0, {"id": 0, "name": "a"}, schema=ORDER)])
    task.put([order(0, {"id": 0, "name": "a"}, schema=ORDER)])
    assert len(database.rows("SELECT * FROM orders")) == 1


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_server_that_is_killed_in_the_middle_of_a_put_loses_and_doubles_nothing(
    tasks: list[SqlSinkTask], kind: str
) -> None:
    with ExitStack() as stack:
        server: PostgresServer | MariadbServer
        database: SqlDatabase
        if kind == "postgresql":
            server = stack.enter_context(running_server())
            database = PostgresDatabase(server)
        else:
            server = stack.enter_context(running_mariadb())
            database = MariadbDatabase(server)
        options = {"auto_create": "true", "exactly_once": "true"}
        task = started(tasks, database, **options)
        records = [order(n, {"id": n, "name": "x" * 50}, schema=ORDER) for n in range(6_000)]
        batches = [records[start : start + 300] for start in range(0, 6_000, 300)]
        for number, batch in enumerate(batches):
            killer = Thread(target=server.kill) if number in (3, 9, 15) else None
            if killer is not None:
                killer.start()
            while True:
                try:
                    task.put(batch)
                    break
                except RetriableError:
                    if killer is not None:
                        killer.join()
                        killer = None
                        server.start()
            if killer is not None:  # the put was faster
                killer.join()
                server.start()
        found = database.rows("SELECT count(*) AS total, count(DISTINCT id) AS ids FROM orders")[0]
        assert found == {"total": 6_000, "ids": 6_000}
        task.stop()


def test_records_can_be_inserted_into_a_view(postgres: PostgresServer, tasks: list[SqlSinkTask]) -> None:
    database = PostgresDatabase(postgres)
    database.run("CREATE TABLE kept (id bigint, name text)")
    database.run("CREATE VIEW orders AS SELECT id, name FROM kept")
    task = started(tasks, database, table_types="TABLE,VIEW")
    for offset in range(2):
        task.put([order(offset, {"id": offset, "name": "a"}, schema=ORDER)])
    assert [row["id"] for row in database.rows("SELECT id FROM kept ORDER BY id")] == [0, 1]


def test_a_row_that_mariadb_hangs_up_on_is_bad_data_not_an_outage(
    mariadb: MariadbServer, tasks: list[SqlSinkTask]
) -> None:
    database = MariadbDatabase(mariadb)
    database.run("CREATE TABLE orders (id BIGINT, name LONGTEXT)")
    task = started(tasks, database)
    most = database.rows("SELECT @@max_allowed_packet AS most")[0]["most"]
    with pytest.raises(DataError, match="max_allowed_packet"):
        task.put([order(0, {"id": 0, "name": "x" * most}, schema=ORDER)])
    task.put([order(1, {"id": 1, "name": "x"}, schema=ORDER)])
    assert [row["id"] for row in database.rows("SELECT id FROM orders")] == [1]


def test_the_password_is_in_no_error(mariadb: MariadbServer, tasks: list[SqlSinkTask]) -> None:
    database = MariadbDatabase(mariadb)
    task = started(tasks, database, connection_password="hunter2-wrong")
    with pytest.raises(RetriableError) as raised:
        task.put([order(0, {"id": 1})])
    assert "hunter2-wrong" not in str(raised.value)
    assert "secret-of-tests" not in repr(raised.value.__cause__)
