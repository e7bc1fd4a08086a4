"""How much memory a process holds, and how much it held at most while something ran."""

import re
from pathlib import Path
from typing import Self


def resident_bytes(pid: int | str = "self", *, field: str = "VmRSS") -> int:
    """Resident memory now, or another line of /proc/<pid>/status (VmHWM is the peak)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None, f"/proc/{pid}/status has no {field}"
    return int(found[1]) * 1024


class PeakMemory:
    """Measures by how much the memory of this process grew at its highest point inside a `with` block."""

    growth_bytes = 0

    def __enter__(self) -> Self:
        Path("/proc/self/clear_refs").write_text("5")  # starts the peak (VmHWM) anew
        self._before = resident_bytes()
        return self

    def __exit__(self, *failure: object) -> None:
        self.growth_bytes = max(0, resident_bytes(field="VmHWM") - self._before)
