"""How much memory a process and all that it has started take."""

from collections import defaultdict
from pathlib import Path
from typing import Final

_PROCESSES: Final = Path("/proc")


def memory_of(pid: int) -> int:
    """Bytes of a process and its descendants, pages that they share counted once; 0 where the system does not tell."""
    children = _children()
    family, waiting = set[int](), [pid]
    while waiting:
        member = waiting.pop()
        if member not in family:
            family.add(member)
            waiting += children.get(member, ())
    return sum(_memory(member) for member in family)


def _children() -> dict[int, list[int]]:
    """Every process by the one that has started it."""
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
