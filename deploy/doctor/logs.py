"""What the platform's services have written about themselves, and how much room that takes."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy.doctor.finding import Finding, ok, warning
from deploy.doctor.sizes import GB, size
from deploy.doctor.surroundings import Surroundings

_LARGE: Final = 1 * GB


def logs(surroundings: Surroundings) -> Iterator[Finding]:
    """How large have the logs become?"""
    if surroundings.platform is None:
        return
    for folder in sorted({Path(service.log).parent for service in surroundings.platform.services.values()}):
        total = folder_bytes(folder)
        if total > _LARGE:
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
