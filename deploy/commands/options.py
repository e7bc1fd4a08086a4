"""Options that many commands share: which cluster, registry, worker or platform, and the format of the output.

A command takes such options as one parameter, for example `cluster: ClusterOptions`: `Commands` replaces it by the
fields of that class, each of which is an option.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typing_extensions import override

from deploy.commands import clients, completion
from deploy.launcher.request import DATA_VARIABLE
from deploy.stack import DEFAULT_BOOTSTRAP, REGISTRY
from deploy.terminal.output import failure

if TYPE_CHECKING:
    from core_broker.client.admin import Admin
    from core_broker.client.settings import ClientSettings
    from deploy.clients.connect import ConnectClient
    from deploy.clients.sql import SqlClient
    from deploy.commands.target import Target
    from schema_registry.client.registry_client import RegistryClient

F = TypeVar("F", bound=Callable[..., None])


class Output(StrEnum):
    """The format of the output."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="A table for people or JSON for programs.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DataOption = Annotated[
    Path, typer.Option("--data", "-d", envvar=DATA_VARIABLE, metavar="DIR", help="Folder with the platform's data.")
]
TopicArgument = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="Name of the topic.", show_default=False, autocompletion=completion.topics),
]
PartitionsOption = Annotated[
    list[int] | None, typer.Option("--partition", "-p", help="Only these partitions. Repeat it for more.")
]
POSITION_HELP: Final = "beginning, end, an offset, -N (last N), a time, or how long ago (15m, 2h, 1d)."
ConnectorArgument = Annotated[
    str,
    typer.Argument(
        metavar="CONNECTOR", help="Name of the connector.", show_default=False, autocompletion=completion.connectors
    ),
]


class OptionGroup:
    """Base of the classes whose fields are options."""


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions(OptionGroup):
    """What a command talks to."""

    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            envvar="CAUDAL_PROFILE",
            metavar="NAME",
            help="Client file and addresses under this name; see  caudal profile.",
            show_default=False,
            autocompletion=completion.profiles,
        ),
    ] = None

    def target(self) -> "Target":
        """Where everything is that no option and no variable names; raises BadParameter."""
        return clients.find_target(self.profile)


class Commands(typer.Typer):
    """A group of commands that may take groups of options."""

    @override
    def command(self, *args: Any, **kwargs: Any) -> Callable[[F], F]:
        """Add a command, as in typer."""
        register = super().command(*args, **kwargs)

        def decorate(command: F) -> F:
            name = kwargs.get("name") or command.__name__
            register(_expand_options(command, name=f"{_group(command)} {name}"))
            return command

        return decorate

    @override
    def callback(self, *args: Any, **kwargs: Any) -> Callable[[F], F]:
        """Set what runs before the commands, as in typer."""
        register = super().callback(*args, **kwargs)

        def decorate(command: F) -> F:
            register(_expand_options(command, name=_group(command)))
            return command

        return decorate


def _group(command: Callable[..., None]) -> str:
    """The first word of a command: its module or folder in `deploy.commands`."""
    return "".join(command.__module__.split(".")[2:3])


def _expand_options(command: Callable[..., None], *, name: str) -> Callable[..., None]:
    """The command with the fields of its groups of options as parameters, after its own, for typer to inspect."""
    parameters = dict(inspect.signature(command).parameters)
    groups = {
        item.name: item.annotation
        for item in parameters.values()
        if isinstance(item.annotation, type) and issubclass(item.annotation, OptionGroup)
    }
    if not groups:
        return command
    fields = {group: inspect.signature(kind).parameters for group, kind in groups.items()}
    own = [item for item in parameters.values() if item.name not in groups]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = {
            group: groups[group](**{field: given.pop(field) for field in known}) for group, known in fields.items()
        }
        with ExitStack() as guards:
            for group in options.values():
                if isinstance(group, ClusterOptions):
                    guards.enter_context(group.guard(name, given))
            command(**options, **given)

    expanded = [*own, *(field for known in fields.values() for field in known.values())]
    run.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined] # what `inspect.signature` looks for
    run.__annotations__ = {item.name: item.annotation for item in expanded}
    return run


