"""Running jobs: each has a thread and an owner, and only one of a name runs at a time."""

import logging
import threading
import traceback
from collections.abc import Callable
from typing import Final

from streams.errors import EngineError
from streams.spark.engine.job import Job
from streams.spark.engine.messages import JobState, JobStatus

log = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 0.2
FENCED: Final = "Fenced"
"""The kind of error of a job whose name another connection has taken."""
_TRACE_CHARACTERS_MAX: Final = 64_000
_TAKE_OVER_TIMEOUT_S: Final = 60.0


class RunningJob:
    """One job, from its start until it has ended, in a thread of its own."""

    def __init__(self, name: str, make: Callable[[], Job], *, on_end: Callable[["RunningJob"], None]) -> None:
        self.name = name
        self._make = make
        self._on_end = on_end
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._state: JobState = "starting"
        self._error: str | None = None
        self._error_kind: str | None = None
        self._counters: dict[str, float] = {}
        threading.Thread(target=self._run, name=f"job-{name}", daemon=True).start()

    @property
    def status(self) -> JobStatus:
        """Its state, error and counters."""
        return JobStatus(
            state=self._state, error=self._error, error_kind=self._error_kind, counters=dict(self._counters)
        )

    def stop_soon(self, *, fenced: bool = False) -> None:
        """Ask it to end; `fenced` if another connection runs a job of this name from now on."""
        if fenced and self._error_kind is None and not self._ended.is_set():
            self._error, self._error_kind = "another connection runs a job of this name now", FENCED
        self._stop.set()

    def wait_until_ended(self, timeout_seconds: float) -> bool:
        """Whether it ends within the time."""
        return self._ended.wait(timeout_seconds)

    def _run(self) -> None:
        job: Job | None = None
        try:
            job = self._make()
            job.start()
            self._state = "running"
            while not self._stop.wait(CHECK_INTERVAL_S):
                job.check()
                self._counters = job.counters()
                if job.is_done():
                    break
        except Exception as error:  # noqa: BLE001 - whatever a job raises is its failure, which its owner sees
            self._fail(error)
        try:
            if job is not None:
                job.stop()
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        self._state = "ended" if self._error_kind is None else "failed"
        self._ended.set()
        self._on_end(self)
        log.info("job ended", extra={"job": self.name, "error_kind": self._error_kind})

    def _fail(self, error: Exception) -> None:
        """Keep the first error: later ones usually follow from it."""
        if self._error_kind is None:
            trace = "".join(traceback.format_exception(error))
            self._error, self._error_kind = trace[-_TRACE_CHARACTERS_MAX:], type(error).__name__
            self._state = "failed"


class Jobs:
    """All jobs of an engine by name; each has one owner."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, RunningJob] = {}
        self._turns: dict[str, threading.Lock] = {}

    def run(self, name: str, make: Callable[[], Job]) -> RunningJob:
        """Start a job; one of the same name that another connection owns is stopped first."""
        with self._lock:
            turn = self._turns.setdefault(name, threading.Lock())
        if not turn.acquire(timeout=_TAKE_OVER_TIMEOUT_S):
            raise EngineError("TimeoutError", f"other connections are taking over job {name}; try again")
        try:
            with self._lock:
                other = self._jobs.get(name)
            if other is not None:
                other.stop_soon(fenced=True)
                if not other.wait_until_ended(_TAKE_OVER_TIMEOUT_S):
                    reason = f"job {name} of another connection did not end within {_TAKE_OVER_TIMEOUT_S:.0f} s"
                    raise EngineError("TimeoutError", reason)
            started = RunningJob(name, make, on_end=self._forget)
            with self._lock:
                self._jobs[name] = started
            log.info("job started", extra={"job": name})
            return started
        finally:
            turn.release()

    def stop_all(self, timeout_seconds: float) -> None:
        """End every job; used when the engine ends."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.stop_soon()
        for job in jobs:
            job.wait_until_ended(timeout_seconds)

    def statuses(self) -> dict[str, JobStatus]:
        """The status of each running job."""
        with self._lock:
            return {name: job.status for name, job in self._jobs.items()}

    def _forget(self, job: RunningJob) -> None:
        """A job has ended; its owner keeps its status."""
        with self._lock:
            if self._jobs.get(job.name) is job:
                del self._jobs[job.name]
