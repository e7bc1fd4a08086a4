"""The processes in which the clients run."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.chaos.workloads import STUCK
from tests.support.service import REPOSITORY, service_environment

GROUPS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "producers": (("produce", 11), ("produce", 12), ("rejected", 13)),
    "transactions": (("transact", 21), ("transact", 22)),
    "transform": (("transform", 31),),
    "transform-2": (("transform", 32),),
    "readers": (("committed", 41), ("uncommitted", 42), ("watermarks", 43)),
    "groups": (
        ("classic-group", 51),
        ("classic-group", 52),
        ("consumer-group", 53),
        ("consumer-group", 54),
        ("aiokafka-group", 55),
    ),
}
_KILLED: Final = ("transactions", "transform", "transform-2", "producers", "groups")
_RESTART: Final = 100_000
"""What is added to the numbers of the clients of a process that was killed: theirs are never used again."""
_STOP_TIMEOUT_S: Final = 120.0
_DUMP_S: Final = 1.0


class ClientFailed(RuntimeError):
    """A client ended that should have gone on; the message ends with its log."""


class ClientProcesses:
    """Starts, kills and stops the clients."""

    def __init__(self, directory: Path, connection: Mapping[str, str], *, rate: int) -> None:
        self._directory = directory
        self._connection = json.dumps(connection)
        self._rate = rate
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starts: dict[str, int] = {}

    def start(self, names: Sequence[str] = tuple(GROUPS)) -> None:
        """Start processes, all by default."""
        for name in names:
            count = self._starts[name] = self._starts.get(name, -1) + 1
            clients = [(kind, number + count * _RESTART) for kind, number in GROUPS[name]]
            command = [
                *(sys.executable, "-m", "tests.chaos.workloads", str(self._directory / f"{name}-{count}.jsonl")),
                *(self._connection, str(self._rate), *(f"{kind}:{number}" for kind, number in clients)),
            ]
            with (self._directory / f"{name}.log").open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=REPOSITORY, env=service_environment()
                )

    def kill_one(self, chooser: random.Random) -> None:
        """Kill a process in the middle of what it does, and start its successor."""
        name = chooser.choice(_KILLED)
        self._processes[name].kill()
        self._processes[name].wait()
        self.start([name])

    def stop(self, names: Sequence[str]) -> list[str]:
        """Ask processes to finish, and wait for them; returns those that failed or had to be killed."""
        for name in names:
            self._processes[name].terminate()
        failed = []
        for name in names:
            try:
                if self._processes[name].wait(_STOP_TIMEOUT_S) not in (0, STUCK):
                    failed.append(name)
            except subprocess.TimeoutExpired:
                failed.append(name)
                self._processes[name].send_signal(signal.SIGUSR1)  # its log gets the stacks of its threads
                time.sleep(_DUMP_S)
                self._processes[name].kill()
                self._processes[name].wait()
        return failed

    def check(self, names: Sequence[str] = tuple(GROUPS)) -> None:
        """Raise if a client has ended by itself; replace those whose library did not return from a call."""
        for name, process in [(name, self._processes[name]) for name in names if name in self._processes]:
            if process.poll() == STUCK:
                self.start([name])
            elif process.poll() is not None:
                log = (self._directory / f"{name}.log").read_text()
                raise ClientFailed(f"{name} ended with {process.returncode}\n{log[-4000:]}")

    def kill(self) -> None:
        """End all of them at once."""
        for process in self._processes.values():
            process.kill()
            process.wait()
