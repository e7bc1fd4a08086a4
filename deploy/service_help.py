"""`caudal broker` as the full command line sees it: help, and what to say when the arguments are wrong."""

from pathlib import Path
from typing import Annotated

import typer

BROKER_EPILOG = """Examples:

caudal broker

caudal broker --set listeners=PLAINTEXT://:9092 --set log.dirs=/var/lib/caudal

KAFKA_NUM_PARTITIONS=3 caudal broker --config server.properties

All settings, with their meaning: core_broker/SETTINGS.md"""


def broker(
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="Properties file, in Kafka's own names.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting; wins over file and environment. Repeat it for more."
        ),
    ] = None,
) -> None:
    """Run a broker until Ctrl-C or SIGTERM. Settings: --set, then KAFKA_... variables, then the file, then defaults."""
    from core_broker.service.commandline import ServiceArguments
    from deploy import services

    raise typer.Exit(services.broker(ServiceArguments(config=config, assignments=tuple(settings or ()))))
