"""One process of a service: its start, output and end."""

import asyncio
import os
import re
import signal
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.launcher.health import is_healthy
from deploy.launcher.log_files import LogFile

_CHUNK_BYTES: Final = 1 << 16
_HEALTH_TIMEOUT_S: Final = 5.0
_HEALTH_PAUSE_S: Final = 0.05
_LAST_WORDS_S: Final = 1.0
"""How long to wait for the output of a dead process; a child of it may keep the pipe open."""
_READY_LINE_BYTES_MAX: Final = 4_096


class NotReady(Exception):
    """A process that could not be started, or was not ready in time."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process has ended."""

    code: int

    def __str__(self) -> str:
        if self.code < 0:
            with suppress(ValueError):
                return f"killed by signal {-self.code} ({signal.Signals(-self.code).name})"
        return f"ended with exit code {self.code}"


class ServiceProcess:
    """A process and its output."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: LogFile) -> None:
        self._process = process
        self._log = log
        self._said_ready = asyncio.Event()
        self._ready_line = re.compile(rf"^caudal {re.escape(name)} ready: ".encode(), re.MULTILINE)
        self._pump = asyncio.create_task(self._copy_output(), name=f"output of {name}")
        self._end = asyncio.create_task(process.wait(), name=f"end of {name}")

    @classmethod
    async def start(
        cls, name: str, settings: Mapping[str, str], log: LogFile, *, file: Path | None = None
    ) -> "ServiceProcess":
        """Start a service in a session of its own, so that Ctrl-C reaches the launcher alone; may raise `NotReady`.

        The `file` has its secrets: every user of the machine can read the command line of a process.
        """
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        words += ["--config", str(file)] if file else []
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "deploy.launcher.child", str(os.getpid()), name, *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise NotReady(f"could not be started: {error}") from error
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def until_ready(self, url: str, *, timeout_s: float, tls: ssl.SSLContext | None = None) -> Exit | None:
        """Wait until it prints its ready line and is healthy; returns how it ended, if it did. Raises `NotReady`."""
        becoming = asyncio.create_task(self._become_ready(url, tls))
        try:
            done, _ = await asyncio.wait((becoming, self._end), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            becoming.cancel()
        if self._end in done:
            return await self.until_end()
        if not done:
            raise NotReady(f"was not ready after {timeout_s:.0f} s")
        return None

    async def until_end(self) -> Exit:
        """Wait until it has ended, and for its last output."""
        code = await asyncio.shield(self._end)
        await asyncio.wait((self._pump,), timeout=_LAST_WORDS_S)
        self._pump.cancel()
        return Exit(code)

    async def stop(self, *, timeout_s: float) -> bool:
        """Ask it to end, and kill it if it takes too long; returns whether it ended by itself."""
        self._send(signal.SIGTERM)
        done, _ = await asyncio.wait((self._end,), timeout=timeout_s)
        if not done:
            self.kill()
        await self.until_end()
        return bool(done)

    def kill(self) -> None:
        """End it at once."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _become_ready(self, url: str, tls: ssl.SSLContext | None) -> None:
        await self._said_ready.wait()
        while not await is_healthy(url, timeout_s=_HEALTH_TIMEOUT_S, tls=tls):  # noqa: ASYNC110 - nothing here tells when
            await asyncio.sleep(_HEALTH_PAUSE_S)

    async def _copy_output(self) -> None:
        assert self._process.stdout is not None
        recent = b""
        while data := await self._process.stdout.read(_CHUNK_BYTES):
            self._log.write(data)
            if not self._said_ready.is_set():
                recent = (recent + data)[-_READY_LINE_BYTES_MAX - len(data) :]
                if self._ready_line.search(recent):
                    self._said_ready.set()
