"""Jobs and operations that tests give an engine; this runs inside of it."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typing_extensions import override

from streams.spark.engine.job import EngineContext, Job


class Ticking(Job):
    """Notes in a file what is done to it, and counts how often it was looked after."""

    ticks = 0

    @override
    def start(self) -> None:
        self._note("started")

    @override
    def check(self) -> None:
        self.ticks += 1
        if self.ticks == self.spec.get("fails_after"):
            raise ArithmeticError("it must fail")

    @override
    def is_done(self) -> bool:
        return bool(self.ticks == self.spec.get("done_after"))

    @override
    def counters(self) -> dict[str, float]:
        return {"ticks": self.ticks}

    @override
    def stop(self) -> None:
        self._note("stopped")

    def _note(self, what: str) -> None:
        with Path(self.spec["file"]).open("a", encoding="utf-8") as file:
            file.write(f"{self.spec.get('who', '')}{what}\n")


def active_jobs(context: EngineContext, _: dict[str, Any]) -> list[int]:
    """The Spark jobs that run now."""
    return list(context.session.sparkContext.statusTracker().getActiveJobsIds())


def busy_worker(context: EngineContext, arguments: dict[str, Any]) -> None:
    """Keep a Python worker busy for minutes; it says so in a file."""
    told = arguments["file"]

    def work(_: Iterable[int]) -> Iterable[int]:
        with Path(told).open("a", encoding="utf-8") as file:
            file.write("busy\n")
        time.sleep(600)
        return []

    context.session.sparkContext.parallelize(range(1), 1).mapPartitions(work).collect()


def fail_in_worker(context: EngineContext, _: dict[str, Any]) -> None:
    """Raise an error inside a Python worker."""

    def work(_: int) -> int:
        raise ValueError("this row is bad")

    context.session.sparkContext.parallelize(range(1), 1).map(work).collect()