def _properties_option(names: str, example: str, panel: str) -> Any:
    text = f"Client property in {names} names, e.g. {example}. Repeat it for more."
    return typer.Option("--property", "-X", metavar="KEY=VALUE", help=text, rich_help_panel=panel)


def _config_option(panel: str, *, help_: str, variable: str | None = None) -> Any:
    return typer.Option(
        "--client-config",
        envvar=variable,
        metavar="FILE",
        help=help_,
        rich_help_panel=panel,
        show_default=False,
    )


def insecure_option(panel: str) -> Any:
    """The option that lets credentials go unencrypted to other machines."""
    text = "Send password or token over http to another machine, too, where anyone on the way can read it."
    return typer.Option(
        "--insecure-http", envvar="CAUDAL_INSECURE_HTTP", help=text, rich_help_panel=panel, show_default=False
    )


def timeout_option(panel: str) -> Any:
    """The option for the time that a connection may take."""
    text = f"How long the {panel.lower()} may take to answer."
    return typer.Option("--timeout", metavar="SECONDS", min=0.01, help=text, rich_help_panel=panel)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(ConnectionOptions):
    """A Kafka cluster, and how to reach it."""

    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            "-b",
            envvar="CAUDAL_BOOTSTRAP",
            metavar="HOST:PORT",
            help="Address of the cluster; any Kafka-protocol cluster will do.",
            rich_help_panel="Cluster",
            show_default=DEFAULT_BOOTSTRAP,
        ),
    ] = None
    properties: Annotated[
        list[str] | None, _properties_option("Kafka's or librdkafka's", "security.protocol=SSL", "Cluster")
    ] = None
    client_config: Annotated[
        Path | None,
        _config_option(
            "Cluster",
            help_="Properties file of a Kafka client, as Kafka's tools take it: TLS, user, password.",
            variable="CAUDAL_CLIENT_CONFIG",
        ),
    ] = None
    timeout: Annotated[float, timeout_option("Cluster")] = 10.0

    def settings(self) -> "ClientSettings":
        """Settings for a client of the cluster; raises ClientError if it refuses our TLS or login."""
        from core_broker.client.handshake import check_handshake

        settings = self.unchecked_settings()
        check_handshake(settings)
        return settings

    def unchecked_settings(self) -> "ClientSettings":
        """The same, without asking the cluster."""
        return clients.cluster_settings(
            self.bootstrap,
            profile=self.profile,
            properties=self.properties,
            client_config=self.client_config,
            timeout=self.timeout,
        )

    @contextmanager
    def guard(self, command: str, given: Mapping[str, Any]) -> Iterator[None]:
        """Run a command, such as `topic create`; if a right is missing, say which, and how it is granted."""
        from core_broker.client.errors import NotAllowed
        from deploy.clients.connections import principal_of
        from deploy.views.rights import missing_right

        try:
            yield
        except NotAllowed as error:
            if (right := missing_right(command, error.code, given)) is None:
                raise
            principal = principal_of(self.unchecked_settings())
            failure(f"{principal or 'this user'} is not allowed to {right}", [right.how_to_grant(principal)])
            raise typer.Exit(1) from None

    def admin(self) -> "Admin":
        """An administrative client."""
        from core_broker.client.admin import Admin

        return Admin(self.settings())


