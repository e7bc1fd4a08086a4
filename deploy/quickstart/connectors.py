"""The step that creates connectors, from the files of the examples."""

import json
import sqlite3
import time
from contextlib import closing
from typing import Any, Final

from deploy.clients.connect import ConnectClient, ConnectorNotFound
from deploy.quickstart import screen
from deploy.quickstart.places import Places, example, quoted, shown
from deploy.quickstart.tour import StepFailed, Tour, awaited
from deploy.views.connectors import Verdict, failures, verdict
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine

SQL: Final = "orders-to-sql"
SPARK: Final = "orders-to-spark"
_SPARK_SINKS: Final = (SPARK, "payments-to-spark")
_TIMEOUT_S: Final = 30.0
_STARTING_S: Final = 300.0


def create_by_hand(tour: Tour) -> list[str]:
    """The commands of `create`."""
    shop = f"sqlite3 {quoted(shown(tour.places.shop))} < {shown(example('shop.sql'))}"
    creations = (
        f"connector create {quoted(shown(tour.places.folder / f'{name}.json'))} --replace" for name in _names(tour)
    )
    return [shop, *(tour.places.caudal(words, "connect") for words in creations)]


def create(tour: Tour) -> None:
    """Make the shop's database, and create the connectors."""
    with closing(sqlite3.connect(tour.places.shop)) as shop:
        shop.executescript(example("shop.sql").read_text(encoding="utf-8"))
    if tour.spark_problem is None and not _spark_runs(tour.places):
        tour.spark_since = time.monotonic()
    states = []
    with ConnectClient(tour.places.connect, timeout_seconds=_TIMEOUT_S) as client:
        for name in _names(tour):
            client.put_config(name, _configured(tour.places, name))
        wait_until_running(client, SQL, tour.places)
        for name in _names(tour):
            status = client.status(name)
            states.append((name, status["type"], status["connector"]["state"], status["connector"]["worker_id"]))
    screen.checked("created:")
    screen.rows(["connector", "kind", "state", "worker"], states)
    if tour.spark_problem is not None:
        screen.skipped("no Spark sinks: see below")
    elif tour.spark_since is not None:
        screen.remark("Spark starts now, since it is needed for the first time")


def wait_until_running(client: ConnectClient, name: str, places: Places) -> None:
    """Wait until a connector and its tasks run; raises `StepFailed` with the reason."""

    def look() -> Verdict:
        try:
            status = client.status(name)
        except ConnectorNotFound:
            return "waiting"  # its first status is not written yet
        for _, reason in failures(status):
            raise StepFailed(f"{name} has failed: {reason}", log=places.logs.get("connect"))
        return verdict(status)

    awaited(
        look,
        lambda found: found == "running",
        otherwise=f"{name} does not run",
        log=places.logs.get("connect"),
        patience_s=_STARTING_S,
    )


def _spark_runs(places: Places) -> bool:
    engine = Engine.running(SparkSettings.parse({"spark.caudal.data.dir": str(places.spark_data)}))
    if engine is not None:
        engine.close()
    return engine is not None


def _configured(places: Places, name: str) -> dict[str, Any]:
    """A configuration of the examples with this platform's addresses; also written to a file, to be used by hand."""
    text = places.filled(example(f"connectors/{name}.json").read_text(encoding="utf-8"))
    places.folder.mkdir(parents=True, exist_ok=True)
    (places.folder / f"{name}.json").write_text(text, encoding="utf-8")
    config: dict[str, Any] = json.loads(text)["config"]
    return config


def _names(tour: Tour) -> tuple[str, ...]:
    return (SQL, *(_SPARK_SINKS if tour.spark_problem is None else ()))
