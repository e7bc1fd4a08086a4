"""The platform of a folder: the state that its launcher wrote, with the age, memory and health of its services."""

import asyncio
import shutil
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from core_broker.service.clock import SystemClock
from deploy.launcher.health import is_healthy
from deploy.launcher.spark import engine_pid
from deploy.launcher.state import PlatformState
from deploy.stack import broker_number

_ANSWER_TIMEOUT_S: Final = 5.0
_PROCESSES: Final = Path("/proc")


def examine(platform: PlatformState) -> dict[str, Any]:
    """A platform with the age, memory and health of its services, and of Spark."""
    now_ms, tls = SystemClock().now_ms(), platform.tls()
    urls = [service.metrics.removesuffix("/metrics") for service in platform.services.values()]

    async def check_all() -> list[bool]:
        return await asyncio.gather(*(is_healthy(url, timeout_s=_ANSWER_TIMEOUT_S, tls=tls) for url in urls))

    answers = dict(zip(platform.services, asyncio.run(check_all()), strict=True))
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
    found["cluster"] = _cluster(platform)
    found["ready"] = platform.is_ready and all(answers.values())
    found["uptime_s"] = max(0, now_ms - platform.started_ms) // 1000
    found["disk_free_bytes"] = shutil.disk_usage(platform.data).free
    return found


def _cluster(platform: PlatformState) -> dict[str, Any] | None:
    """Which brokers of a cluster are missing, and what that means; None for a broker on its own."""
    from core_broker.client.admin import Admin
    from core_broker.client.errors import ClientError
    from deploy.clients.connections import client_settings
    from deploy.views.cluster import describe_cluster
    from deploy.views.cluster_health import Trouble, missing_brokers, troubles

    if platform.bootstrap is None or not any(map(broker_number, platform.services)):
        return None
    file = Path(platform.client_config) if platform.client_config else None
    try:
        found = describe_cluster(Admin(client_settings(platform.bootstrap, None, file, timeout=_ANSWER_TIMEOUT_S)))
    except ClientError as error:
        trouble = Trouble(text=f"the cluster does not answer a client: {error}", is_outage=True)
        return {"missing": [], "troubles": [msgspec.to_builtins(trouble)]}
    return {
        "missing": [broker.id for broker in missing_brokers(found)],
        "troubles": msgspec.to_builtins(troubles(found)),
    }


def memory_of(pid: int) -> int:
    """Bytes of a process and its descendants, shared pages counted once; 0 if the system does not say."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for process in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            # The parent is the second field after the program's name, which may contain anything.
            fields = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children[int(fields[1])].append(int(process.name))
    family, waiting = set[int](), [pid]
    while waiting:
        member = waiting.pop()
        if member not in family:
            family.add(member)
            waiting += children.get(member, ())
    total = 0
    for member in family:
        with suppress(OSError):
            lines = (_PROCESSES / str(member) / "smaps_rollup").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total
