"""Which processes belong to the platform that runs: its services, what they have started, and Spark."""

from contextlib import suppress
from pathlib import Path

from deploy.doctor.surroundings import Surroundings

_GENERATIONS_MAX = 32


def is_ours(pid: int | None, surroundings: Surroundings) -> bool:
    """Whether a process is one of the platform's, or was started by one."""
    heads = _heads(surroundings)
    for _ in range(_GENERATIONS_MAX):
        if pid is None or pid <= 1:
            return False
        if pid in heads:
            return True
        pid = _parent(pid)
    return False


def _heads(surroundings: Surroundings) -> set[int]:
    platform = surroundings.platform
    if platform is None:
        return set()
    heads = {service.pid for service in platform.services.values() if service.pid} | {platform.pid}
    if platform.spark is not None:
        with suppress(OSError, ValueError, IndexError):  # the engine outlives whoever started it
            heads.add(int(Path(platform.spark.data_dir, "engine.lock").read_text(encoding="utf-8").split()[0]))
    return heads


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program, in brackets, may hold anything.
    return int(stat.rpartition(")")[2].split()[1])
