"""Starts one service, `caudal broker`, and imports nothing that the service itself does not need."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from core_broker.service.commandline import ServiceArguments, start
from deploy.stack import BY_NAME, CONNECT

if TYPE_CHECKING:
    from core_broker.service.settings import ServiceSettings

SERVICES = (*BY_NAME, "connect-worker")
"""Every service by the name of its command."""
_OURS = ("core_broker", "schema_registry", "rest_proxy", "connect", "connectors", "streams", "deploy")


def run_service(name: str, arguments: ServiceArguments, options: Sequence[str] = ()) -> int:
    """Run a service until a signal stops it; returns the exit code. `options` are those of `celery worker`."""
    prefix = BY_NAME.get(name, CONNECT).environment_prefix
    try:
        run = partial(_run, name, options=options)
        return start(settings_type(name), run, arguments, environment=os.environ, prefix=prefix)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _OURS:
            raise
        sys.stderr.write(
            f"caudal {name} needs the package {error.name}, which is not installed.\n"
            "Install Caudal with everything that its services need, e.g. pip install 'caudal[all] @ ...'.\n"
        )
        return 1


def settings_type(name: str) -> "type[ServiceSettings]":
    """What a service's settings are checked with; loaded when asked for, and without the others'."""
    match name:
        case "broker":
            from core_broker.settings import BrokerSettings

            return BrokerSettings
        case "registry":
            from schema_registry.settings import RegistrySettings

            return RegistrySettings
        case "rest-proxy":
            from rest_proxy.settings import ProxySettings

            return ProxySettings
        case "connect" | "connect-worker":
            from connect.settings import ConnectSettings

            return ConnectSettings
        case "streams":
            from streams.settings import StreamsSettings

            return StreamsSettings
        case _:
            raise KeyError(name)


def _run(name: str, settings: Any, *, options: Sequence[str]) -> int:
    """Import and run a service; called once its settings are known to be right."""
    run: Callable[[Any], int]
    match name:
        case "broker":
            from core_broker.__main__ import run
        case "registry":
            from schema_registry.__main__ import run
        case "rest-proxy":
            from rest_proxy.__main__ import run
        case "connect":
            from connect.__main__ import run
        case "connect-worker":
            from connect.__main__ import run_tasks

            run = partial(run_tasks, options=options)
        case "streams":
            from streams.__main__ import run
        case _:
            raise KeyError(name)
    return run(settings)
