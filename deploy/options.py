"""Options that every tool has: which cluster, how the answer looks."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from core_broker.client.settings import ClientSettings

DEFAULT_BOOTSTRAP = "localhost:9092"


class Output(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"


BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="CAUDAL_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Where the cluster is; any Kafka-protocol cluster will do.",
        rich_help_panel="Cluster",
    ),
]
PropertiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-X",
        metavar="KEY=VALUE",
        help="Client property in librdkafka's names, e.g. security.protocol=SSL. Repeat it for more.",
        rich_help_panel="Cluster",
    ),
]
ClientConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        metavar="FILE",
        help="Properties file with client properties.",
        rich_help_panel="Cluster",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", help="How long the cluster may take to answer.", rich_help_panel="Cluster"
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="A table for people or JSON for programs.")]


def client_settings(
    bootstrap: str, properties: list[str] | None, client_config: Path | None, timeout: float
) -> "ClientSettings":
    """The options of a command as the settings of a client; what is given as --property wins."""
    from core_broker.client.settings import ClientSettings
    from core_broker.service.properties import gather

    # The tools tell failures themselves; the library's own lines would only repeat them on stderr.
    values = {"log_level": "0", **gather(file=client_config, assignments=properties or [])}
    bootstrap = values.pop("bootstrap.servers", bootstrap)
    return ClientSettings(
        bootstrap_servers=bootstrap, client_id="caudal-cli", timeout_ms=int(timeout * 1000), properties=values
    )
