"""`caudal spark`: look at the tables that topics have become, and at the Spark that fills them."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.options import Output, OutputOption
from deploy.spark_options import (
    SparkConfigOption,
    SparkSetOption,
    SqlOutput,
    TableArgument,
    connected,
    spark_settings,
)

if TYPE_CHECKING:
    from streams.spark.engine.client import Engine

app = typer.Typer(
    no_args_is_help=True,
    help="Tables in Spark: sql, tables, describe, compact, expire, reload; the engine: status, stop, engine, prepare.",
    epilog="The engine starts by itself when it is needed, and ends when nobody needs it. Whoever names the same "
    "spark.caudal.data.dir shares it: give the properties file of your Connect worker with --config.",
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
        typer.Option("--watch", "-w", metavar="SECONDS", min=0.1, help="Ask again and again, until Ctrl-C."),
    ] = None,
    config: SparkConfigOption = None,
    settings: SparkSetOption = None,
) -> None:
    """Run a statement of Spark SQL on the tables, also while they fill."""
    chosen = _output(output, as_json=as_json, as_csv=as_csv)
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise typer.BadParameter("there is no statement in it", param_hint="STATEMENT")
    with connected(spark_settings(config, settings)) as engine:
        _show(_asked(engine, text, limit), chosen, is_first=True)
        while watch is not None:
            time.sleep(watch)
            _show(_asked(engine, text, limit), chosen, is_first=False)


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
    from deploy.output import note, print_json, waiting
    from deploy.spark_views import print_tables

    with connected(spark_settings(config, settings)) as engine, waiting("looking at the tables"):
        found = engine.call("tables", **({} if database is None else {"database": database}))
    if output is Output.JSON:
        print_json(found)
    elif found:
        print_tables(found, now_ms=SystemClock().now_ms())
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
    from deploy.output import print_json, waiting
    from deploy.spark_views import print_table

    with connected(spark_settings(config, settings)) as engine, waiting(f"looking at {table}"):
        found = engine.call("describe", table=table)
    if output is Output.JSON:
        print_json(found)
    else:
        print_table(found, now_ms=SystemClock().now_ms())


def _output(output: SqlOutput, *, as_json: bool, as_csv: bool) -> SqlOutput:
    wanted = {*([SqlOutput.JSON] if as_json else []), *([SqlOutput.CSV] if as_csv else [])}
    wanted |= {output} if output is not SqlOutput.TABLE else set()
    if len(wanted) > 1:
        raise typer.BadParameter("rows are written in one way only", param_hint="--json, --csv, --output")
    return wanted.pop() if wanted else SqlOutput.TABLE


def _asked(engine: "Engine", statement: str, limit: int) -> dict[str, Any]:
    from deploy.output import waiting

    with waiting("running the statement"):
        answer: dict[str, Any] = engine.call("sql", statement=statement, limit=limit)
    return answer


def _show(answer: dict[str, Any], output: SqlOutput, *, is_first: bool) -> None:
    from deploy.output import done, note, out, plural, print_json
    from deploy.spark_views import print_rows, rows_as_csv, rows_as_objects

    if output is SqlOutput.JSON:
        print_json(rows_as_objects(answer))
    elif output is SqlOutput.CSV:
        sys.stdout.write(rows_as_csv(answer))
    elif not answer["columns"]:
        done("done")
    else:
        if not is_first and out.is_terminal:
            out.clear()
        print_rows(answer)
    sys.stdout.flush()
    if answer["truncated"]:
        note(f"only the first {plural(len(answer['rows']), 'row')}; see more with --limit")