@dataclass(frozen=True, kw_only=True)
class RegistryOptions(ConnectionOptions):
    """A schema registry, and how to reach it."""

    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            "-r",
            envvar="CAUDAL_REGISTRY",
            metavar="URL",
            help="Address of the registry; any with Confluent's API will do. Separate several addresses by commas.",
            rich_help_panel="Registry",
            show_default=f"http://localhost:{REGISTRY.port}",
        ),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            "-u",
            envvar="CAUDAL_REGISTRY_USER",
            metavar="NAME:PASSWORD",
            help="Credentials for the registry, if they are not those of the client file.",
            show_default=False,
            rich_help_panel="Registry",
        ),
    ] = None
    properties: Annotated[list[str] | None, _properties_option("Confluent's", "ssl.ca.location=ca.pem", "Registry")] = (
        None
    )
    client_config: Annotated[
        Path | None,
        _config_option(
            "Registry",
            help_="Properties file of a Kafka client, whose login is used here, too; schema.registry.* wins in it.",
            variable="CAUDAL_CLIENT_CONFIG",
        ),
    ] = None
    insecure_http: Annotated[bool, insecure_option("Registry")] = False
    timeout: Annotated[float, timeout_option("Registry")] = 10.0

    def client(self) -> "RegistryClient":
        """A client of the registry; raises BadParameter."""
        return clients.open_registry(
            self.registry,
            profile=self.profile,
            user=self.user,
            properties=self.properties,
            client_config=self.client_config,
            insecure_http=self.insecure_http,
            timeout=self.timeout,
        )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(ConnectionOptions):
    """A Connect worker, and how to reach it."""

    connect: Annotated[
        str | None,
        typer.Option(
            "--connect",
            envvar="CAUDAL_CONNECT",
            metavar="URL",
            help="Address of a worker; any with Kafka Connect's API will do.",
            rich_help_panel="Worker",
            show_default=clients.DEFAULT_CONNECT,
        ),
    ] = None
    properties: Annotated[
        list[str] | None, _properties_option("Kafka's or librdkafka's", "ssl.ca.location=ca.pem", "Worker")
    ] = None
    client_config: Annotated[
        Path | None,
        _config_option(
            "Worker",
            help_="Properties file of a Kafka client, whose login is used here, too.",
            variable="CAUDAL_CLIENT_CONFIG",
        ),
    ] = None
    insecure_http: Annotated[bool, insecure_option("Worker")] = False
    timeout: Annotated[float, timeout_option("Worker")] = 30.0

    def client(self) -> "ConnectClient":
        """A client of the worker; raises BadParameter."""
        return clients.open_worker(
            self.connect,
            profile=self.profile,
            properties=self.properties,
            client_config=self.client_config,
            insecure_http=self.insecure_http,
            timeout=self.timeout,
        )


@dataclass(frozen=True, kw_only=True)
class StreamsOptions(ConnectionOptions):
    """A service of SQL over topics, and how to reach it."""

    streams: Annotated[
        str | None,
        typer.Option(
            "--server",
            "-s",
            envvar="CAUDAL_STREAMS",
            metavar="URL",
            help="Address of the service; any with ksqlDB's API will do.",
            rich_help_panel="Server",
            show_default=clients.DEFAULT_STREAMS,
        ),
    ] = None
    properties: Annotated[
        list[str] | None, _properties_option("Kafka's or librdkafka's", "ssl.ca.location=ca.pem", "Server")
    ] = None
    client_config: Annotated[
        Path | None,
        _config_option(
            "Server",
            help_="Properties file of a Kafka client, whose login is used here, too.",
            variable="CAUDAL_CLIENT_CONFIG",
        ),
    ] = None
    insecure_http: Annotated[bool, insecure_option("Server")] = False
    timeout: Annotated[float, timeout_option("Server")] = 60.0

    def client(self) -> "SqlClient":
        """A client of the service; raises BadParameter."""
        return self.client_of(self.streams)

    def client_of(self, streams: str | None) -> "SqlClient":
        """A client of another service, with the same login; raises BadParameter."""
        return clients.open_streams(
            streams,
            profile=self.profile,
            properties=self.properties,
            client_config=self.client_config,
            insecure_http=self.insecure_http,
            timeout=self.timeout,
        )
