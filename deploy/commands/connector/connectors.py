"""`caudal connector`: list connectors, and look at one of them."""

from typing import Annotated, Final

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands import completion
from deploy.commands.connector import create, offsets, states
from deploy.commands.options import Commands, ConnectorArgument, Output, OutputOption, WorkerOptions
from deploy.terminal.output import done, examples, note, out, print_json, table, waiting
from deploy.views.connectors import count_states, parts, summarize
from deploy.views.text import plural, printable, trace_summary

app = Commands(
    no_args_is_help=True,
    help="Connectors: create, list, show, status, pause, resume, stop, restart, delete, validate, offsets.",
)
_COLOURS: Final = {
    "RUNNING": "green",
    "PAUSED": "yellow",
    "STOPPED": "yellow",
    "UNASSIGNED": "yellow",
    "RESTARTING": "yellow",
    "FAILED": "bold red",
}


@app.command(name="list", epilog=examples("caudal connector list", "caudal connector list -o json"))
def list_(worker: WorkerOptions, *, output: OutputOption = Output.TABLE) -> None:
    """List the connectors: type, states of connector and tasks, worker."""
    with worker.client() as client, waiting("asking the worker"):
        found = [summarize(name, connector) for name, connector in sorted(client.connectors().items())]
    if output is Output.JSON:
        print_json(found)
    elif found:
        rows = []
        for item in found:
            counts = [
                Text(f"{count} {state}", style=_COLOURS.get(state, "")) for state, count in count_states(item.tasks)
            ]
            tasks = Text(", ").join(counts) if counts else Text("–", style="dim")
            class_ = item.class_.rpartition(".")[2]
            rows.append((item.name, item.type, _state_text(item.state), tasks, item.worker, class_))
        table("", ["Connector", "Type", "State", "Tasks", "Worker", "Class"], rows)
    else:
        note("no connectors yet; create one:  caudal connector create FILE")


@app.command(epilog=examples("caudal connector show orders", "caudal connector show orders -o json > orders.json"))
def show(worker: WorkerOptions, name: ConnectorArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Show how a connector is configured; as JSON it can be given to `create` again."""
    with worker.client() as client, waiting(f"asking about {name}"):
        info = client.info(name)
    if output is Output.JSON:
        print_json(info)
        return
    title = f"{info['name']}  ({info.get('type', 'unknown')}, {plural(len(info['tasks']), 'task')})"
    table(title, ["Key", "Value"], sorted(info["config"].items()))


@app.command(
    epilog=examples(
        "caudal connector status orders",
        "caudal connector status orders --trace",
        "caudal connector status orders -o json",
    )
)
def status(
    worker: WorkerOptions,
    name: ConnectorArgument,
    *,
    trace: Annotated[bool, typer.Option("--trace", "-t", help="Show the whole stack traces.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the states of a connector and its tasks, and why they failed if they did."""
    with worker.client() as client, waiting(f"asking about {name}"):
        found = client.status(name)
    if output is Output.JSON:
        print_json(found)
        return
    named = parts(found)
    why = ["" if trace else trace_summary(part.get("trace")) for _, part in named]
    rows = [
        (title, _state_text(part["state"]), part["worker_id"], *([reason] if any(why) else []))
        for (title, part), reason in zip(named, why, strict=True)
    ]
    table(f"{found['name']}  ({found['type']})", ["", "State", "Worker", *(["Why"] if any(why) else [])], rows)
    for title, part in named if trace else ():
        if part.get("trace"):
            out.print(f"[bold]{escape(title)}[/]\n{escape(printable(part['trace'].rstrip()))}\n")
    if trace and not any(part.get("trace") for _, part in named):
        note("nothing has failed: there are no traces")


@app.command(
    epilog=examples("caudal connector plugins", "caudal connector plugins --all", "caudal connector plugins JdbcSink")
)
def plugins(
    worker: WorkerOptions,
    plugin: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLUGIN]",
            help="Show the keys of this one: its class, or the last part of it.",
            show_default=False,
            autocompletion=completion.plugins,
        ),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Transforms, predicates and converters, too.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the plugins that configurations may name, or the keys of one of them."""
    with worker.client() as client, waiting("asking the worker"):
        found = client.plugins(connectors_only=not everything) if plugin is None else client.plugin_keys(plugin)
    if output is Output.JSON:
        print_json(found)
    elif plugin is None:
        table(
            "", ["Class", "Type", "Version"], [(item["class"], item["type"], item["version"] or "") for item in found]
        )
    else:
        rows = []
        for item in found:
            default = "required" if item["required"] else item["default_value"]
            rows.append(
                (item["name"], item["type"].lower(), "–" if default is None else default, item["documentation"])
            )
        table(plugin, ["Key", "Type", "Default", "Meaning"], rows)


@app.command(epilog=examples("caudal connector topics orders", "caudal connector topics orders --reset"))
def topics(
    worker: WorkerOptions,
    name: ConnectorArgument,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="Forget them; those still in use are noted again.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the topics that a connector has used."""
    with worker.client() as client, waiting(f"asking about {name}"):
        if reset:
            client.reset_topics(name)
            done(f"topics of [bold]{escape(name)}[/] forgotten")
            return
        found = sorted(client.topics(name))
        if not found:
            client.info(name)  # raises for a connector that does not exist; workers answer it without topics
    if output is Output.JSON:
        print_json(found)
    elif found:
        table("", ["Topic"], [(topic,) for topic in found])
    else:
        note(f"{escape(name)} has used no topics yet")


def _state_text(state: str) -> Text:
    return Text(state, style=_COLOURS.get(state, ""))


app.add_typer(create.app)
app.add_typer(states.app)
app.add_typer(offsets.app, name="offsets")
