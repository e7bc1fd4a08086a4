"""Starts one service: `caudal broker`. Imports nothing that the service itself does not need."""

import os
from typing import TYPE_CHECKING

from core_broker.service.commandline import ServiceArguments, start

if TYPE_CHECKING:
    from core_broker.settings import BrokerSettings


def broker(arguments: ServiceArguments) -> int:
    """Run a broker until it is told to stop; returns the exit code."""
    from core_broker.settings import BrokerSettings

    return start(BrokerSettings, _run_broker, arguments, environment=os.environ, prefix="KAFKA_")


def _run_broker(settings: "BrokerSettings") -> int:
    # Imported here, so that wrong settings are told without loading a broker.
    from core_broker.__main__ import run

    return run(settings)


SERVICES = {"broker": broker}
"""Every service by the name of its command."""
