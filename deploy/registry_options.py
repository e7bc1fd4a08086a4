"""Options that every tool for schemas has: which registry, who asks, how long it may take."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from schema_registry.client.registry_client import RegistryClient

DEFAULT_REGISTRY = "http://localhost:8081"

RegistryOption = Annotated[
    str,
    typer.Option(
        "--registry",
        "-r",
        envvar="CAUDAL_REGISTRY",
        metavar="URL",
        help="Where the registry is; any that speaks Confluent's API will do. Several addresses with commas between.",
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
        help="Who asks.",
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
        "--client-config",
        metavar="FILE",
        help="Properties file with client properties.",
        rich_help_panel="Registry",
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
    """A client for the options of a command; what is given as --property wins."""
    from core_broker.service.properties import gather
    from schema_registry.client.registry_client import RegistryClient
    from schema_registry.client.settings import PREFIX, InvalidSettings, RegistryClientSettings

    given = {
        key.removeprefix(PREFIX): value
        for key, value in gather(file=client_config, assignments=properties or []).items()
    }
    # Somebody waits at the terminal: one more attempt, not three.
    values: dict[str, object] = {"url": registry, "request.timeout.ms": int(timeout * 1000), "max.retries": 1}
    if user is not None:
        values["basic.auth.user.info"] = user
    try:
        return RegistryClient(RegistryClientSettings.parse({**values, **given}))
    except InvalidSettings as error:
        raise typer.BadParameter(str(error)) from None
