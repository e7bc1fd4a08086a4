"""The machine: memory, open files, the clock, and optional tools."""

import importlib.metadata
import os
import re
import resource
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from deploy.doctor.finding import Context, Finding, note, ok, problem, warning
from deploy.views.text import size

_PLATFORM_BYTES: Final = 400_000_000
"""All services and the launcher together, with some room."""
_SPARK_BYTES: Final = 2_000_000_000
"""Spark's Java with its gigabyte of objects, and the Python processes beside it."""
_FILES_MIN: Final = 1024
_FILES_WANTED: Final = 4096
_YEARS: Final = range(2025, 2100)
_CGROUP: Final = Path("/sys/fs/cgroup")
_TOOLS: Final = {
    "kcat": ("kcat", "a small Kafka client for the shell", "kcat"),
    "redis-server": ("Redis", "carries tasks to other machines (executor=celery)", "redis-server"),
    "postgres": ("PostgreSQL", "lets several registries work side by side", "postgresql"),
    "mariadbd": ("MariaDB", "one of the databases that connectors read and write", "mariadb-server"),
}
_TOOL_FOLDERS: Final = os.pathsep.join(
    ["/usr/sbin", "/usr/local/sbin", "/sbin", *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
)
"""Folders of servers, which are often not on a user's PATH."""


def memory(context: Context) -> Iterator[Finding]:
    """Is there memory for the platform, and for Spark?"""
    total, available = memory_bytes(Path("/proc/meminfo").read_text(encoding="ascii"), _cgroup_left())
    found = f"{size(available)} of {size(total)} free"
    if context.platform is not None:
        yield note("Memory", f"{found}, beside the running platform")
    elif available < _PLATFORM_BYTES:
        yield problem("Memory", f"{found}; the platform takes about {size(_PLATFORM_BYTES)}", "end other programs")
    elif available < _PLATFORM_BYTES + _SPARK_BYTES:
        yield warning(
            "Memory",
            f"{found}; enough without Spark, which takes about {size(_SPARK_BYTES)} more",
            "give Spark less:  --set spark.driver.memory=512m  for caudal connect, or end other programs",
        )
    else:
        yield ok(
            "Memory", f"{found}; the platform takes about {size(_PLATFORM_BYTES)}, Spark {size(_SPARK_BYTES)} more"
        )


def memory_bytes(text: str, cgroup: tuple[int, int] | None) -> tuple[int, int]:
    """Total and available memory from /proc/meminfo, or the limits of a container if they are lower."""
    lines = {name: int(kilobytes) * 1024 for name, kilobytes in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    total, available = lines["MemTotal"], lines.get("MemAvailable", lines.get("MemFree", 0))
    if cgroup is None:
        return total, available
    return min(total, cgroup[0]), min(available, cgroup[1])


def open_files(_: Context) -> Iterator[Finding]:
    """May a process open as many files as a broker needs?"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _FILES_WANTED:
        yield ok("Open files", f"{soft:,} for each process" if soft != resource.RLIM_INFINITY else "without limit")
        return
    reason = "a broker has some open for each partition, and one for each connection"
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    raised = f"raise it:  ulimit -n {most}  in the shell that starts the platform"
    level = warning if soft >= _FILES_MIN else problem
    yield level("Open files", f"only {soft:,} for each process; {reason}", raised)


def clock(context: Context) -> Iterator[Finding]:
    """Can the machine's clock be right? Retention and timestamps go by it."""
    now = datetime.fromtimestamp(context.clock.now_ms() / 1000, tz=UTC)
    shown = now.strftime("%Y-%m-%d %H:%M UTC")
    repair = "set the clock, or synchronize it:  timedatectl set-ntp true"
    # A clock that is behind shows a time before our installation.
    files = [file for file in importlib.metadata.files("caudal") or () if file.name == "METADATA"]
    installed = [datetime.fromtimestamp(Path(str(file.locate())).stat().st_mtime, tz=UTC) for file in files[:1]]
    if now.year not in _YEARS:
        yield problem("Clock", f"{shown}; records would be deleted too early or never", repair)
    elif installed and now < installed[0]:
        found = f"{shown}, which is before Caudal was installed here ({installed[0]:%Y-%m-%d %H:%M})"
        yield warning("Clock", found, repair)
    else:
        yield ok("Clock", shown)


def tools(context: Context) -> Iterator[Finding]:
    """Which optional servers and tools are installed?"""
    there, missing = [], []
    path = f"{context.environment.get('PATH', '')}{os.pathsep}{_TOOL_FOLDERS}"
    for program, (name, purpose, package) in _TOOLS.items():
        if shutil.which(program, path=path):
            there.append(name)
        else:
            missing.append(f"{name} ({purpose}): package {package}")
    steps = [f"if you want it, {line}" for line in missing]
    yield note("Optional tools", f"installed: {', '.join(there)}" if there else "none of them is installed", *steps)


def _cgroup_left() -> tuple[int, int] | None:
    """The memory limit of a container, and how much of it is left; None without a limit."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
        cached = re.search(r"^inactive_file (\d+)", (_CGROUP / "memory.stat").read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    if not limit.isdigit():
        return None
    spare = int(cached[1]) if cached else 0
    return int(limit), max(0, int(limit) - used + spare)
