"""How others use the engine: it is started on first need, shared with all who name the same folder, and outlives none.

with Engine.connect(SparkSettings.read(file=None, environment=os.environ)) as engine:
    engine.call("sql", statement="SELECT 1", limit=10)
"""

from collections.abc import Callable
from typing import Self

from streams.settings import SparkSettings
from streams.spark.engine.messages import JSON, EngineInfo, JobStatus


def _nobody(_: str) -> None:
    """Progress that nobody wants to read."""


class Engine:
    """A connection to the engine; jobs that are started over it end with it. Threads may share it."""

    info: EngineInfo

    @classmethod
    def connect(cls, settings: SparkSettings, *, told: Callable[[str], None] = _nobody) -> Self:
        """Connect to the engine of the settings' folder, and start it first when there is none.

        `told` gets lines of progress. Raises `EngineUnavailable` (or `JavaMissing`) with what to do.
        """
        raise NotImplementedError

    @classmethod
    def running(cls, settings: SparkSettings) -> Self | None:
        """Connect to the engine if it runs; None when it does not."""
        raise NotImplementedError

    def call(self, operation: str, **arguments: JSON) -> JSON:
        """Carry out an operation and give its answer; raises `EngineError`, or `EngineUnavailable` when it is gone."""
        raise NotImplementedError

    def run(self, name: str, job: str, spec: JSON) -> None:
        """Start a job that this connection owns: when the connection ends, it is stopped at once.

        A job of that name that another connection owns is stopped first: it was fenced. Returns when the job is about
        to start; `status` tells what came of it.
        """
        raise NotImplementedError

    def status(self, name: str) -> JobStatus:
        """How a job of this connection fares."""
        raise NotImplementedError

    def stop(self, name: str, *, timeout_seconds: float) -> None:
        """Stop a job and return when it has ended; raises `EngineError` of kind `TimeoutError` when it does not."""
        raise NotImplementedError

    def quit(self) -> None:
        """End the engine, with everything in it."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection, and with it its jobs."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
