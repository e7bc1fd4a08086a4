"""Options that every tool for Spark's tables has: which engine, how the answer looks."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.terminal.output import note, waiting
from deploy.views.tables import rows_as_objects

if TYPE_CHECKING:
    from streams.settings import SparkSettings
    from streams.spark.engine.client import Engine


@completion.completer
def _tables(given: Mapping[str, Any], _: float) -> list[str]:
    """Tables for the shell to offer, when Spark runs; it is not started for this."""
    from streams.spark.engine.client import Engine

    engine = Engine.running(spark_settings(given["config"], given["settings"]))
    if engine is None:
        return []
    with engine:
        answer: Any = engine.call("sql", statement="SHOW TABLES", limit=1000)
    return [row["tableName"] for row in rows_as_objects(answer)]


class SqlOutput(StrEnum):
    """How the rows of a statement are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


SparkConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Properties file with spark.* settings, such as that of the Connect worker whose tables these are.",
        show_default=False,
        rich_help_panel="Engine",
    ),
]
SparkSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting, e.g. spark.caudal.data.dir=/var/lib/caudal/spark; wins over file and environment.",
        autocompletion=completion.settings,
        rich_help_panel="Engine",
    ),
]
TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Name of the table: `table` or `database.table`.",
        show_default=False,
        autocompletion=_tables,
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def spark_settings(config: Path | None, assignments: list[str] | None) -> "SparkSettings":
    """The options of a command as settings: --set, then variables (CAUDAL_SPARK_..., CONNECT_SPARK_...), the file.

    When they name no folder, the Spark of the platform that runs here is meant (`caudal up`), if one does.
    """
    from streams.settings import SparkSettings

    given = SparkSettings.read(file=config, environment=os.environ, assignments=assignments or ())
    if given.is_set("spark.caudal.data.dir") or not (of_platform := _settings_of_platform()):
        return given
    chosen = {*given.set, *(f"spark.{name}" for name, _ in given.spark_properties)}
    others = [f"{key}={value}" for key, value in of_platform.items() if key not in chosen]
    return SparkSettings.read(file=config, environment=os.environ, assignments=[*others, *(assignments or ())])


def _settings_of_platform() -> dict[str, str]:
    """The Spark settings of the platform that runs here; none when there is no platform."""
    from deploy.launcher.request import data_folder
    from deploy.launcher.state import read

    platform = read(data_folder(os.environ))
    return platform.spark.settings if platform is not None and platform.spark is not None else {}


@contextmanager
def connected(settings: "SparkSettings") -> Iterator["Engine"]:
    """A connection to the engine, which is started on first need; on a terminal one sees how it comes up."""

    from streams.spark.engine.client import Engine

    with waiting("connecting to Spark") as shown:
        show = getattr(shown, "update", note)
        engine = Engine.connect(settings, on_progress=lambda line: show(escape(line)))
    with engine:
        yield engine
