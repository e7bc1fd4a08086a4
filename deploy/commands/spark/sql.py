"""`caudal spark`: look at the tables that topics have become, and at the Spark that fills them."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands.options import Output, OutputOption
from deploy.commands.spark import engine as engine_commands
from deploy.commands.spark import upkeep
from deploy.commands.spark.options import (
    SparkConfigOption,
    SparkSetOption,
    SqlOutput,
    TableArgument,
    connected,
    spark_settings,
)
from deploy.terminal.output import done, facts, note, out, print_json, table, waiting
from deploy.views.tables import ago, cell_text, describe_table, is_numeric, rows_as_csv, rows_as_objects
from deploy.views.text import number, plural, printable, size

if TYPE_CHECKING:
    from streams.spark.engine.client import Engine

app = typer.Typer(
    no_args_is_help=True,
    help="Tables in Spark: sql, tables, describe, compact, expire, reload; the engine: status, stop, engine, prepare.",
    epilog="The engine starts when it is first needed, and ends when it is no longer used. It is shared by all who "
    "name the same spark.caudal.data.dir: pass the properties file of your Connect worker with --config.",
)


@app.command(
    epilog="Examples:\n\n"
    'caudal spark sql "SELECT country, count(*) FROM orders GROUP BY country"\n\n'
    'caudal spark sql "SELECT * FROM orders ORDER BY _offset DESC" --limit 10 --watch 2\n\n'
    'caudal spark sql "SELECT * FROM orders" --limit 1000000 --csv > orders.csv\n\n'
    "caudal spark sql - --json < report.sql\n\n"
    "caudal spark sql 'SHOW TABLES' --config connect-distributed.properties"
)
def sql(
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
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """Run a statement of Spark SQL on the tables, also while they fill."""
    chosen = _output(output, as_json=as_json, as_csv=as_csv)
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise typer.BadParameter("the statement is empty", param_hint="STATEMENT")
    with connected(spark_settings(config, settings)) as engine:
        _show(_query(engine, text, limit), chosen, is_first=True)
        while watch is not None:
            time.sleep(watch)
            _show(_query(engine, text, limit), chosen, is_first=False)


@app.command(epilog="Examples:\n\ncaudal spark tables\n\ncaudal spark tables --database sales -o json")
def tables(
    *,
    database: Annotated[
        str | None, typer.Option("--database", "-d", help="Those of one database only.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """List the tables: how much is in them, and when they last changed."""
    from core_broker.service.clock import SystemClock

    with connected(spark_settings(config, settings)) as engine, waiting("looking at the tables"):
        found = engine.call("tables", **({} if database is None else {"database": database}))
    if output is Output.JSON:
        print_json(found)
    elif found:
        _print_tables(found, now_ms=SystemClock().now_ms())
    else:
        note("no tables yet; fill one from a topic:  caudal connector create FILE  with connector.class=SparkSink")


@app.command(epilog="Examples:\n\ncaudal spark describe orders\n\ncaudal spark describe sales.orders -o json")
def describe(
    table: TableArgument,
    *,
    output: OutputOption = Output.TABLE,
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """Show the columns of a table, where it is, and how much is in it."""
    from core_broker.service.clock import SystemClock

    with connected(spark_settings(config, settings)) as engine, waiting(f"looking at {table}"):
        found = engine.call("describe", table=table)
    if output is Output.JSON:
        print_json(found)
    else:
        _print_table(found, now_ms=SystemClock().now_ms())


def _output(output: SqlOutput, *, as_json: bool, as_csv: bool) -> SqlOutput:
    wanted = {*([SqlOutput.JSON] if as_json else []), *([SqlOutput.CSV] if as_csv else [])}
    wanted |= {output} if output is not SqlOutput.TABLE else set()
    if len(wanted) > 1:
        raise typer.BadParameter("choose one format only", param_hint="--json, --csv, --output")
    return wanted.pop() if wanted else SqlOutput.TABLE


def _query(engine: "Engine", statement: str, limit: int) -> dict[str, Any]:
    with waiting("running the statement"):
        answer: dict[str, Any] = engine.call("sql", statement=statement, limit=limit)
    return answer


def _show(answer: dict[str, Any], output: SqlOutput, *, is_first: bool) -> None:
    if output is SqlOutput.JSON:
        print_json(rows_as_objects(answer))
    elif output is SqlOutput.CSV:
        sys.stdout.write(rows_as_csv(answer))
    elif not answer["columns"]:
        done("done")
    else:
        if not is_first and out.is_terminal:
            out.clear()
        _print_rows(answer)
    sys.stdout.flush()
    if answer["truncated"]:
        note(f"only the first {plural(len(answer['rows']), 'row')}; see more with --limit")


def _print_rows(answer: dict[str, Any]) -> None:
    """The rows of a statement as a table, numbers to the right."""
    columns = [
        f"{escape(printable(column['name']))}{'#' if is_numeric(column) else ' '}" for column in answer["columns"]
    ]
    null = Text("null", style="dim")
    table("", columns, [[null if value is None else cell_text(value) for value in row] for row in answer["rows"]])


def _print_tables(tables: list[dict[str, Any]], *, now_ms: int) -> None:
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
        for item in tables
    ]
    table("", ["Table", "Format", "Rows#", "Files#", "Size#", "Partitioned by", "Changed"], rows)


def _print_table(found: dict[str, Any], *, now_ms: int) -> None:
    """One table: what it is, then its columns."""
    pairs = [
        (name, printable(value) if isinstance(value, str) else value) for name, value in describe_table(found, now_ms)
    ]
    facts(f"Table {printable(found['name'])}", pairs)
    out.print()
    partitions = found.get("partitioned_by", [])
    rows = [(name, type_, "yes" if name in partitions else "") for name, type_ in found["columns"].items()]
    table("", ["Column", "Type", "Partition"], [[printable(cell) for cell in row] for row in rows])


app.add_typer(upkeep.app)
app.add_typer(engine_commands.app)
