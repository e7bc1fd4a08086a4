"""Options that many commands share: which cluster, registry, worker or platform, and how the answer looks."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deploy.commands import completion
from deploy.launcher.request import DATA_VARIABLE
from deploy.stack import BROKER, CONNECT, REGISTRY

if TYPE_CHECKING:
    from core_broker.client.admin import Admin
    from deploy.clients.connect import ConnectClient
    from schema_registry.client.registry_client import RegistryClient

DEFAULT_BOOTSTRAP: Final = f"localhost:{BROKER.port}"
DEFAULT_REGISTRY: Final = f"http://localhost:{REGISTRY.port}"
DEFAULT_CONNECT: Final = f"http://localhost:{CONNECT.port}"


class Output(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="A table for people or JSON for programs.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DataOption = Annotated[
    Path,
    typer.Option(
        "--data", "-d", envvar=DATA_VARIABLE, metavar="DIR", help="Folder of the platform, with everything it keeps."
    ),
]

# --- a Kafka cluster ---

BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="CAUDAL_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Address of the cluster; any Kafka-protocol cluster will do.",
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
        "--client-config", metavar="FILE", help="Properties file with client properties.", rich_help_panel="Cluster"
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", help="How long the cluster may take to answer.", rich_help_panel="Cluster"
    ),
]
TopicArgument = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="Name of the topic.", show_default=False, autocompletion=completion.topics),
]
PartitionsOption = Annotated[
    list[int] | None, typer.Option("--partition", "-p", help="Only these partitions. Repeat it for more.")
]
POSITION_HELP: Final = "beginning, end, an offset, -N (last N), a time, or how long ago (15m, 2h, 1d)."


def admin(bootstrap: str, properties: list[str] | None, client_config: Path | None, timeout: float) -> "Admin":
    """An administrative client for the options of a command."""
    from core_broker.client.admin import Admin
    from deploy.clients.connections import client_settings

    return Admin(client_settings(bootstrap, properties, client_config, timeout=timeout))


# --- a schema registry ---

RegistryOption = Annotated[
    str,
    typer.Option(
        "--registry",
        "-r",
        envvar="CAUDAL_REGISTRY",
        metavar="URL",
        help="Address of the registry; any with Confluent's API will do. Separate several addresses by commas.",
        rich_help_panel="Registry",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        envvar="CAUDAL_REGISTRY_USER",
        metavar="NAME:PASSWORD",
        help="Credentials for the registry.",
        show_default=False,
        rich_help_panel="Registry",
    ),
]
RegistryPropertiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-X",
        metavar="KEY=VALUE",
        help="Client property in Confluent's names, e.g. ssl.ca.location=ca.pem. Repeat it for more.",
        rich_help_panel="Registry",
    ),
]
RegistryConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--client-config", metavar="FILE", help="Properties file with client properties.", rich_help_panel="Registry"
    ),
]
RegistryTimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", help="How long the registry may take to answer.", rich_help_panel="Registry"
    ),
]


def registry_client(
    registry: str, user: str | None, properties: list[str] | None, client_config: Path | None, timeout: float
) -> "RegistryClient":
    """A client for the options of a command; raises BadParameter."""
    from deploy.clients import connections
    from schema_registry.client.settings import InvalidSettings

    try:
        return connections.registry_client(registry, user, properties, client_config, timeout=timeout)
    except InvalidSettings as error:
        raise typer.BadParameter(str(error)) from None


# --- a Connect worker ---

ConnectOption = Annotated[
    str,
    typer.Option(
        "--connect",
        envvar="CAUDAL_CONNECT",
        metavar="URL",
        help="Address of a worker; any with Kafka Connect's API will do.",
        rich_help_panel="Worker",
    ),
]
ConnectTimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.01,
        help="How long the worker may take to answer.",
        rich_help_panel="Worker",
    ),
]
ConnectorArgument = Annotated[
    str,
    typer.Argument(
        metavar="CONNECTOR", help="Name of the connector.", show_default=False, autocompletion=completion.connectors
    ),
]


def connect_client(connect: str, timeout: float) -> "ConnectClient":
    """A client for the options of a command; raises BadParameter."""
    from deploy.clients.connect import ConnectClient

    try:
        return ConnectClient(connect, timeout_seconds=timeout)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--connect") from None
