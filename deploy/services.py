"""Starts one service: `caudal broker`. Imports nothing that the service itself does not need."""

from collections.abc import Sequence


def broker(arguments: Sequence[str]) -> int:
    """Run a broker until it is told to stop; returns the exit code."""
    from core_broker.__main__ import main

    return main(list(arguments))


SERVICES = {"broker": broker}
"""Every service by the name of its command."""
