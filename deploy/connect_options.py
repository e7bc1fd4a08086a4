"""Options that every tool for Connect has: which worker, how long it may take."""

from typing import TYPE_CHECKING, Annotated

import typer

from deploy import completion_values as values

if TYPE_CHECKING:
    from deploy.connect_client import ConnectClient

DEFAULT_CONNECT = "http://localhost:8083"

ConnectOption = Annotated[
    str,
    typer.Option(
        "--connect",
        envvar="CAUDAL_CONNECT",
        metavar="URL",
        help="Where a worker is; any that speaks Kafka Connect's API will do.",
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
        metavar="CONNECTOR", help="Name of the connector.", show_default=False, autocompletion=values.connectors
    ),
]


def connect_client(connect: str, timeout: float) -> "ConnectClient":
    """A client for the options of a command."""
    from deploy.connect_client import ConnectClient

    try:
        return ConnectClient(connect, timeout_seconds=timeout)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--connect") from None
