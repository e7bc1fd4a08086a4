"""`caudal spark status`, `stop`, `engine`, `prepare`: the process that runs Spark."""

import os
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deploy.commands.options import Commands, Output, OutputOption
from deploy.commands.spark.options import EngineOptions
from deploy.terminal.output import done, examples, facts, failure, note, print_json, table, waiting
from deploy.views.text import size

if TYPE_CHECKING:
    from pathlib import Path

app = Commands()

STATUS_EPILOG = examples("caudal spark status", "caudal spark status -o json")
TOKEN_EPILOG = examples(
    "export SPARK_CONNECT_AUTHENTICATE_TOKEN=$(caudal spark token)     what Spark's clients look for",
    "It stays the same when the engine is started again. Who has it can read and change all tables.",
)
STOP_EPILOG = examples(
    "caudal spark stop",
    "A connector that still needs it starts another one at once, with its own settings, and continues where it was.",
)
ENGINE_EPILOG = examples(
    "caudal spark engine",
    "caudal spark engine --set spark.caudal.data.dir=/var/lib/caudal/spark --set spark.driver.memory=4g",
    "CAUDAL_SPARK_MASTER=spark://host:7077 caudal spark engine --config connect-distributed.properties",
    "A notebook attaches to it with",
    "export SPARK_CONNECT_AUTHENTICATE_TOKEN=$(caudal spark token)",
    "from pyspark.sql import SparkSession",
    'spark = SparkSession.builder.remote("sc://localhost:15002").getOrCreate()',
    "All settings, with their meaning: streams/SETTINGS.md",
)
PREPARE_EPILOG = examples(
    "caudal spark prepare",
    "Run it once after an installation, and again after an upgrade of Java or PySpark. XX",
)
_PAUSE_S: Final = 0.1


@app.command(epilog=STATUS_EPILOG)
def status(options: EngineOptions, *, output: OutputOption = Output.TABLE) -> None:
    """Show whether the engine runs, where, and its jobs; does not start it. The exit code is 1 when it does not run."""
    from streams.spark.engine.client import Engine

    chosen = options.spark_settings()
    engine = Engine.running(chosen)
    if engine is None:
        if output is Output.JSON:
            print_json({"running": False, "data_dir": str(chosen.data_dir)})
        else:
            note(f"no engine runs in {chosen.data_dir}; it starts on first use, or with  caudal spark engine")
        raise typer.Exit(1)
    with engine:
        found: dict[str, Any] = {"running": True, "data_dir": str(chosen.data_dir), **engine.call("info")}
    if output is Output.JSON:
        print_json(found)
        return
    notebooks = f"{found['connect_url']} ({found['notebooks']} open)" if found["connect_url"] else "no endpoint"
    facts(
        f"Engine in {chosen.data_dir}",
        [
            ("Process", f"{found['pid']}, for {found['uptime_seconds']:.0f} s"),
            ("Spark", f"{found['spark_version']} on {found['master']}"),
            ("Memory", f"{size(found['memory_bytes'])} in {found['processes']} processes"),
            ("Notebooks", notebooks),
            ("Connections", found["connections"]),
            ("Warehouse", found["warehouse"]),
            ("Log", found["log"]),
        ],
    )
    if found["jobs"]:
        rows = [
            (name, job["state"], " ".join(f"{key}={value:g}" for key, value in sorted(job["counters"].items())))
            for name, job in sorted(found["jobs"].items())
        ]
        table("", ["Job", "State", "Counters"], rows)


@app.command(epilog=TOKEN_EPILOG)
def token(options: EngineOptions) -> None:
    """Print the token that notebooks have to show."""
    from streams.spark.engine.folder import EngineFolder

    file = EngineFolder(options.spark_settings().data_dir).token
    try:
        typer.echo(file.read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        failure(f"there is no {file}: no engine has run there", ["start one:  `caudal spark engine`"])
        raise typer.Exit(1) from None
    except PermissionError:
        failure(f"{file} belongs to another user")
        raise typer.Exit(1) from None


@app.command(epilog=STOP_EPILOG)
def stop(
    options: EngineOptions,
    *,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long it may take to stop.")
    ] = 30.0,
) -> None:
    """Stop the engine in order, jobs first."""
    from streams.spark.engine.client import Engine
    from streams.spark.engine.folder import EngineFolder

    chosen = options.spark_settings()
    engine = Engine.running(chosen)
    if engine is None:
        note(f"no engine runs in {chosen.data_dir}")
        return
    with engine:
        pid = engine.info.pid
        engine.quit()
    deadline = time.monotonic() + timeout
    with waiting("waiting for it to stop"):
        while _is_held_by(EngineFolder(chosen.data_dir).lock, pid) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
    if _is_held_by(EngineFolder(chosen.data_dir).lock, pid):
        failure(f"the engine (process {pid}) has not stopped within {timeout:g} s", [f"kill it:  `kill -9 {pid}`"])
        raise typer.Exit(1)
    done(f"engine in {chosen.data_dir} stopped")


@app.command(epilog=ENGINE_EPILOG)
def engine(options: EngineOptions) -> None:
    """Run the engine here until Ctrl-C or SIGTERM, instead of in the background on first use."""
    from core_broker.service import logs
    from streams.spark.engine.host import run

    logs.configure()
    raise typer.Exit(run(options.spark_settings(), is_background=False))


@app.command(epilog=PREPARE_EPILOG)
def prepare() -> None:
    """Make Spark start faster on this machine: start it once, and archive its classes."""
    from streams.spark.engine.class_archive import make_archive

    with waiting("starting Spark once; this takes half a minute"):
        file = make_archive(os.environ)
    done(f"Spark starts faster from now on ({file.stat().st_size // 1_000_000} MB in {file})")


def _is_held_by(lock: "Path", pid: int) -> bool:
    """Whether that engine still holds the folder; another one may have taken it."""
    from streams.spark.engine.folder import EngineFolder

    try:
        return EngineFolder(lock.parent).is_locked() and lock.read_text(encoding="utf-8").strip() == str(pid)
    except FileNotFoundError:
        return False
