"""The ports that a platform takes by default: free, taken by the platform itself, or by another process."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deploy.doctor.finding import Context, Finding, ok, warning
from deploy.launcher.listeners import listeners
from deploy.stack import SPARK_CONNECT_PORT, STACK

_GENERATIONS_MAX = 32


def ports(context: Context) -> Iterator[Finding]:
    """Could the platform take its ports, or has it?"""
    names = default_ports()
    listening = listeners(names)
    free, own = [], []
    for port, name in names.items():
        taken = listening.get(port)
        if taken is None:
            free.append(f"{port} ({name})")
        elif is_ours(taken.pid, context):
            own.append(f"{port} ({name})")
        else:
            steps = ["let the platform take others:  caudal up --ports any"]
            if taken.pid:
                steps.append(f"or end that process:  kill {taken.pid}")
            yield warning(f"Port {port}", f"wanted by {name}, taken by {taken}", *steps)
    if own:
        yield ok("Ports", f"taken by the platform that runs: {', '.join(own)}")
    if free:
        yield ok("Ports", f"free: {', '.join(free)}")


def default_ports() -> dict[int, str]:
    """Every port of the stack, and whose it is."""
    named = {service.port: service.name for service in STACK}
    named |= {service.metrics_port: f"{service.name}, metrics" for service in STACK if service.metrics_port}
    return {**named, SPARK_CONNECT_PORT: "Spark Connect"}


def is_ours(pid: int | None, context: Context) -> bool:
    """Whether a process is one of the platform's, or was started by one."""
    heads = _heads(context)
    for _ in range(_GENERATIONS_MAX):
        if pid is None or pid <= 1:
            return False
        if pid in heads:
            return True
        pid = _parent(pid)
    return False


def _heads(context: Context) -> set[int]:
    platform = context.platform
    if platform is None:
        return set()
    heads = {service.pid for service in platform.services.values() if service.pid} | {platform.pid}
    if platform.spark is not None:
        with suppress(OSError, ValueError, IndexError):  # the engine outlives the process that started it
            heads.add(int(Path(platform.spark.data_dir, "engine.lock").read_text(encoding="utf-8").split()[0]))
    return heads


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program, in brackets, may hold anything.
    return int(stat.rpartition(")")[2].split()[1])
