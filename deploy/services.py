"""Starts one service: `caudal broker`. Imports nothing that the service itself does not need."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from core_broker.service.commandline import ServiceArguments, start

if TYPE_CHECKING:
    from connect.settings import ConnectSettings
    from core_broker.service.settings import ServiceSettings
    from core_broker.settings import BrokerSettings
    from rest_proxy.settings import ProxySettings
    from schema_registry.settings import RegistrySettings


def broker(arguments: ServiceArguments) -> int:
    """Run a broker until it is told to stop; returns the exit code."""
    from core_broker.settings import BrokerSettings

    return start(BrokerSettings, _run_broker, arguments, environment=os.environ, prefix="KAFKA_")


def registry(arguments: ServiceArguments) -> int:
    """Run a schema registry until it is told to stop; returns the exit code."""
    from schema_registry.settings import RegistrySettings

    return start(RegistrySettings, _run_registry, arguments, environment=os.environ, prefix="SCHEMA_REGISTRY_")


def rest_proxy(arguments: ServiceArguments) -> int:
    """Run a REST proxy until it is told to stop; returns the exit code."""
    from rest_proxy.settings import ProxySettings

    return start(ProxySettings, _run_rest_proxy, arguments, environment=os.environ, prefix="KAFKA_REST_")


def connect(arguments: ServiceArguments) -> int:
    """Run a Connect worker until it is told to stop; returns the exit code."""
    from connect.settings import ConnectSettings

    return start(ConnectSettings, _run_connect, arguments, environment=os.environ, prefix="CONNECT_")


def connect_worker(arguments: ServiceArguments, options: Sequence[str] = ()) -> int:
    """Run a Celery worker for tasks of Connect until it is told to stop; options are those of `celery worker`."""
    from connect.settings import ConnectSettings

    run = partial(_run_connect_worker, options=options)
    return start(ConnectSettings, run, arguments, environment=os.environ, prefix="CONNECT_")


# Imported in these, so that wrong settings are told without loading a service.


def _run_broker(settings: "BrokerSettings") -> int:
    from core_broker.__main__ import run

    return run(settings)


def _run_registry(settings: "RegistrySettings") -> int:
    from schema_registry.__main__ import run

    return run(settings)


def _run_rest_proxy(settings: "ProxySettings") -> int:
    from rest_proxy.__main__ import run

    return run(settings)


def _run_connect(settings: "ConnectSettings") -> int:
    from connect.__main__ import run

    return run(settings)


def _run_connect_worker(settings: "ConnectSettings", *, options: Sequence[str]) -> int:
    from connect.__main__ import run_tasks

    return run_tasks(settings, options=options)


SERVICES: dict[str, Callable[[ServiceArguments], int]] = {
    "broker": broker,
    "registry": registry,
    "rest-proxy": rest_proxy,
    "connect": connect,
    "connect-worker": connect_worker,
}
"""Every service by the name of its command."""


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
        case _:
            raise KeyError(name)
