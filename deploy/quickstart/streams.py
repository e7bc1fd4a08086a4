"""Steps about SQL over topics: a table that keeps up with orders, and counts that become a table of Spark."""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, Final

from core_broker.client.acls import Acl, Operation, PatternType, Permission, ResourceType
from core_broker.client.admin import Admin
from deploy.clients.sql import Json, Session, SqlCallError, SqlClient
from deploy.quickstart import connectors, screen
from deploy.quickstart.addresses import EXAMPLES, path_word, shell_quote
from deploy.quickstart.tour import StepFailed, Tour, ensure, wait_for
from deploy.terminal.output import out
from deploy.terminal.sql.live import LiveView
from deploy.views.sql.entities import command_of, failure_of
from deploy.views.sql.rows import LiveTable, header_columns
from deploy.views.sql.script import How, Part, parts_of
from streams.errors import EngineError
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.sql.language.tree.statements import SetProperty

SINK: Final = "orders-per-hour-to-spark"
_STREAM: Final = EXAMPLES / "sql" / "orders.sql"
_PRICES: Final = EXAMPLES / "sql" / "prices.sql"
_COUNTS: Final = EXAMPLES / "sql" / "orders-per-hour.sql"
_CONNECTOR: Final = EXAMPLES / "sql" / f"{SINK}.json"
_USER: Final = "User:streams"
_EARLIEST: Final = Session(properties={"auto.offset.reset": "earliest"})
_PATIENCE_S: Final = 180.0
"""Spark starts a query within seconds, and has others to fill tables with."""
_PAUSE_S: Final = 0.5
_AVERAGES: Final = {"canoe": 649.0, "lamp": 19.9, "paddle": 39.0, "raft": 899.0, "rope": 12.5, "tent": 189.0}
"""What an item costs in the orders of every tour."""
_COUNTRIES: Final = "SELECT country, count(*) FROM orders GROUP BY country"
"""The same counts by the table that has every order."""
_NOT_YET: Final = ("TABLE_OR_VIEW_NOT_FOUND", "must be the folder of a delta table")
"""What Spark says of a table before its first rows are written."""
_HOURS: Final = (
    "SELECT goes_to, sum(orders) AS orders, round(sum(revenue), 2) AS revenue FROM orders_per_hour "
    "GROUP BY goes_to ORDER BY goes_to"
)


def prices_by_hand(tour: Tour) -> list[str]:
    """The commands of `prices`."""
    return [*_allow_by_hand(tour), _sql_by_hand(tour, _STREAM), _sql_by_hand(tour, _PRICES)]


def prices(tour: Tour) -> None:
    """Declare the stream, and watch average prices until all orders of the tour are in them."""
    _allow(tour)
    (part,) = (part for part in _parts(_PRICES) if part.how is How.PUSH)
    with tour.addresses.sql_client() as client:
        _run(client, _STREAM, tour)
        try:
            with client.rows(f"{part.text};", _EARLIEST, idle_seconds=_PATIENCE_S) as items:
                found = _watch(items)
        except SqlCallError as error:
            raise StepFailed(f"the query ended: {error}", log=tour.addresses.logs.get("streams")) from error
    screen.success("average prices, as they are after the last order:")
    screen.rows(["item", "average_price#"], sorted(found.items()))
    screen.remark("with the command above: a table that keeps up with the orders, until Ctrl-C")


def counts_by_hand(tour: Tour) -> list[str]:
    """The commands of `counts`."""
    create = f"connector create {path_word(tour.addresses.folder / _CONNECTOR.name)} --replace"
    return [
        _sql_by_hand(tour, _COUNTS),
        tour.addresses.caudal(create, "connect"),
        tour.addresses.caudal(f"spark sql {shell_quote(_HOURS)}", "spark"),
    ]


