"""The platform of a folder: what its launcher has written, and what can be seen of it from here."""

import asyncio
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import msgspec

from core_broker.service.clock import SystemClock
from deploy.launcher.health import is_healthy
from deploy.launcher.spark import engine_pid
from deploy.launcher.state import PlatformState

_ANSWER_TIMEOUT_S: Final = 5.0
_PROCESSES: Final = Path("/proc")


def examine(platform: PlatformState) -> dict[str, Any]:
    """A platform with the age, the memory and the health of its services, and its Spark."""
    now_ms = SystemClock().now_ms()
    answers = asyncio.run(_ask_all(platform))
    found: dict[str, Any] = msgspec.to_builtins(platform)
    for name, service in platform.services.items():
        started_ms = service.started_ms if service.pid is not None else None
        found["services"][name] |= {
            "answers": answers[name],
            "uptime_s": None if started_ms is None else max(0, now_ms - started_ms) // 1000,
            "memory_bytes": memory_of(service.pid) if service.pid else 0,
        }
    if platform.spark is not None:
        pid = engine_pid(Path(platform.spark.data_dir))
        found["spark"] |= {"pid": pid, "memory_bytes": memory_of(pid) if pid else 0}
    found["ready"] = platform.is_ready and all(answers.values())
    found["uptime_s"] = max(0, now_ms - platform.started_ms) // 1000
    found["disk_free_bytes"] = shutil.disk_usage(platform.data).free
    return found


async def _ask_all(platform: PlatformState) -> dict[str, bool]:
    """Whether each service answers that it is well."""
    urls = [service.metrics.removesuffix("/metrics") for service in platform.services.values()]
    found = await asyncio.gather(*(is_healthy(url, timeout_s=_ANSWER_TIMEOUT_S) for url in urls))
    return dict(zip(platform.services, found, strict=True))


def memory_of(pid: int) -> int:
    """Bytes of a process and its descendants, pages that they share counted once; 0 where the system does not say."""
    children = _children()
    family, waiting = set[int](), [pid]
    while waiting:
        member = waiting.pop()
        if member not in family:
            family.add(member)
            waiting += children.get(member, ())
    return sum(_memory(member) for member in family)


def _children() -> dict[int, list[int]]:
    """The processes that each process has started."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            # After the name, which may hold anything: state, parent, ...
            fields = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children[int(fields[1])].append(int(process.name))
        except (OSError, ValueError, IndexError):
            continue  # gone meanwhile
    return dict(children)


def _memory(pid: int) -> int:
    try:
        lines = (_PROCESSES / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
