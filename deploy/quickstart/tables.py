"""Steps that show tables as they fill: one of a database, and those of Spark."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from deploy.quickstart import connectors, screen
from deploy.quickstart.addresses import path_word, shell_quote
from deploy.quickstart.tour import StepFailed, Tour, ensure, wait_for
from streams.errors import EngineError
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine

_COLUMNS: Final = ("id", "customer", "item", "quantity", "price_cents", "country")
_SPARK_S: Final = 300.0
_SPARK_PAUSE_S: Final = 0.5
"""Each query is a job of Spark, which is busy filling the tables."""
_TIMEOUT_S: Final = 30.0


def sql_by_hand(tour: Tour) -> list[str]:
    """The command of `sql`."""
    statement = f"SELECT * FROM orders WHERE id >= {tour.first_order}"
    return [f"sqlite3 {path_word(tour.addresses.shop)} {shell_quote(statement)}"]


def sql(tour: Tour) -> None:
    """Wait for the orders in the database."""
    wanted = set(tour.good_orders)
    with screen.progress("waiting for rows") as show:
        found = wait_for(
            lambda: _show_count(orders_in_shop(tour), len(wanted), "rows in SQLite", show),
            lambda found: {row[0] for row in found} >= wanted,
            otherwise=f"orders {sorted(wanted)} are not in {tour.addresses.shop}",
            log=tour.addresses.logs.get("connect"),
        )
    ensure({row[0] for row in found} == wanted, f"unexpected orders in {tour.addresses.shop}: {found}")
    screen.success(f"{len(found)} orders are rows of SQLite:")
    screen.rows(_heads(_COLUMNS), found)
    screen.remark(f"order {tour.refused_order} is not among them")


def orders_in_shop(tour: Tour) -> list[tuple[Any, ...]]:
    """The orders of this tour that are in the database."""
    statement = f"SELECT {', '.join(_COLUMNS)} FROM orders WHERE id >= ? ORDER BY id"
    with closing(sqlite3.connect(tour.addresses.shop, timeout=_TIMEOUT_S)) as shop:
        return shop.execute(statement, (tour.first_order,)).fetchall()


def spark_by_hand(tour: Tour) -> list[str]:
    """The command of `spark`."""
    return [tour.addresses.caudal(f"spark sql {shell_quote(_join_query(tour))}", "spark")]


def spark(tour: Tour) -> None:
    """Wait for Spark, and for the orders and their payments in its tables."""
    wanted = {*tour.good_orders, tour.refused_order}
    with screen.progress("Spark starts") as show, _engine(tour, show) as engine:
        since = tour.spark_since
        arrival = "runs" if since is None else f"was ready after {time.monotonic() - since:.1f} s"
        rows = wait_for(
            lambda: _show_count(_rows(engine, tour), len(wanted), "rows in Spark", show),
            lambda rows: {row[0] for row in rows if row[0] == tour.refused_order or row[4] is not None} >= wanted,
            otherwise=f"orders {sorted(wanted)} and their payments are not in the tables of Spark",
            log=tour.addresses.spark_log,
            patience_s=_SPARK_S,
            pause_s=_SPARK_PAUSE_S,
        )
        version, notebooks = engine.info.spark_version, engine.info.connect_url
    ensure(
        sorted(row[0] for row in rows) == sorted(wanted),
        f"some orders are not in the table exactly once: {rows}",
        log=tour.addresses.spark_log,
    )
    screen.success(f"Spark {version} {arrival}, and {len(rows)} orders are rows of its table:")
    screen.rows(_heads(("id", "customer", "item", "country", "method", "amount_cents")), rows)
    screen.remark(f"orders came as Avro, payments as Protobuf; notebooks attach to {notebooks}")


def _engine(tour: Tour, show: screen.Progress) -> Engine:
    """The engine that the connectors have started, once they run."""
    settings = SparkSettings.parse({"spark.caudal.data.dir": str(tour.addresses.spark_data)})
    begun = time.monotonic()

    def running() -> Engine | None:
        show(f"Spark starts, {time.monotonic() - (tour.spark_since or begun):.0f} s")
        return Engine.running(settings)

    found = wait_for(
        running,
        lambda engine: engine is not None,
        otherwise="Spark has not started",
        log=tour.addresses.logs.get("connect"),
        patience_s=_SPARK_S,
    )
    assert found is not None
    with tour.addresses.connect_client() as client:
        connectors.wait_until_running(client, connectors.SPARK, tour.addresses)
    return found


def _rows(engine: Engine, tour: Tour) -> list[Any]:
    try:
        answer: Any = engine.call("sql", statement=_join_query(tour), limit=1000)
    except EngineError as error:
        if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
            return []  # not yet
        raise StepFailed(str(error), log=tour.addresses.spark_log) from error
    rows: list[Any] = answer["rows"]
    return rows


def _join_query(tour: Tour) -> str:
    return (
        "SELECT o.id, o.customer, o.item, o.country, p.method, p.amount_cents "
        f"FROM orders o LEFT JOIN payments p ON p.order_id = o.id WHERE o.id >= {tour.first_order} ORDER BY o.id"
    )


def _show_count(rows: list[Any], count: int, what: str, show: Callable[[str], None]) -> list[Any]:
    show(f"{len(rows)} of {count} {what}")
    return rows


def _heads(columns: tuple[str, ...]) -> list[str]:
    numbers = {"id", "quantity", "price_cents", "amount_cents"}
    return [f"{column}#" if column in numbers else column for column in columns]
