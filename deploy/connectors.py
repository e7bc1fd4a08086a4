"""`caudal connector`: create, list, look at, check and delete connectors."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy import completion_values as values
from deploy.connect_options import (
    DEFAULT_CONNECT,
    ConnectOption,
    ConnectorArgument,
    ConnectTimeoutOption,
    connect_client,
)
from deploy.connector_files import ConfigFileArgument, Configuration, read_configuration
from deploy.options import Output, OutputOption

if TYPE_CHECKING:
    from deploy.connect_client import ConnectClient

app = typer.Typer(
    no_args_is_help=True,
    help="Connectors: create, list, show, status, pause, resume, stop, restart, delete, validate, offsets.",
)

NameOption = Annotated[
    str | None, typer.Option("--name", "-n", help="Its name, when the file has none or another.", show_default=False)
]


@app.command(name="list", epilog="Examples:\n\ncaudal connector list\n\ncaudal connector list -o json")
def list_connectors(
    *,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """List the connectors: which way data goes, how they and their tasks fare, and where."""
    from deploy.connector_views import listed, print_list
    from deploy.output import note, print_json, waiting

    with connect_client(connect, timeout) as client, waiting("asking the worker"):
        found = [listed(name, connector) for name, connector in sorted(client.connectors().items())]
    if output is Output.JSON:
        print_json(found)
    elif found:
        print_list(found)
    else:
        note("no connectors yet; make one:  caudal connector create FILE")


@app.command(
    epilog="Examples:\n\n"
    "caudal connector create orders.json --wait\n\n"
    "caudal connector create orders.json --replace\n\n"
    "caudal connector create connect-file-sink.properties --name lines\n\n"
    "caudal connector show orders -o json | caudal connector create - --connect http://other:8083\n\n"
    'The JSON is that of Kafka Connect: {"name": ..., "config": {...}}, or the configuration alone.'
)
def create(
    file: ConfigFileArgument,
    *,
    name: NameOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Give a connector of that name this configuration, if there is one.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until all its tasks run; 1 if one fails.")] = False,
    wait_timeout: Annotated[
        float, typer.Option("--wait-timeout", metavar="SECONDS", min=0.01, help="How long to wait for that.")
    ] = 60.0,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Create a connector from a file; it starts at once."""
    from deploy.connector_waiting import wait_until_running
    from deploy.output import print_json, waiting

    wanted = read_configuration(file, name=name)
    if wanted.name is None:
        raise typer.BadParameter("the connector needs a name: put it into the file, or say --name", param_hint="FILE")
    with connect_client(connect, timeout) as client:
        with waiting(f"creating {wanted.name}"):
            info, is_new = _create(client, wanted, replace=replace)
        if output is Output.TABLE:
            _tell_created(info, is_new=is_new)
        runs = not wait or wait_until_running(client, info["name"], seconds=wait_timeout)
    if output is Output.JSON:
        print_json(info)
    if not runs:
        raise typer.Exit(1)


