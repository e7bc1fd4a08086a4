"""The steps of the tour, as data; running them, and the summary at the end."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import httpx2

from core_broker.client.errors import ClientError
from deploy.clients.connect import ConnectCallError
from deploy.clients.failures import explain
from deploy.clients.sql import SqlCallError
from deploy.quickstart import connectors, events, failover, letters, schemas, screen, streams, tables
from deploy.quickstart.addresses import EXAMPLES, PlatformAddresses, program, relative
from deploy.quickstart.tour import StepFailed, Tour
from deploy.terminal.output import failure
from schema_registry.client.errors import ClientError as RegistryClientError
from streams.errors import StreamsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is shown."""

    title: str
    says: str
    """What it does, in a line."""
    by_hand: Callable[[Tour], Sequence[str]]
    """The commands that do the same."""
    run: Callable[[Tour], None]
    """Do it, check what came of it, and show that; raises `StepFailed`, or what clients raise."""
    needs_spark: bool = False
    needs_cluster: bool = False
    """Whether it kills brokers of a platform that was started for the tour."""


STEPS: Final = (
    Step(
        title="Describe the events",
        says="Creates topics for orders and payments, and registers their schemas: Avro and Protobuf.",
        by_hand=schemas.register_by_hand,
        run=schemas.register,
    ),
    Step(
        title="Connect topics with tables",
        says="Creates the shop's database, and sinks from JSON files in Kafka Connect's format.",
        by_hand=connectors.create_by_hand,
        run=connectors.create,
    ),
    Step(
        title="Send events over HTTP",
        says="Posts orders and payments as JSON to the REST proxy, which encodes them by their schemas; two are bad.",
        by_hand=events.produce_by_hand,
        run=events.produce,
    ),
    Step(
        title="Watch a SQL table fill",
        says="Each order becomes a row in SQLite; PostgreSQL and MySQL take the same configuration.",
        by_hand=tables.sql_by_hand,
        run=tables.sql,
    ),
    Step(
        title="Watch Spark tables fill",
        says="The same orders are rows of a Spark table, exactly once, and SQL joins them with their payments.",
        by_hand=tables.spark_by_hand,
        run=tables.spark,
        needs_spark=True,
    ),
    Step(
        title="Ask with SQL, and watch the answer change",
        says="A query over the topic itself: the average price of each item, right with every order that comes.",
        by_hand=streams.prices_by_hand,
        run=streams.prices,
        needs_spark=True,
    ),
    Step(
        title="Count orders by the hour",
        says="SQL keeps a table up to date in a topic, exactly once, and a sink makes a table of Spark of it.",
        by_hand=streams.counts_by_hand,
        run=streams.counts,
        needs_spark=True,
    ),
    Step(
        title="Look at what went wrong",
        says="Records that a connector cannot process go to a dead-letter topic, with the reason in their headers.",
        by_hand=letters.look_by_hand,
        run=letters.look,
    ),
    Step(
        title="Try to break the contract",
        says="A new version of the schema must be able to read the existing orders; this one cannot.",
        by_hand=schemas.refuse_by_hand,
        run=schemas.refuse,
    ),
    Step(
        title="Repair, and send it again",
        says="The shop now delivers to Iceland: the dead letter goes through its connector once more.",
        by_hand=letters.redrive_by_hand,
        run=letters.redrive,
    ),
    Step(
        title="Kill a broker",
        says="Every partition has three replicas: others lead as soon as a broker counts as dead; clients only wait.",
        by_hand=failover.survive_by_hand,
        run=failover.survive,
        needs_cluster=True,
    ),
)


def steps_of(tour: Tour) -> list[Step]:
    """The steps of a tour: some are for clusters only."""
    return [step for step in STEPS if tour.may_kill_brokers or not step.needs_cluster]


def take(tour: Tour, steps: Sequence[Step]) -> bool:
    """Take the steps of a tour; returns whether all results were right, and stops at the first that was not."""
    for number, step in enumerate(steps, 1):
        screen.heading(f"{number}/{len(steps)}", step.title)
        screen.explanation(step.says)
        if step.needs_spark and tour.spark_problem is not None:
            screen.skipped(f"left out: {tour.spark_problem}")
            continue
        for text in step.by_hand(tour):
            screen.command(text)
        if not _run_step(step, tour, number):
            return False
    return True


def _run_step(step: Step, tour: Tour, number: int) -> bool:
    """Do a step and check it; a failure is shown, with where to read more."""
    log = None
    try:
        step.run(tour)
    except StepFailed as error:
        reason, log = str(error), error.log
    except (ClientError, RegistryClientError, ConnectCallError, SqlCallError, StreamsError) as error:
        reason = explain(error)[0]
    except (httpx2.HTTPError, sqlite3.Error, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        return True
    read_more = "read the logs:  `caudal logs`" if log is None else f"read its log:  `{relative(log)}`"
    failure(f"step {number}, {step.title!r}, failed: {reason}", [read_more])
    return False


def show_result(tour: Tour, *, seconds: float) -> None:
    """Show the result of the tour, and what was left out."""
    steps = steps_of(tour)
    done = [step for step in steps if tour.spark_problem is None or not step.needs_spark]
    text = f"all {len(done)} steps done and checked in {seconds:.0f} s"
    if tour.spark_problem is not None:
        text = f"{len(done)} of {len(steps)} steps done and checked in {seconds:.0f} s; Spark was left out"
    screen.result(text)


def show_next(tour: Tour, *, stays: bool) -> None:
    """Show what to do next: with this platform if it keeps running, else with a new one."""
    if stays:
        _show_platform(tour.addresses)
    else:
        screen.section("Next")
        screen.pairs(
            [
                ("start a platform", f"{program()} up"),
                ("take this tour on it", f"{program()} quickstart"),
            ],
            indent=screen.NEAR,
        )
    screen.section("Read on")
    screen.pairs(
        [("all of it by hand", relative(EXAMPLES / "README.md")), ("every command", f"{program()} --help")],
        indent=screen.NEAR,
    )
    screen.blank()


def _show_platform(addresses: PlatformAddresses) -> None:
    screen.section("The platform keeps running")
    screen.pairs(
        [
            ("its state", addresses.caudal("status", "platform")),
            ("orders as they come", addresses.caudal("topic consume orders --follow", "cluster")),
            ("connectors", addresses.caudal("connector list", "connect")),
            ("ask with SQL", addresses.caudal("sql", "streams")),
            ("tables of Spark", addresses.caudal("spark tables", "spark")),
            ("APIs to read and to try", f"{addresses.proxy}/docs  {addresses.connect}/docs"),
            ("stop it", addresses.caudal("down", "platform")),
        ],
        indent=screen.NEAR,
    )
    screen.section("In a notebook")
    screen.code(
        f"export SPARK_CONNECT_AUTHENTICATE_TOKEN=$({addresses.caudal('spark token', 'spark')})",
        "from pyspark.sql import SparkSession",
        f'spark = SparkSession.builder.remote("sc://localhost:{addresses.spark_port}").getOrCreate()',
        'spark.table("orders").show()',
    )
