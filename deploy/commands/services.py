"""`caudal broker`, `registry`, `rest-proxy`, `connect`, `connect-worker`, `streams`: their help and options.

These run only for help and for unusual arguments: `deploy.cli` starts a service without the tools' libraries.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.terminal.output import done, examples, note, out

BROKER_EPILOG = examples(
    "caudal broker",
    "caudal broker --set listeners=PLAINTEXT://:9092 --set log.dirs=/var/lib/caudal",
    "KAFKA_NUM_PARTITIONS=3 caudal broker --config server.properties",
    "All settings, with their meaning: core_broker/SETTINGS.md",
)

REGISTRY_EPILOG = examples(
    "caudal registry",
    "caudal registry --set listeners=http://:8081 --set database.url=sqlite:////var/lib/caudal/registry.db",
    "SCHEMA_REGISTRY_DATABASE_URL=postgresql://user:password@host/schemas caudal registry",
    "All settings, with their meaning: schema_registry/SETTINGS.md",
)

REST_PROXY_EPILOG = examples(
    "caudal rest-proxy",
    "caudal rest-proxy --set bootstrap.servers=kafka:9092 --set schema.registry.url=http://registry:8081",
    "KAFKA_REST_PRODUCER_COMPRESSION_TYPE=zstd caudal rest-proxy --config kafka-rest.properties",
    "Its API, to read and to try: http://localhost:8082/docs",
    "All settings, with their meaning: rest_proxy/SETTINGS.md",
)

CONNECT_EPILOG = examples(
    "caudal connect",
    "caudal connect --set bootstrap.servers=kafka:9092 --set group.id=orders-connect",
    "CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE=false caudal connect --config connect-distributed.properties",
    "caudal connect new sheets --source",
    "Then  caudal connector create FILE.  Its API, to read and to try: http://localhost:8083/docs",
    "All settings, with their meaning: connect/SETTINGS.md",
)

CONNECT_WORKER_EPILOG = examples(
    "caudal connect-worker --config connect-distributed.properties",
    "caudal connect-worker --set celery.broker.url=redis://redis:6379/0 -- --concurrency 4",
    "It takes tasks from  caudal connect --set executor=celery,  with the same settings otherwise.",
)

STREAMS_EPILOG = examples(
    "caudal streams",
    "caudal streams --set bootstrap.servers=kafka:9092 --set ksql.schema.registry.url=http://registry:8081",
    "KSQL_KSQL_SERVICE_ID=shop_ caudal streams --config ksql-server.properties",
    "Then  caudal sql,  or any client of ksqlDB's API at http://localhost:8088",
    "All settings, with their meaning: streams/SETTINGS.md",
)

NEW_EPILOG = examples(
    "caudal connect new sheets",
    "caudal connect new sheets --sink --folder ~/projects",
    "Then  cd sheets,  pip install -e .  and  pytest",
)

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Properties file, in Kafka's and Confluent's own names.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting; wins over file and environment. Repeat it for more.",
        autocompletion=completion.settings,
    ),
]


def broker(*, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Run a broker until Ctrl-C or SIGTERM. Settings: --set, then KAFKA_... variables, then the file, then defaults."""
    _start("broker", config, settings)


def registry(*, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Run a schema registry until Ctrl-C or SIGTERM. Settings: --set, then SCHEMA_REGISTRY_... variables, then the
    file, then defaults."""
    _start("registry", config, settings)


def rest_proxy(*, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Run a REST proxy until Ctrl-C or SIGTERM. Settings: --set, then KAFKA_REST_... variables, then the file, then
    defaults."""
    _start("rest-proxy", config, settings)


def streams(*, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Run the service of SQL over topics until Ctrl-C or SIGTERM. Settings: --set, then KSQL_... variables, then the
    file, then defaults."""
    _start("streams", config, settings)


connect_app = typer.Typer(invoke_without_command=True, epilog=CONNECT_EPILOG)


@connect_app.callback()
def connect(context: typer.Context, *, config: ConfigOption = None, settings: SetOption = None) -> None:
    """Run a Connect worker until Ctrl-C or SIGTERM; `new` writes a connector of your own. Settings: --set, then
    CONNECT_... variables, then the file, then defaults."""
    if context.invoked_subcommand is None:
        _start("connect", config, settings)


def connect_worker(
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- OPTION...]", help="Options of `celery worker`.", show_default=False),
    ] = None,
    *,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Run a Celery worker for tasks of Connect until Ctrl-C or SIGTERM. Settings: as for `caudal connect`."""
    _start("connect-worker", config, settings, options or [])


@connect_app.command(epilog=NEW_EPILOG)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits and dashes.", show_default=False)],
    *,
    source: Annotated[bool, typer.Option("--source", help="Only a source.")] = False,
    sink: Annotated[bool, typer.Option("--sink", help="Only a sink.")] = False,
    both: Annotated[bool, typer.Option("--both", help="A source and a sink, the default.")] = False,
    folder: Annotated[
        Path,
        typer.Option("--folder", "-f", metavar="DIR", file_okay=False, help="Where to create its folder."),
    ] = Path(),
) -> None:
    """Write the skeleton of a connector: a small project that works, and passes the standard suites."""

    from connect.api.errors import ConfigError
    from connect.testing.scaffold import Kind, write_connector

    if source + sink + both > 1:
        raise typer.BadParameter("choose one of --source, --sink and --both", param_hint="--both")
    kind = Kind.SOURCE if source else Kind.SINK if sink else Kind.BOTH
    try:
        written = write_connector(name, folder, kind=kind)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    except OSError as error:
        raise typer.BadParameter(f"{folder} cannot be written: {error}", param_hint="--folder") from None
    for path in written:
        out.print(escape(str(path)))
    place = escape(str(folder / name))
    done(f"connector [bold]{escape(name)}[/] written")
    note(f"test it:  cd {place} && pip install -e . && pytest")


def _start(name: str, config: Path | None, settings: list[str] | None, options: Sequence[str] = ()) -> None:
    from core_broker.service.commandline import ServiceArguments
    from deploy.services import run_service

    raise typer.Exit(run_service(name, ServiceArguments(config=config, assignments=tuple(settings or ())), options))
