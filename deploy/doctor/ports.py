"""The ports that a platform takes by default: free, ours, or somebody else's."""

from collections.abc import Iterator

from deploy.doctor.family import is_ours
from deploy.doctor.finding import Finding, ok, warning
from deploy.doctor.surroundings import Surroundings
from deploy.listeners import listeners
from deploy.stack import SPARK_CONNECT_PORT, STACK


def ports(surroundings: Surroundings) -> Iterator[Finding]:
    """Could the platform take its ports, or has it?"""
    names = default_ports()
    listening = listeners(names)
    free, own = [], []
    for port, name in names.items():
        taken = listening.get(port)
        if taken is None:
            free.append(f"{port} ({name})")
        elif is_ours(taken.pid, surroundings):
            own.append(f"{port} ({name})")
        else:
            steps = ["let the platform take others:  caudal up --ports any"]
            if taken.pid:
                steps.append(f"or end that process:  kill {taken.pid}")
            yield warning(f"Port {port}", f"wanted by {name}, taken by {taken.told()}", *steps)
    if own:
        yield ok("Ports", f"taken by the platform that runs: {', '.join(own)}")
    if free:
        yield ok("Ports", f"free: {', '.join(free)}")


def default_ports() -> dict[int, str]:
    """Every port of the stack, and whose it is."""
    named = {service.port: service.name for service in STACK}
    named |= {service.metrics_port: f"{service.name}, metrics" for service in STACK if service.metrics_port}
    return {**named, SPARK_CONNECT_PORT: "Spark Connect"}
