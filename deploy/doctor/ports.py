"""The default ports of a platform: free, in use by the platform itself, or by another process."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deploy.doctor.finding import Context, Finding, ok, warning
from deploy.launcher.listeners import listeners
from deploy.stack import SPARK_CONNECT_PORT, STACK

_GENERATIONS_MAX = 32


def ports(context: Context) -> Iterator[Finding]:
    """Are the ports free, or in use by the platform itself?"""
    names = default_ports(is_secure=context.platform is not None and context.platform.is_secure)
    listening = listeners(names)
    free, own = [], []
    for port, name in names.items():
        listener = listening.get(port)
        if listener is None:
            free.append(f"{port} ({name})")
        elif is_ours(listener.pid, context):
            own.append(f"{port} ({name})")
        else:
            steps = ["use other ports:  caudal up --ports any"]
            if listener.pid:
                steps.append(f"or end that process:  kill {listener.pid}")
            yield warning(f"Port {port}", f"needed by {name}, in use by {listener}", *steps)
    if own:
        yield ok("Ports", f"in use by the running platform: {', '.join(own)}")
    if free:
        yield ok("Ports", f"free: {', '.join(free)}")


def default_ports(*, is_secure: bool = False) -> dict[int, str]:
    """Every port of the stack, and whose it is."""
    named = {service.port: service.name for service in STACK}
    if is_secure:
        named |= {port: f"{one.name}, certificates" for one in STACK if (port := one.certificates_port)}
    named |= {service.metrics_port: f"{service.name}, metrics" for service in STACK if service.metrics_port}
    return {**named, SPARK_CONNECT_PORT: "Spark Connect"}


def is_ours(pid: int | None, context: Context) -> bool:
    """Whether a process belongs to the platform, or was started by one that does."""
    platform = context.platform
    if platform is None:
        return False
    known = {service.pid for service in platform.services.values() if service.pid} | {platform.pid}
    if platform.spark is not None:
        with suppress(OSError, ValueError, IndexError):  # the engine outlives the process that started it
            known.add(int(Path(platform.spark.data_dir, "engine.lock").read_text(encoding="utf-8").split()[0]))
    for _ in range(_GENERATIONS_MAX):
        if pid is None or pid <= 1:
            return False
        if pid in known:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        # The parent is the second field after the program's name, which is in brackets and may contain anything.
        pid = int(stat.rpartition(")")[2].split()[1])
    return False
