"""Options of the commands for Spark's tables: which engine, and the format of the output."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import ConnectionOptions
from deploy.terminal.output import note, waiting
from deploy.views.tables import rows_as_objects

if TYPE_CHECKING:
    from streams.settings import SparkSettings
    from streams.spark.engine.client import Engine


@completion.completer
def _tables(given: Mapping[str, Any], _: float) -> list[str]:
    """Tables for the shell to offer if Spark runs; it is not started for this."""
    from streams.spark.engine.client import Engine

    engine = Engine.running(
        EngineOptions(config=given["config"], settings=given["settings"], profile=given["profile"]).spark_settings()
    )
    if engine is None:
        return []
    with engine:
        answer: Any = engine.call("sql", statement="SHOW TABLES", limit=1000)
    return [row["tableName"] for row in rows_as_objects(answer)]


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Name of the table: `table` or `database.table`.",
        show_default=False,
        autocompletion=_tables,
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@dataclass(frozen=True, kw_only=True)
class EngineOptions(ConnectionOptions):
    """A Spark engine, and its settings."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Properties file with spark.* settings, such as that of the Connect worker that fills the tables.",
            show_default=False,
            rich_help_panel="Engine",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, e.g. spark.caudal.data.dir=/var/lib/caudal/spark; wins over file and environment.",
            autocompletion=completion.settings,
            rich_help_panel="Engine",
        ),
    ] = None

    def spark_settings(self) -> "SparkSettings":
        """The settings: --set, then variables (CAUDAL_SPARK_..., CONNECT_SPARK_...), then the file.

        If they name no folder, it is that of the profile in use, or they are those of the platform that runs here
        (`caudal up`), if one does.
        """
        from deploy.launcher.request import data_folder
        from deploy.launcher.state import read
        from streams.settings import SparkSettings

        assignments = self.settings or []
        given = SparkSettings.read(file=self.config, environment=os.environ, assignments=assignments)
        if given.is_set("spark.caudal.data.dir"):
            return given
        target = self.target()
        platform = read(data_folder(os.environ)) if target.profile is None else None
        if target.profile is not None and target.spark is not None:
            usual = {"spark.caudal.data.dir": str(target.spark)}
        elif platform is not None and platform.spark is not None:
            usual = platform.spark.settings
        else:
            return given
        chosen = {*given.set, *(f"spark.{name}" for name, _ in given.spark_properties)}
        others = [f"{key}={value}" for key, value in usual.items() if key not in chosen]
        return SparkSettings.read(file=self.config, environment=os.environ, assignments=[*others, *assignments])

    @contextmanager
    def connect(self) -> Iterator["Engine"]:
        """A connection to the engine, which is started if necessary; a terminal shows the progress."""
        from streams.spark.engine.client import Engine

        settings = self.spark_settings()
        with waiting("connecting to Spark") as status:
            show = getattr(status, "update", note)
            engine = Engine.connect(settings, on_progress=lambda line: show(escape(line)))
        with engine:
            yield engine
