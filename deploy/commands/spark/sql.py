"""`caudal spark`: look at the tables that topics have become, and at the Spark that fills them."""

import itertools
import sys
import time
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands.options import Commands, Output, OutputOption
from deploy.commands.spark import engine as engine_commands
from deploy.commands.spark import upkeep
from deploy.commands.spark.options import EngineOptions, TableArgument
from deploy.terminal.output import done, examples, facts, note, out, print_json, table, waiting
from deploy.views.tables import ago, cell_text, describe_table, is_numeric, rows_as_csv, rows_as_objects
from deploy.views.text import number, plural, printable, size


class SqlOutput(StrEnum):
    """The format of a statement's rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


app = Commands(
    no_args_is_help=True,
    help="Tables in Spark: sql, tables, describe, compact, expire, reload; the engine: status, stop, engine, prepare.",
    epilog="The engine starts on first use, and ends when it is no longer used. It is shared by all clients that "
    "name the same spark.caudal.data.dir: pass the properties file of your Connect worker with --config.",
)


@app.command(
    epilog=examples(
        'caudal spark sql "SELECT country, count(*) FROM orders GROUP BY country"',
        'caudal spark sql "SELECT * FROM orders ORDER BY _offset DESC" --limit 10 --watch 2',
        'caudal spark sql "SELECT * FROM orders" --limit 1000000 --csv > orders.csv',
        "caudal spark sql - --json < report.sql",
        "caudal spark sql 'SHOW TABLES' --config connect-distributed.properties",
    )
)
def sql(
    options: EngineOptions,
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="What to run; - reads it from stdin.", show_default=False)
    ],
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="How many rows are shown at most.")
    ] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The same as --output csv.")] = False,
    output: Annotated[
        SqlOutput, typer.Option("--output", "-o", help="A table for people, JSON or CSV for programs.")
    ] = SqlOutput.TABLE,
    watch: Annotated[
        float | None,
        typer.Option("--watch", "-w", metavar="SECONDS", min=0.1, help="Run it again every so often, until Ctrl-C."),
    ] = None,
) -> None:
    """Run a statement of Spark SQL on the tables, also while they fill."""
    formats = {output} - {SqlOutput.TABLE}
    formats |= {SqlOutput.JSON} if as_json else set()
    formats |= {SqlOutput.CSV} if as_csv else set()
    if len(formats) > 1:
        raise typer.BadParameter("choose one format only", param_hint="--json, --csv, --output")
    chosen = formats.pop() if formats else SqlOutput.TABLE
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise typer.BadParameter("the statement is empty", param_hint="STATEMENT")
    with options.connect() as engine:
        for run in itertools.count():
            with waiting("running the statement"):
                answer = engine.call("sql", statement=text, limit=limit)
            if run and chosen is SqlOutput.TABLE and answer["columns"] and out.is_terminal:
                out.clear()
            _print_answer(answer, chosen)
            if watch is None:
                return
            time.sleep(watch)


@app.command(epilog=examples("caudal spark tables", "caudal spark tables --database sales -o json"))
def tables(
    options: EngineOptions,
    *,
    database: Annotated[
        str | None, typer.Option("--database", "-d", help="Those of one database only.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the tables: how much is in them, and when they last changed."""
    from core_broker.service.clock import SystemClock

    with options.connect() as engine, waiting("looking at the tables"):
        found = engine.call("tables", **({} if database is None else {"database": database}))
    if output is Output.JSON:
        print_json(found)
    elif found:
        _print_tables(found, now_ms=SystemClock().now_ms())
    else:
        note("no tables yet; fill one from a topic:  caudal connector create FILE  with connector.class=SparkSink")


@app.command(epilog=examples("caudal spark describe orders", "caudal spark describe sales.orders -o json"))
def describe(options: EngineOptions, name: TableArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Show the columns of a table, where it is, and how much is in it."""
    from core_broker.service.clock import SystemClock

    with options.connect() as engine, waiting(f"looking at {name}"):
        found = engine.call("describe", table=name)
    if output is Output.JSON:
        print_json(found)
        return
    pairs = describe_table(found, SystemClock().now_ms())
    title = f"Table {printable(found['name'])}"
    facts(title, [(key, printable(value) if isinstance(value, str) else value) for key, value in pairs])
    out.print()
    partitions = found.get("partitioned_by", [])
    rows = [(column, type_, "yes" if column in partitions else "") for column, type_ in found["columns"].items()]
    table("", ["Column", "Type", "Partition"], [[printable(cell) for cell in row] for row in rows])


def _print_answer(answer: dict[str, Any], output: SqlOutput) -> None:
    if output is SqlOutput.JSON:
        print_json(rows_as_objects(answer))
    elif output is SqlOutput.CSV:
        sys.stdout.write(rows_as_csv(answer))
    elif not answer["columns"]:
        done("done")
    else:
        columns = [f"{escape(printable(item['name']))}{'#' if is_numeric(item) else ' '}" for item in answer["columns"]]
        null = Text("null", style="dim")
        table("", columns, [[null if value is None else cell_text(value) for value in row] for row in answer["rows"]])
    sys.stdout.flush()
    if answer["truncated"]:
        note(f"only the first {plural(len(answer['rows']), 'row')}; see more with --limit")


def _print_tables(found: list[dict[str, Any]], *, now_ms: int) -> None:
    rows = [
        (
            printable(item["name"]),
            item["format"],
            "–" if item["rows"] is None else number(item["rows"]),
            "–" if item["files"] is None else number(item["files"]),
            size(item["bytes"]),
            printable(", ".join(item["partitioned_by"])) or "–",
            ago(item["changed_ms"], now_ms=now_ms),
        )
        for item in found
    ]
    table("", ["Table", "Format", "Rows#", "Files#", "Size#", "Partitioned by", "Changed"], rows)


app.add_typer(upkeep.app)
app.add_typer(engine_commands.app)
