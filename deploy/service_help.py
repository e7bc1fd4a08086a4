"""The services as the full command line sees them: help, and what to say when the arguments are wrong."""

from pathlib import Path
from typing import Annotated

import typer

from deploy import completion_values as values

BROKER_EPILOG = """Examples:

caudal broker

caudal broker --set listeners=PLAINTEXT://:9092 --set log.dirs=/var/lib/caudal

KAFKA_NUM_PARTITIONS=3 caudal broker --config server.properties

All settings, with their meaning: core_broker/SETTINGS.md"""

REGISTRY_EPILOG = """Examples:

caudal registry

caudal registry --set listeners=http://:8081 --set database.url=sqlite:////var/lib/caudal/registry.db

SCHEMA_REGISTRY_DATABASE_URL=postgresql://user:password@host/schemas caudal registry

All settings, with their meaning: schema_registry/SETTINGS.md"""

REST_PROXY_EPILOG = """Examples:

caudal rest-proxy

caudal rest-proxy --set bootstrap.servers=kafka:9092 --set schema.registry.url=http://registry:8081

KAFKA_REST_PRODUCER_COMPRESSION_TYPE=zstd caudal rest-proxy --config kafka-rest.properties

Its API, to read and to try: http://localhost:8082/docs

All settings, with their meaning: rest_proxy/SETTINGS.md"""

CONNECT_EPILOG = """Examples:

caudal connect

caudal connect --set bootstrap.servers=kafka:9092 --set group.id=orders-connect

CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE=false caudal connect --config connect-distributed.properties

caudal connect new sheets --source

Then  caudal connector create FILE.  Its API, to read and to try: http://localhost:8083/docs

All settings, with their meaning: connect/SETTINGS.md"""

CONNECT_WORKER_EPILOG = """Examples:

caudal connect-worker --config connect-distributed.properties

caudal connect-worker --set celery.broker.url=redis://redis:6379/0 -- --concurrency 4

The service that hands tasks to it:  caudal connect --set executor=celery, with the same settings otherwise."""

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
        autocompletion=values.settings,
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
    """Run a Celery worker that carries tasks of Connect, until Ctrl-C or SIGTERM. Settings: as `caudal connect`."""
    from core_broker.service.commandline import ServiceArguments
    from deploy.services import connect_worker as run

    raise typer.Exit(run(ServiceArguments(config=config, assignments=tuple(settings or ())), options or ()))


def _start(name: str, config: Path | None, settings: list[str] | None) -> None:
    from core_broker.service.commandline import ServiceArguments
    from deploy.services import SERVICES

    raise typer.Exit(SERVICES[name](ServiceArguments(config=config, assignments=tuple(settings or ()))))
