"""Cleans up a partition directory after a crash: unfinished compactions, deletions and checkpoints."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from core_broker.log.log_file import LogFile
from core_broker.log.scan import BrokenBatch, scan
from core_broker.log.segment import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX, segment_name

log = logging.getLogger(__name__)

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

_TEMPORARY_SUFFIX: Final = ".tmp"
_LEFTOVERS: Final = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX, _TEMPORARY_SUFFIX)


def survey(directory: Path) -> dict[str, int]:
    """The files of a partition directory and their sizes, after the clean-up; a missing directory is created."""
    try:
        files = _list(directory)
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True)
        return {}
    if any(name.endswith(_LEFTOVERS) for name in files) or _orphans(files):
        clear_up(directory, files)
        files = _list(directory)
    return files


def clear_up(directory: Path, files: Iterable[str]) -> None:
    """Delete files that were being deleted or are incomplete, and finish interrupted swaps."""
    names = set(files)
    cleaned = [_base(name) for name in names if name.endswith(LOG_SUFFIX + CLEANED_SUFFIX)]
    _remove(directory, (name for name in names if name.endswith((CLEANED_SUFFIX, DELETED_SUFFIX, _TEMPORARY_SUFFIX))))
    for name in sorted(name for name in names if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        base = _base(name)
        # New segments replace a group only if all are complete: one still being cleaned invalidates those after it.
        if cleaned and base >= min(cleaned):
            _remove(directory, (name,))
        else:
            _finish_swap(directory, base)
    for name in _list(directory):
        if name.endswith(SWAP_SUFFIX):
            path = directory / name
            if (directory / f"{name[:20]}{LOG_SUFFIX}").exists():
                path.replace(directory / name.removesuffix(SWAP_SUFFIX))
            else:
                path.unlink()
    _remove(directory, _orphans(_list(directory)))


def _finish_swap(directory: Path, base: int) -> None:
    """Replace the original segments by the compacted one."""
    swap = directory / f"{segment_name(base)}{LOG_SUFFIX}{SWAP_SUFFIX}"
    end = _end_offset(swap, base)
    if end is None:
        swap.unlink()
        return
    replaced = [
        name for name in _list(directory) if name.endswith(LOG_SUFFIX) and base <= _base(name) < max(end, base + 1)
    ]
    for name in replaced:
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            (directory / f"{segment_name(_base(name))}{suffix}").unlink(missing_ok=True)
    swap.rename(swap.with_name(swap.name.removesuffix(SWAP_SUFFIX)))
    log.info("interrupted compaction finished", extra={"path": str(swap), "replaced": replaced})


def _end_offset(path: Path, base: int) -> int | None:
    """The offset after the last batch of a file; None if it is damaged."""
    file = LogFile(path)
    end = base
    try:
        for _, fields, _ in scan(file, 0, path.stat().st_size):
            end = fields[0] + fields[6] + 1
    except BrokenBatch as error:
        log.error("damaged result of a compaction deleted", extra={"path": str(path), "reason": str(error)})
        return None
    return end


def _orphans(files: Iterable[str]) -> list[str]:
    """Indexes without a log."""
    names = set(files)
    return [name for name in names if name.endswith(INDEX_SUFFIXES) and name[:20] + LOG_SUFFIX not in names]


def _remove(directory: Path, names: Iterable[str]) -> None:
    for name in sorted(names):
        log.info("leftover file deleted", extra={"path": str(directory / name)})
        (directory / name).unlink(missing_ok=True)


def _base(name: str) -> int:
    return int(name[:20])


def _list(directory: Path) -> dict[str, int]:
    with os.scandir(directory) as entries:
        return {entry.name: entry.stat().st_size for entry in entries}
