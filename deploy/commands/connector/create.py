"""`caudal connector create` and `caudal connector validate`: from a file to a connector that runs."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from deploy.commands.connector.files import ConfigFileArgument, read_configuration
from deploy.commands.options import Commands, Output, OutputOption, WorkerOptions
from deploy.terminal.output import done, err, examples, failure, print_json, table, waiting
from deploy.views.connectors import Problems, Verdict, failures, problems, verdict
from deploy.views.text import plural

if TYPE_CHECKING:
    from deploy.clients.connect import ConnectClient

app = Commands()

_PAUSE_SECONDS: Final = 0.2
_STEADY_SECONDS: Final = 1.5
"""Tasks run before their first record makes them fail, and old ones until the new configuration has reached them."""

NameOption = Annotated[
    str | None,
    typer.Option("--name", "-n", help="Name of the connector, instead of the one in the file.", show_default=False),
]


@app.command(
    epilog=examples(
        "caudal connector create orders.json --wait",
        "caudal connector create orders.json --replace",
        "caudal connector create connect-file-sink.properties --name lines",
        "caudal connector show orders -o json | caudal connector create - --connect http://other:8083",
        'The JSON is that of Kafka Connect: {"name": ..., "config": {...}}, or the configuration alone.',
    )
)
def create(
    worker: WorkerOptions,
    file: ConfigFileArgument,
    *,
    name: NameOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the configuration if the connector exists.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait until all its tasks run; exit code 1 if one fails.")
    ] = False,
    wait_timeout: Annotated[
        float, typer.Option("--wait-timeout", metavar="SECONDS", min=0.01, help="How long --wait waits.")
    ] = 60.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a connector from a file; it starts at once."""
    from deploy.clients.connect import Conflict

    wanted = read_configuration(file, name=name)
    if wanted.name is None:
        raise typer.BadParameter("the connector needs a name: add it to the file, or use --name", param_hint="FILE")
    with worker.client() as client:
        is_new = True
        with waiting(f"creating {wanted.name}"):
            try:
                info = client.create(wanted.body)
            except Conflict as error:
                if not (replace and "already exists" in error.message):
                    raise
                is_new = False
                info = client.put_config(wanted.name, {**wanted.config, "name": wanted.name})
        if output is Output.TABLE:
            done(f"connector [bold]{escape(info['name'])}[/] {'created' if is_new else 'changed'}")
        runs = not wait or _wait_until_running(client, info["name"], seconds=wait_timeout)
    if output is Output.JSON:
        print_json(info)
    if not runs:
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "caudal connector validate orders.json",
        "caudal connector validate - -o json < orders.json",
        "The exit code is 0 when the configuration is right, 1 when not: made for continuous integration.",
    )
)
def validate(
    worker: WorkerOptions, file: ConfigFileArgument, *, name: NameOption = None, output: OutputOption = Output.TABLE
) -> None:
    """Check a configuration, key by key, without creating anything."""
    wanted = read_configuration(file, name=name)
    plugin = wanted.config.get("connector.class")
    if not isinstance(plugin, str) or not plugin.strip():
        raise typer.BadParameter(
            "connector.class is missing; see the available ones:  caudal connector plugins", param_hint="FILE"
        )
    config = {**wanted.config, "name": wanted.name or "connector"}
    with worker.client() as client, waiting("checking"):
        found = problems(client.validate(plugin, config), given=config)
    if output is Output.JSON:
        print_json(found)
    else:
        _print_problems(found, called=wanted.name or plugin)
    if found.errors:
        raise typer.Exit(1)


def _wait_until_running(client: "ConnectClient", name: str, *, seconds: float) -> bool:
    """Wait until all tasks run steadily, one has failed, or the time is over, and report the result."""
    from deploy.clients.connect import ConnectorNotFound

    deadline = time.monotonic() + seconds
    running_since: float | None = None
    with waiting(f"waiting for the tasks of {name}"):
        while True:
            try:
                status: dict[str, Any] | None = client.status(name)
            except ConnectorNotFound:
                status = None  # its first status is not written yet
            found: Verdict = "waiting" if status is None else verdict(status)
            now = time.monotonic()
            running_since = (running_since or now) if found == "running" else None
            is_steady = running_since is not None and now - running_since >= _STEADY_SECONDS
            if is_steady or found == "failed" or now >= deadline:
                break
            time.sleep(_PAUSE_SECONDS)
    command = f"caudal connector status {name}"
    if status is None or found == "waiting":
        failure(f"{name} is not running after {seconds:g} s", [f"see its state:  `{command}`"])
    elif found == "running":
        done(f"{plural(len(status['tasks']), 'task')} of [bold]{escape(name)}[/] running")
    else:
        for title, reason in failures(status):
            failure(f"{name} {title} has failed: {reason}")
        failure(f"{name} is not running", [f"see the whole trace:  `{command} --trace`"])
    return found == "running"


def _print_problems(found: Problems, *, called: str) -> None:
    """A table of what is wrong, and a line for what is odd."""
    if found.errors:
        rows = [
            (item.key, "–" if item.value is None else item.value, text) for item in found.errors for text in item.errors
        ]
        table("", ["Key", "Value", "What is wrong"], rows)
        failure(
            f"{called} cannot be created: {plural(len(rows), 'error')}",
            [f"see all keys:  `caudal connector plugins {found.connector_class.rpartition('.')[2]}`"],
        )
    else:
        done(f"the configuration of [bold]{escape(called)}[/] is valid")
    for warning in found.warnings:
        err.print(f"[yellow]![/] {escape(warning['name'])}: {escape(warning['message'])}")
