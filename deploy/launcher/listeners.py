"""Which processes listen on which ports of this machine, from /proc."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"
_COMMAND_LENGTH_MAX: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A process that listens; without a process id if it belongs to another user."""

    pid: int | None
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.pid else "a process of another user"


def listeners(ports: Iterable[int], proc: Path = Path("/proc")) -> dict[int, Listener]:
    """The processes that listen on these ports; free ports are left out."""
    wanted = set(ports)
    inodes: dict[str, int] = {}
    for name in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a machine may have no IPv6
            found = parse_listening((proc / "net" / name).read_text(encoding="ascii"))
            inodes |= {inode: port for inode, port in found if port in wanted}
    owners: dict[str, Listener] = {}
    for folder in proc.glob("[0-9]*") if inodes else ():
        owners |= {
            inode: Listener(pid=int(folder.name), command=_command_of(folder))
            for inode in inodes.keys() & _sockets_of(folder) - owners.keys()
        }
    return {port: owners.get(inode, Listener(pid=None, command="")) for inode, port in inodes.items()}


def parse_listening(table: str) -> Iterator[tuple[str, int]]:
    """Inode and port of every listening socket in the text of /proc/net/tcp or tcp6."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENING:
            yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _sockets_of(process: Path) -> set[str]:
    found = set()
    with suppress(OSError):  # it has ended, or belongs to another user
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                    found.add(match[1])
    return found


def _command_of(process: Path) -> str:
    """Its command line without the folder of the program, cut to fit into a line."""
    with suppress(OSError):
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        line = " ".join([words[0].rpartition("/")[2], *words[1:]]).strip()
        return line if len(line) <= _COMMAND_LENGTH_MAX else f"{line[:_COMMAND_LENGTH_MAX]}…"
    return "?"