def counts(tour: Tour) -> None:
    """Count the orders of each hour, and find the counts in a table of Spark."""
    with screen.progress("the query starts"), tour.addresses.sql_client() as client:
        _run(client, _COUNTS, tour)
    with tour.addresses.connect_client() as client:
        client.put_config(SINK, connectors.written_config(tour, _CONNECTOR)["config"])
        connectors.wait_until_running(client, SINK, tour.addresses)
    engine = Engine.running(SparkSettings.parse({"spark.caudal.data.dir": str(tour.addresses.spark_data)}))
    ensure(engine is not None, "Spark does not run any more", log=tour.addresses.spark_log)
    assert engine is not None
    with engine, screen.progress("waiting for rows in Spark"):
        wanted = {row[0]: row[1] for row in _rows(engine, _COUNTRIES)}
        rows = wait_for(
            lambda: _rows(engine, _HOURS),
            lambda rows: {row[0]: row[1] for row in rows} == wanted,
            otherwise="the orders of each country are not in the table of Spark",
            log=tour.addresses.logs.get("streams"),
            patience_s=_PATIENCE_S,
            pause_s=_PAUSE_S,
        )
    screen.success("orders by country, kept up to date by SQL, in a table of Spark:")
    screen.rows(["goes_to", "orders#", "revenue#"], rows)
    screen.remark("the topic orders-per-hour has the same, for every client of Kafka")


def _watch(items: Iterator[Json]) -> dict[str, float]:
    """The average prices of a push query, once they have all items; on a terminal they are shown as they come."""
    with screen.progress("the query starts"):
        columns = header_columns(next(items, {}).get("header") or {})
        first = next(items, {})
    places = {column.name: place for place, column in enumerate(columns)}
    item, price = places.get("ITEM"), places.get("AVERAGE_PRICE")
    ensure(item is not None and price is not None, f"the columns of the result are others: {list(places)}")
    assert item is not None
    assert price is not None
    found: dict[str, float] = {}
    view = LiveView(columns, LiveTable((item,)), wraps=True) if out.is_terminal else None
    with view or nullcontext():
        for row in _columns_of(first, items):
            if view is not None:
                view.add(row)
            found[str(row[item])] = round(float(row[price]), 2)
            if all(found.get(name) == average for name, average in _AVERAGES.items()):
                return found
    raise StepFailed(f"the query ended with other averages: {found}")


def _columns_of(first: Json, items: Iterator[Json]) -> Iterator[Sequence[Any]]:
    for one in chain((first,), items):
        if "row" in one:
            yield one["row"]["columns"]


def _run(client: SqlClient, file: Path, tour: Tour) -> None:
    """Run the statements of a file, each to its end."""
    for part in _parts(file):
        if part.how is not How.COMMAND or isinstance(part.statement, SetProperty):
            continue
        try:
            for answer in client.execute(f"{part.text};", _EARLIEST):
                _wait_for_command(client, answer)
        except SqlCallError as error:
            raise StepFailed(f"{file.name}: {error}", log=tour.addresses.logs.get("streams")) from error


def _wait_for_command(client: SqlClient, answer: Json) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while (command := command_of(answer)) is not None:
        ensure(time.monotonic() < deadline, f"{command} has not ended within {_PATIENCE_S:.0f} s")
        time.sleep(_PAUSE_S)
        answer = {**answer, "commandStatus": client.command_status(command)}
    reason = failure_of(answer)
    ensure(reason is None, str(reason))


def _rows(engine: Engine, statement: str) -> list[Any]:
    try:
        answer: Any = engine.call("sql", statement=statement, limit=100)
    except EngineError as error:
        if any(sign in str(error) for sign in _NOT_YET):
            return []
        raise
    rows: list[Any] = answer["rows"]
    return rows


def _parts(file: Path) -> list[Part]:
    return list(parts_of(file.read_text(encoding="utf-8"), {}))


def _sql_by_hand(tour: Tour, file: Path) -> str:
    return tour.addresses.caudal(f"sql {path_word(file)}", "streams")


# --- a secured platform: all callers of streams may do what streams itself may do, which is nothing at first ---


def _allow_by_hand(tour: Tour) -> list[str]:
    if tour.addresses.client_config is None:
        return []
    return [tour.addresses.caudal(f"acl allow {_USER} all --topic orders --prefixed", "cluster")]


def _allow(tour: Tour) -> None:
    if tour.addresses.client_config is None:
        return
    rule = Acl(
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        pattern_type=PatternType.PREFIXED,
        principal=_USER,
        host="*",
        operation=Operation.ALL,
        permission=Permission.ALLOW,
    )
    Admin(tour.addresses.cluster()).security.create_acls([rule])
