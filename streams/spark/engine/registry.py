"""Which jobs and operations there are: those of the engine itself, and those that packages name in entry points."""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import cast

from streams.errors import EngineError
from streams.spark.engine.job import JOBS, OPERATIONS, Job, Operation


class Registry:
    """Finds jobs and operations by their names; nothing else can be asked to run."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._own = dict(operations)

    def job(self, name: str) -> type[Job]:
        """The class of a job."""
        return cast("type[Job]", _loaded(JOBS, name, "job"))

    def operation(self, name: str) -> Operation:
        """What carries out an operation."""
        if name in self._own:
            return self._own[name]
        return cast("Operation", _loaded(OPERATIONS, name, "operation", own=self._own))


def _loaded(group: str, name: str, kind: str, *, own: Mapping[str, object] | None = None) -> object:
    found = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        there = ", ".join(sorted([*found, *(own or {})])) or "none"
        raise EngineError(f"Unknown{kind.capitalize()}", f"there is no {kind} {name!r}; there are: {there}")
    return found[name].load()
