"""The step that creates connectors, from the files of the examples."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from deploy.clients.connect import ConnectClient, ConnectorNotFound
from deploy.quickstart import screen
from deploy.quickstart.addresses import EXAMPLES, PlatformAddresses, path_word, relative
from deploy.quickstart.tour import StepFailed, Tour, wait_for
from deploy.views.connectors import Verdict, failures, verdict
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine

SQL: Final = "orders-to-sql"
SPARK: Final = "orders-to-spark"
_SPARK_SINKS: Final = (SPARK, "payments-to-spark")
_STARTING_S: Final = 300.0


def create_by_hand(tour: Tour) -> list[str]:
    """The commands of `create`."""
    shop = f"sqlite3 {path_word(tour.addresses.shop)} < {relative(EXAMPLES / 'shop.sql')}"
    creations = (
        f"connector create {path_word(tour.addresses.folder / f'{name}.json')} --replace" for name in _names(tour)
    )
    return [shop, *(tour.addresses.caudal(words, "connect") for words in creations)]


def create(tour: Tour) -> None:
    """Make the shop's database, and create the connectors."""
    with closing(sqlite3.connect(tour.addresses.shop)) as shop:
        shop.executescript((EXAMPLES / "shop.sql").read_text(encoding="utf-8"))
    if tour.spark_problem is None:
        engine = Engine.running(SparkSettings.parse({"spark.caudal.data.dir": str(tour.addresses.spark_data)}))
        if engine is None:
            tour.spark_since = time.monotonic()
        else:
            engine.close()
    states = []
    with tour.addresses.connect_client() as client:
        for name in _names(tour):
            client.put_config(name, written_config(tour, EXAMPLES / "connectors" / f"{name}.json")["config"])
        wait_until_running(client, SQL, tour.addresses)
        for name in _names(tour):
            status = client.status(name)
            states.append((name, status["type"], status["connector"]["state"], status["connector"]["worker_id"]))
    screen.success("created:")
    screen.rows(["connector", "kind", "state", "worker"], states)
    if tour.spark_problem is not None:
        screen.skipped("no Spark sinks: see below")
    elif tour.spark_since is not None:
        screen.remark("Spark starts now, on its first use")


def written_config(tour: Tour, example: Path) -> dict[str, Any]:
    """A configuration of the examples with this platform's addresses, which users find as a file."""
    text = tour.addresses.fill_in(example.read_text(encoding="utf-8"))
    if login := tour.addresses.registry_login:
        filled = json.loads(text)
        text = json.dumps({**filled, "config": filled["config"] | login}, indent=2) + "\n"
    tour.addresses.folder.mkdir(parents=True, exist_ok=True)
    (tour.addresses.folder / example.name).write_text(text, encoding="utf-8")
    config: dict[str, Any] = json.loads(text)
    return config


def wait_until_running(client: ConnectClient, name: str, addresses: PlatformAddresses) -> None:
    """Wait until a connector and its tasks run; raises `StepFailed` with the reason."""

    def look() -> Verdict:
        try:
            status = client.status(name)
        except ConnectorNotFound:
            return "waiting"  # its first status is not written yet
        for _, reason in failures(status):
            raise StepFailed(f"{name} has failed: {reason}", log=addresses.logs.get("connect"))
        return verdict(status)

    wait_for(
        look,
        lambda found: found == "running",
        otherwise=f"{name} does not run",
        log=addresses.logs.get("connect"),
        patience_s=_STARTING_S,
    )


def _names(tour: Tour) -> tuple[str, ...]:
    return (SQL, *(_SPARK_SINKS if tour.spark_problem is None else ()))
