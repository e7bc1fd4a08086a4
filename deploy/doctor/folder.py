"""The data folder: whether it can be written, its filesystem, free space, and the size of logs."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy.doctor.finding import Context, Finding, ok, problem, warning
from deploy.launcher.preflight import DISK_FREE_MIN_BYTES
from deploy.views.text import size

_FREE_WANTED: Final = 5_000_000_000
"""For some segments of topics, each of up to a gigabyte, and Spark's tables."""
_INODES_WANTED: Final = 20_000
_LOGS_LARGE: Final = 1_000_000_000
_ELSEWHERE: Final = "put the data elsewhere:  --data DIR  (or set CAUDAL_DATA)"
_UNRELIABLE: Final = {
    **dict.fromkeys(
        ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"),
        "locks and forced writes are not reliable over a network",
    ),
    **dict.fromkeys(("tmpfs", "ramfs"), "it is in memory: all data is lost when the machine restarts"),
    "overlay": "it is the layer of a container: all data is lost with the container",
}


def writable(context: Context) -> Iterator[Finding]:
    """Can data be written where it is to be?"""
    data = context.data
    existing = nearest(data)
    if not existing.is_dir():
        yield problem("Data folder", f"{data} cannot be created: {existing} is not a folder", _ELSEWHERE)
        return
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"caudal")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        yield problem("Data folder", f"{existing} cannot be written: {error.strerror or error}", _ELSEWHERE)
        return
    kind = filesystem_of(existing, Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    created = "" if existing == data else ", created at the first start"
    found = f"{data}{created}, on {kind or 'an unknown filesystem'}"
    if kind in _UNRELIABLE:
        yield warning("Data folder", f"{found}: {_UNRELIABLE[kind]}", _ELSEWHERE)
    else:
        yield ok("Data folder", found)


def room(context: Context) -> Iterator[Finding]:
    """Is there room for records, tables and logs?"""
    existing = nearest(context.data)
    found = os.statvfs(existing)
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    shown = f"{size(free)} of {size(total)} free at {existing}"
    if free < DISK_FREE_MIN_BYTES:
        wanted = f"the platform starts with at least {size(DISK_FREE_MIN_BYTES)}"
        yield problem("Disk", f"{shown}; {wanted}", "make room there", _ELSEWHERE)
    elif free < _FREE_WANTED:
        yield warning(
            "Disk", f"{shown}; one segment of a topic may take 1 GB", "give topics a retention.bytes", _ELSEWHERE
        )
    elif found.f_files and found.f_favail < _INODES_WANTED:
        yield warning("Disk", f"{shown}, but only {found.f_favail:,} more files can be created", _ELSEWHERE)
    else:
        yield ok("Disk", shown)


def logs(context: Context) -> Iterator[Finding]:
    """How large have the logs become?"""
    if context.platform is None:
        return
    for folder in sorted({Path(service.log).parent for service in context.platform.services.values()}):
        total = folder_bytes(folder)
        if total > _LOGS_LARGE:
            yield warning("Logs", f"{size(total)} in {folder}", "older ones (*.1 and so on) may be deleted")
        else:
            yield ok("Logs", f"{size(total)} in {folder}")


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder, and below it."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # gone meanwhile
            total += file.stat().st_size if file.is_file() else 0
    return total


def nearest(path: Path) -> Path:
    """The path itself, or the nearest of its parents that exists."""
    absolute = path.absolute()
    return next((parent for parent in (absolute, *absolute.parents) if parent.exists()), absolute)


def filesystem_of(folder: Path, mounts: str) -> str:
    """The filesystem type of a folder, from the lines of mountinfo; empty if it is not listed."""
    best, kind = "", ""
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        # Later mounts lie over earlier ones at the same point.
        if folder.resolve().is_relative_to(point) and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind
