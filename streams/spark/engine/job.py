"""What the engine can be asked to do: jobs, which run until they are stopped, and operations, which return an answer.

Both are found by their entry points (groups `caudal.spark.jobs` and `caudal.spark.operations`); nothing else can run.
"""

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from streams.errors import EngineError
from streams.settings import SparkSettings
from streams.spark.engine.messages import JSON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streams.spark.files import Files
    from streams.spark.tables import Tables

_JOBS: Final = "caudal.spark.jobs"
_OPERATIONS: Final = "caudal.spark.operations"


class EngineContext:
    """What jobs and operations work with: a Spark session on the shared catalog, and what is built on it."""

    def __init__(self, session: "SparkSession", settings: SparkSettings) -> None:
        self.session = session
        self.settings = settings

    @cached_property
    def files(self) -> "Files":
        """The file systems that Spark knows."""
        from streams.spark.files import Files

        return Files(self.session)

    @cached_property
    def tables(self) -> "Tables":
        """The tables of the catalog."""
        from streams.spark.tables import Tables

        return Tables(self.session, self.files, self.settings)


class Job(ABC):
    """Runs in the engine until it is stopped, fails, or the connection that owns it ends. One thread calls it."""

    def __init__(self, context: EngineContext, name: str, spec: JSON) -> None:
        self.context = context
        self.name = name
        self.spec = spec

    @abstractmethod
    def start(self) -> None:
        """Start; an exception fails the job, and `stop` is called all the same."""

    @abstractmethod
    def check(self) -> None:
        """Raise if the job has failed; called about every 200 ms."""

    def counters(self) -> dict[str, float]:
        """Numbers for its owner; called after each check."""
        return {}

    def is_done(self) -> bool:
        """True when nothing is left to do: the job is then stopped."""
        return False

    @abstractmethod
    def stop(self) -> None:
        """Stop everything that was started; called once, also after a failure."""


Operation: TypeAlias = Callable[[EngineContext, dict[str, Any]], JSON]
"""Takes the arguments of a call and returns its answer; runs in a thread of its own."""


class Registry:
    """Finds jobs and operations by name: those of the engine, and those that packages declare as entry points."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._own = dict(operations)

    def job(self, name: str) -> type[Job]:
        """The class of a job."""
        return cast("type[Job]", _load(_JOBS, name, "job", own=()))

    def operation(self, name: str) -> Operation:
        """The function that carries out an operation."""
        return self._own.get(name) or cast("Operation", _load(_OPERATIONS, name, "operation", own=self._own))


def _load(group: str, name: str, kind: str, *, own: "Mapping[str, object] | tuple[()]") -> object:
    found = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        known = ", ".join(sorted([*found, *own])) or "none"
        raise EngineError(f"Unknown{kind.capitalize()}", f"there is no {kind} {name!r}; there are: {known}")
    return found[name].load()


class ConnectionCalls:
    """The operations of one connection: in a session of its own on the shared catalog, and cancelled with it."""

    def __init__(self, session: "SparkSession", settings: SparkSettings, registry: Registry) -> None:
        self._shared = session
        self._settings = settings
        self._registry = registry
        self._group = f"connection-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._context: EngineContext | None = None
        self._running = 0
        self._is_cancelled = False

    def carry_out(self, operation: str, arguments: dict[str, JSON]) -> JSON:
        """Return the answer of an operation."""
        work = self._registry.operation(operation)
        with self._lock:
            if self._is_cancelled:
                raise ConnectionError("the client has disconnected")
            if self._context is None:
                self._context = EngineContext(self._shared.newSession(), self._settings)
            context = self._context
            self._running += 1
        # Interrupts threads as well: a task in Python would go on reading otherwise.
        context.session.sparkContext.setJobGroup(self._group, operation, interruptOnCancel=True)
        try:
            return work(context, arguments)
        finally:
            with self._lock:
                self._running -= 1

    def cancel(self) -> None:
        """Cancel the Spark jobs of a client that has disconnected."""
        with self._lock:
            self._is_cancelled = True
            is_busy = self._running > 0
        if is_busy:
            context = self._shared.sparkContext._jsc.sc()  # noqa: SLF001 - Python's API cannot cancel future jobs
            context.cancelJobGroupAndFutureJobs(self._group)
