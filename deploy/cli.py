"""The `caudal` command: runs the services, and does the daily work on any Kafka-protocol cluster and registry."""

import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if (code := _run_service(given)) is not None:
        return code
    return _run_tool(given)


def _run_service(given: list[str]) -> int | None:
    """Run a service without importing the tools' libraries; None when this is no plain start of a service."""
    from core_broker.service.commandline import parse_arguments
    from deploy.services import SERVICES

    service = SERVICES.get(given[0]) if given else None
    parsed = parse_arguments(given[1:])
    return service(parsed) if service and parsed else None


def _run_tool(given: list[str]) -> int:
    from core_broker.client.errors import ClientError
    from core_broker.service.commandline import refusal
    from core_broker.service.settings import SettingsError
    from deploy.connect_errors import ConnectCallError
    from deploy.failures import explain
    from deploy.output import err, failure
    from schema_registry.client.errors import ClientError as RegistryClientError
    from streams.errors import StreamsError

    try:
        application()(given, prog_name="caudal")
    except (ClientError, RegistryClientError, ConnectCallError, StreamsError) as error:
        failure(*explain(error))
        return 1
    except SettingsError as error:
        err.print(refusal(error), end="", markup=False)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has had enough; Python would complain again while closing it.
        sys.stderr.close()
        return 0
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 0
    return 0


@functools.cache
def application() -> "typer.Typer":
    """The command tree: made once, as what is made here is added to the modules' own."""
    import typer

    from deploy import (
        cluster,
        completion,
        connect_new,
        connector_offsets,
        connector_states,
        connectors,
        consume,
        dead_letters,
        groups,
        produce,
        schema_compare,
        schema_levels,
        schema_views,
        schemas,
        service_help,
        spark,
        spark_engine,
        spark_upkeep,
        topics,
        version,
    )
    from deploy.doctor import command as doctor
    from deploy.launcher import down, logs, status, up
    from deploy.quickstart import command as quickstart

    completion.prepare()
    app = typer.Typer(
        add_completion=False,  # `caudal completion` has better scripts
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="An event platform that Kafka's ecosystem cannot tell from the real thing.",
        epilog="First steps:  caudal quickstart  shows it all;  caudal up  starts the platform",
    )
    app.callback()(version.options)
    app.command(name="quickstart", rich_help_panel="Platform", epilog=quickstart.EPILOG)(quickstart.quickstart)
    app.command(name="up", rich_help_panel="Platform", epilog=up.EPILOG)(up.up)
    app.command(name="status", rich_help_panel="Platform", epilog=status.EPILOG)(status.status)
    app.command(name="logs", rich_help_panel="Platform", epilog=logs.EPILOG)(logs.logs)
    app.command(name="down", rich_help_panel="Platform", epilog=down.EPILOG)(down.down)
    app.command(name="doctor", rich_help_panel="Platform", epilog=doctor.EPILOG)(doctor.doctor)
    app.command(name="broker", rich_help_panel="Services", epilog=service_help.BROKER_EPILOG)(service_help.broker)
    app.command(name="registry", rich_help_panel="Services", epilog=service_help.REGISTRY_EPILOG)(service_help.registry)
    app.command(name="rest-proxy", rich_help_panel="Services", epilog=service_help.REST_PROXY_EPILOG)(
        service_help.rest_proxy
    )
    service_help.connect_app.command(name="new", epilog=connect_new.EPILOG)(connect_new.new)
    app.add_typer(service_help.connect_app, name="connect", rich_help_panel="Services")
    app.command(name="connect-worker", rich_help_panel="Services", epilog=service_help.CONNECT_WORKER_EPILOG)(
        service_help.connect_worker
    )
    topics.app.command(name="produce", epilog=produce.EPILOG)(produce.produce)
    topics.app.command(name="consume", epilog=consume.EPILOG)(consume.consume)
    schemas.app.command(name="list", epilog=schema_views.LIST_EPILOG)(schema_views.list_schemas)
    schemas.app.command(name="show", epilog=schema_views.SHOW_EPILOG)(schema_views.show)
    schemas.app.command(name="diff", epilog=schema_compare.EPILOG)(schema_compare.diff)
    schemas.app.command(name="compatibility", epilog=schema_levels.EPILOG)(schema_levels.compatibility)
    connectors.app.command(name="pause", epilog=connector_states.PAUSE_EPILOG)(connector_states.pause)
    connectors.app.command(name="resume", epilog=connector_states.RESUME_EPILOG)(connector_states.resume)
    connectors.app.command(name="stop", epilog=connector_states.STOP_EPILOG)(connector_states.stop)
    connectors.app.command(name="restart", epilog=connector_states.RESTART_EPILOG)(connector_states.restart)
    connectors.app.command(name="delete", epilog=connector_states.DELETE_EPILOG)(connector_states.delete)
    connectors.app.add_typer(connector_offsets.app, name="offsets")
    spark.app.command(name="compact", epilog=spark_upkeep.COMPACT_EPILOG)(spark_upkeep.compact)
    spark.app.command(name="expire", epilog=spark_upkeep.EXPIRE_EPILOG)(spark_upkeep.expire)
    spark.app.command(name="reload", epilog=spark_upkeep.RELOAD_EPILOG)(spark_upkeep.reload)
    spark.app.command(name="status", epilog=spark_engine.STATUS_EPILOG)(spark_engine.status)
    spark.app.command(name="stop", epilog=spark_engine.STOP_EPILOG)(spark_engine.stop)
    spark.app.command(name="engine", epilog=spark_engine.ENGINE_EPILOG)(spark_engine.engine)
    spark.app.command(name="prepare", epilog=spark_engine.PREPARE_EPILOG)(spark_engine.prepare)
    app.add_typer(topics.app, name="topic", rich_help_panel="Tools")
    app.add_typer(groups.app, name="group", rich_help_panel="Tools")
    app.add_typer(schemas.app, name="schema", rich_help_panel="Tools")
    app.add_typer(connectors.app, name="connector", rich_help_panel="Tools")
    app.add_typer(dead_letters.app, name="dlq", rich_help_panel="Tools")
    app.add_typer(spark.app, name="spark", rich_help_panel="Tools")
    app.add_typer(cluster.app, name="cluster", rich_help_panel="Tools")
    app.command(name="completion", rich_help_panel="Tools", epilog=completion.EPILOG)(completion.completion)
    return app


if __name__ == "__main__":
    sys.exit(main())