@app.command(epilog="Examples:\n\ncaudal connector show orders\n\ncaudal connector show orders -o json > orders.json")
def show(
    name: ConnectorArgument,
    *,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Show how a connector is configured; as JSON it can be given to `create` again."""
    from deploy.output import print_json, table, waiting

    with connect_client(connect, timeout) as client, waiting(f"asking about {name}"):
        info = client.info(name)
    if output is Output.JSON:
        print_json(info)
        return
    from deploy.output import plural

    title = f"{info['name']}  ({info.get('type', 'unknown')}, {plural(len(info['tasks']), 'task')})"
    table(title, ["Key", "Value"], sorted(info["config"].items()))


@app.command(
    epilog="Examples:\n\n"
    "caudal connector status orders\n\n"
    "caudal connector status orders --trace\n\n"
    "caudal connector status orders -o json"
)
def status(
    name: ConnectorArgument,
    *,
    trace: Annotated[bool, typer.Option("--trace", "-t", help="Show the whole stack traces.")] = False,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Show how a connector and its tasks fare, and why they failed if they did."""
    from deploy.connector_views import print_status
    from deploy.output import print_json, waiting

    with connect_client(connect, timeout) as client, waiting(f"asking about {name}"):
        found = client.status(name)
    if output is Output.JSON:
        print_json(found)
    else:
        print_status(found, with_traces=trace)


@app.command(
    epilog="Examples:\n\n"
    "caudal connector validate orders.json\n\n"
    "caudal connector validate - -o json < orders.json\n\n"
    "The exit code is 0 when the configuration is right, 1 when not: made for continuous integration."
)
def validate(
    file: ConfigFileArgument,
    *,
    name: NameOption = None,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """Check a configuration, key by key, without creating anything."""
    from deploy.connector_validation import print_problems, problems
    from deploy.output import print_json, waiting

    wanted = read_configuration(file, name=name)
    plugin = wanted.config.get("connector.class")
    if not isinstance(plugin, str) or not plugin.strip():
        raise typer.BadParameter(
            "connector.class is missing; see what there is:  caudal connector plugins", param_hint="FILE"
        )
    config = {**wanted.config, "name": wanted.name or "connector"}
    with connect_client(connect, timeout) as client, waiting("checking"):
        found = problems(client.validate(plugin, config), given=config)
    if output is Output.JSON:
        print_json(found)
    else:
        print_problems(found, called=wanted.name or plugin)
    if found.errors:
        raise typer.Exit(1)


@app.command(
    epilog="Examples:\n\n"
    "caudal connector plugins\n\n"
    "caudal connector plugins --all\n\n"
    "caudal connector plugins JdbcSink"
)
def plugins(
    plugin: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLUGIN]",
            help="Show the keys of this one: its class, or the last part of it.",
            show_default=False,
            autocompletion=values.plugins,
        ),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Transforms, predicates and converters, too.")
    ] = False,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """List what configurations may name, or the keys that one of them understands."""
    from deploy.output import print_json, table, waiting

    with connect_client(connect, timeout) as client, waiting("asking the worker"):
        found = client.plugins(connectors_only=not everything) if plugin is None else client.plugin_keys(plugin)
    if output is Output.JSON:
        print_json(found)
    elif plugin is None:
        table(
            "", ["Class", "Type", "Version"], [(item["class"], item["type"], item["version"] or "") for item in found]
        )
    else:
        table(plugin, ["Key", "Type", "Default", "Meaning"], [_key_row(item) for item in found])


@app.command(epilog="Examples:\n\ncaudal connector topics orders\n\ncaudal connector topics orders --reset")
def topics(
    name: ConnectorArgument,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="Forget them; those still in use come back.")] = False,
    output: OutputOption = Output.TABLE,
    connect: ConnectOption = DEFAULT_CONNECT,
    timeout: ConnectTimeoutOption = 30.0,
) -> None:
    """List the topics that a connector has used."""
    from rich.markup import escape

    from deploy.output import done, note, print_json, table, waiting

    with connect_client(connect, timeout) as client, waiting(f"asking about {name}"):
        if reset:
            client.reset_topics(name)
            done(f"topics of [bold]{escape(name)}[/] forgotten")
            return
        found = sorted(client.topics(name))
        if not found:
            client.info(name)  # of one that is not there, workers tell no topics either
    if output is Output.JSON:
        print_json(found)
    elif found:
        table("", ["Topic"], [(topic,) for topic in found])
    else:
        note(f"{escape(name)} has used no topics yet")


def _create(client: "ConnectClient", wanted: Configuration, *, replace: bool) -> tuple[dict[str, Any], bool]:
    """Create, or change, and tell whether it is new."""
    from deploy.connect_errors import NotNow

    assert wanted.name is not None
    try:
        return client.create(wanted.body), True
    except NotNow as error:
        if not (replace and "already exists" in error.message):
            raise
    return client.put_config(wanted.name, {**wanted.config, "name": wanted.name}), False


def _tell_created(info: dict[str, Any], *, is_new: bool) -> None:
    from rich.markup import escape

    from deploy.output import done

    done(f"connector [bold]{escape(info['name'])}[/] {'created' if is_new else 'changed'}")


def _key_row(key: dict[str, Any]) -> tuple[object, ...]:
    default = "required" if key["required"] else key["default_value"]
    return key["name"], key["type"].lower(), "–" if default is None else default, key["documentation"]
