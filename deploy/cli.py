"""The `caudal` command: runs the services, and does the daily work on any Kafka-protocol cluster and registry."""

import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    from core_broker.service.commandline import parse_arguments
    from deploy.services import SERVICES, run_service

    given = list(sys.argv[1:] if arguments is None else arguments)
    # The plain start of a service does not import the tools' libraries.
    if given and given[0] in SERVICES and (parsed := parse_arguments(given[1:])) is not None:
        return run_service(given[0], parsed)
    return _run_tool(given)


def _run_tool(given: list[str]) -> int:
    from core_broker.client.errors import ClientError
    from core_broker.service.commandline import refusal
    from core_broker.service.settings import SettingsError
    from deploy.clients.connect import ConnectCallError
    from deploy.clients.failures import explain
    from deploy.clients.sql import SqlCallError
    from deploy.terminal.output import err, failure
    from schema_registry.client.errors import ClientError as RegistryClientError
    from streams.errors import StreamsError

    try:
        application()(given, prog_name="caudal")
    except (ClientError, RegistryClientError, ConnectCallError, SqlCallError, StreamsError) as error:
        failure(*explain(error))
        return 1
    except SettingsError as error:
        err.print(refusal(error), end="", markup=False)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has closed it; Python would complain again while closing its own end.
        sys.stderr.close()
        return 0
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 0
    return 0


@functools.cache
def application() -> "typer.Typer":
    """The command tree; built once, because it changes the groups of the modules."""
    from importlib.metadata import version

    import typer

    from deploy.commands import (
        certificate,
        completion,
        dlq,
        doctor,
        down,
        group,
        logs,
        profile,
        quickstart,
        quota,
        services,
        status,
        up,
        user,
    )
    from deploy.commands.acl import rules
    from deploy.commands.cluster import describe
    from deploy.commands.connector import connectors
    from deploy.commands.options import Commands
    from deploy.commands.schema import schemas
    from deploy.commands.spark import sql as spark
    from deploy.commands.sql import sql
    from deploy.commands.topic import topics

    completion.prepare()
    app = Commands(
        add_completion=False,  # `caudal completion` has better scripts
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="An event platform that Kafka's ecosystem cannot tell from the real thing.",
        epilog="First steps:  caudal quickstart  shows it all;  caudal up  starts the platform",
    )

    def print_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"caudal {version('caudal')}")
            raise typer.Exit

    @app.callback()
    def options(
        _version: Annotated[
            bool,
            typer.Option("--version", "-V", callback=print_version, is_eager=True, help="Show the version and exit."),
        ] = False,
    ) -> None:
        """Options before a command."""

    for panel, name, command, epilog in (
        ("Platform", "quickstart", quickstart.quickstart, quickstart.EPILOG),
        ("Platform", "up", up.up, up.EPILOG),
        ("Platform", "status", status.status, status.EPILOG),
        ("Platform", "logs", logs.logs, logs.EPILOG),
        ("Platform", "down", down.down, down.EPILOG),
        ("Platform", "doctor", doctor.doctor, doctor.EPILOG),
        ("Services", "broker", services.broker, services.BROKER_EPILOG),
        ("Services", "registry", services.registry, services.REGISTRY_EPILOG),
        ("Services", "rest-proxy", services.rest_proxy, services.REST_PROXY_EPILOG),
        ("Services", "streams", services.streams, services.STREAMS_EPILOG),
        ("Services", "connect-worker", services.connect_worker, services.CONNECT_WORKER_EPILOG),
        ("Tools", "sql", sql.sql, sql.EPILOG),
        ("Tools", "completion", completion.completion, completion.EPILOG),
    ):
        app.command(name, rich_help_panel=panel, epilog=epilog)(command)
    app.add_typer(services.connect_app, name="connect", rich_help_panel="Services")
    for name, tool in {
        "topic": topics.app,
        "group": group.app,
        "schema": schemas.app,
        "connector": connectors.app,
        "dlq": dlq.app,
        "spark": spark.app,
        "cluster": describe.app,
        "user": user.app,
        "acl": rules.app,
        "quota": quota.app,
        "profile": profile.app,
        "certificate": certificate.app,
    }.items():
        app.add_typer(tool, name=name, rich_help_panel="Tools")
    return app


if __name__ == "__main__":
    sys.exit(main())
