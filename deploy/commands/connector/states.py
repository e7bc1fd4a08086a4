"""`caudal connector pause`, `resume`, `stop`, `restart`, `delete`."""

from typing import Annotated

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import Commands, ConnectorArgument, WorkerOptions, YesOption
from deploy.terminal.output import done, examples, note, report_deleted, waiting

app = Commands()

PAUSE_EPILOG = examples("caudal connector pause orders", "caudal connector pause orders invoices")
RESUME_EPILOG = examples("caudal connector resume orders")
STOP_EPILOG = examples("caudal connector stop orders", "then  caudal connector offsets reset orders")
RESTART_EPILOG = examples(
    "caudal connector restart orders --tasks --only-failed", "caudal connector restart orders --task 0"
)
DELETE_EPILOG = examples("caudal connector delete orders", "caudal connector delete old-1 old-2 --yes")

ConnectorsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="CONNECTOR...",
        help="Names of the connectors.",
        show_default=False,
        autocompletion=completion.connectors,
    ),
]


@app.command(epilog=PAUSE_EPILOG)
def pause(worker: WorkerOptions, names: ConnectorsArgument) -> None:
    """Pause the tasks; they keep their resources and assignments."""
    _set_target(worker, names, "pause", outcome="is pausing")


@app.command(epilog=RESUME_EPILOG)
def resume(worker: WorkerOptions, names: ConnectorsArgument) -> None:
    """Resume connectors that were paused or stopped."""
    _set_target(worker, names, "resume", outcome="is resuming")


@app.command(epilog=STOP_EPILOG)
def stop(worker: WorkerOptions, names: ConnectorsArgument) -> None:
    """End the tasks and keep the configuration; offsets can be changed then."""
    _set_target(worker, names, "stop", outcome="is stopping")


@app.command(epilog=RESTART_EPILOG)
def restart(
    worker: WorkerOptions,
    name: ConnectorArgument,
    *,
    tasks: Annotated[bool, typer.Option("--tasks", "-t", help="Restart its tasks too.")] = False,
    only_failed: Annotated[bool, typer.Option("--only-failed", "-f", help="Restart only what has failed.")] = False,
    task: Annotated[
        int | None, typer.Option("--task", metavar="N", min=0, help="Restart only this task.", show_default=False)
    ] = None,
) -> None:
    """Restart a connector: alone, with its tasks, or only what has failed."""
    if task is not None and (tasks or only_failed):
        raise typer.BadParameter("either --task N, or --tasks and --only-failed", param_hint="--task")
    shown = f"[bold]{escape(name)}[/]"
    with worker.client() as client, waiting(f"restarting {name}"):
        if task is not None:
            client.restart_task(name, task)
            done(f"task {task} of {shown} restarts")
            return
        status = client.restart(name, include_tasks=tasks, only_failed=only_failed)
    if status is None:
        done(f"{shown} restarts")
        if not tasks:
            note("its tasks keep running; restart them too with  --tasks")
        return
    parts = [("the connector", status["connector"]), *((f"task {item['id']}", item) for item in status["tasks"])]
    restarting = [title for title, part in parts if part["state"] == "RESTARTING"]
    done(f"{shown} restarts: {', '.join(restarting)}" if restarting else f"nothing of {shown} needed a restart")


@app.command(epilog=DELETE_EPILOG)
def delete(worker: WorkerOptions, names: ConnectorsArgument, *, yes: YesOption = False) -> None:
    """Delete connectors. Their topics and offsets stay."""
    from deploy.clients.connect import ConnectCallError, WorkerUnreachable

    if not yes:
        typer.confirm(f"Delete {', '.join(names)}?", abort=True, err=True)
    outcome: dict[str, object | None] = {}
    with worker.client() as client, waiting("deleting"):
        for name in names:
            try:
                outcome[name] = client.delete(name)  # type: ignore[func-returns-value] # None: no error
            except WorkerUnreachable:
                raise
            except ConnectCallError as error:
                outcome[name] = error
    if not report_deleted("connector", outcome, ["see what there is:  `caudal connector list`"]):
        raise typer.Exit(1)


def _set_target(worker: WorkerOptions, names: list[str], word: str, *, outcome: str) -> None:
    with worker.client() as client:
        for name in names:
            with waiting(f"{word} {name}"):
                client.set_target(name, word)
            done(f"[bold]{escape(name)}[/] {outcome}")
