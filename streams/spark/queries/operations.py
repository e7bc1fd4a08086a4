"""What the service asks of the engine about queries."""

import time
from typing import Any, Final

import msgspec

from streams.errors import EngineError, WrongOption
from streams.formats.registry import RegistrySettings
from streams.model.plan import QueryPlan
from streams.model.pull import PullPlan
from streams.spark.engine.job import EngineContext
from streams.spark.engine.messages import JSON
from streams.spark.queries.job import RUNNING
from streams.spark.queries.pulls import Snapshot, run_select
from streams.spark.queries.results import Results
from streams.spark.queries.spec import QuerySpec, query_folder

_WAIT_MS_MAX: Final = 60_000
_ROWS_MAX: Final = 100_000
_START_S: Final = 5.0
_PAUSE_S: Final = 0.02
_EXPLAIN_MODES: Final = ("simple", "extended", "formatted", "cost", "codegen")


def progress(_: EngineContext, arguments: dict[str, Any]) -> JSON:
    """How far queries are, by name. Arguments: names (all if it is missing)."""
    names = arguments.get("names")
    found = {name: job for name, job in list(RUNNING.items()) if names is None or name in names}
    return {name: job.progress() for name, job in found.items()}


def rows(_: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Take out rows of a push query, and wait for the first. Arguments: name, wait_ms, limit."""
    return _results(str(arguments.get("name"))).take(
        wait_ms=_number(arguments, "wait_ms", 0, _WAIT_MS_MAX), limit=_number(arguments, "limit", 1000, _ROWS_MAX)
    )


def select(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Run the SELECT of a pull query. Arguments: plan, tables, cluster, registry, extensions."""
    plan = msgspec.convert(arguments.get("plan"), PullPlan)
    tables = msgspec.convert(arguments.get("tables") or {}, dict[str, Snapshot])
    found = run_select(
        context.session.newSession(),
        plan,
        tables,
        cluster=msgspec.convert(arguments.get("cluster") or {}, dict[str, str]),
        registry=msgspec.convert(arguments.get("registry") or {}, RegistrySettings),
        extensions=str(arguments.get("extensions") or ""),
    )
    return {"rows": found}


def explain(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Spark's plan of a query. Arguments: plan, cluster, registry, extensions, mode."""
    from streams.spark.queries.frames import explained

    mode = str(arguments.get("mode") or "formatted")
    if mode not in _EXPLAIN_MODES:
        raise WrongOption("mode", mode, f"must be one of {', '.join(_EXPLAIN_MODES)}")
    spec = QuerySpec(
        plan=msgspec.convert(arguments.get("plan"), QueryPlan),
        cluster=msgspec.convert(arguments.get("cluster") or {}, dict[str, str]),
        registry=msgspec.convert(arguments.get("registry") or {}, RegistrySettings),
        folder="",
        extensions=str(arguments.get("extensions") or ""),
    )
    return {"text": explained(context.session.newSession(), spec, mode)}


def forget(context: EngineContext, arguments: dict[str, Any]) -> JSON:
    """Delete what is kept of a query that does not run any more. Arguments: folder, name."""
    folder, name = str(arguments.get("folder") or ""), str(arguments.get("name") or "")
    if not folder or not name:
        raise WrongOption("name", name, "must be given, and the folder of checkpoints, too")
    job = RUNNING.get(name)
    if job is not None and not job.has_failed:
        raise EngineError("Running", f"Query {name} is running: stop it first")
    RUNNING.pop(name, None)
    context.files.delete(query_folder(folder, name))
    return {}


def _results(name: str) -> Results:
    """The queue of a push query; one that was started just now may not be there yet."""
    deadline = time.monotonic() + _START_S
    while (job := RUNNING.get(name)) is None or job.results is None:
        if time.monotonic() > deadline:
            raise EngineError("NotRunning", f"Push query {name} does not run in this engine")
        time.sleep(_PAUSE_S)
    return job.results


def _number(arguments: dict[str, Any], key: str, default: int, most: int) -> int:
    value = arguments.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise WrongOption(key, value, f"must be a whole number from 0 to {most}")
    return value
