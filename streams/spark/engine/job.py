"""What the engine can be asked to do: jobs, which run until they are stopped, and operations, which give an answer.

Both are found by their entry points (groups `caudal.spark.jobs` and `caudal.spark.operations`): nothing else runs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streams.settings import SparkSettings
from streams.spark.engine.messages import JSON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streams.spark.files import Files
    from streams.spark.tables import Tables

JOBS: Final = "caudal.spark.jobs"
OPERATIONS: Final = "caudal.spark.operations"


class EnginePlace:
    """What jobs and operations are given: a Spark session on the shared catalog, and what is built upon it."""

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
    """Something that runs in the engine until it is stopped, fails, or its owner is gone. One thread calls it."""

    def __init__(self, place: EnginePlace, name: str, spec: JSON) -> None:
        self.place = place
        self.name = name
        self.spec = spec

    @abstractmethod
    def start(self) -> None:
        """Begin; what is raised here is the job's failure, and `stop` is called all the same."""

    @abstractmethod
    def check(self) -> None:
        """Raise when it has failed; called about every 200 ms."""

    def counters(self) -> dict[str, float]:
        """Numbers for whoever watches; called after each check."""
        return {}

    def is_done(self) -> bool:
        """True when there is nothing left to do: it is stopped, and has ended."""
        return False

    @abstractmethod
    def stop(self) -> None:
        """End everything that was begun; called once, also after a failure."""


Operation: TypeAlias = Callable[[EnginePlace, dict[str, Any]], JSON]
"""Takes the arguments of a call and gives its answer; runs in a thread of its own."""
