"""The door to the engine: it is started when first needed, and connected to again when it was gone."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from streams.errors import EngineUnavailable
from streams.model.plan import QueryPlan
from streams.model.pull import PullPlan
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.engine.messages import JobStatus

JSON: TypeAlias = Any
T = TypeVar("T")
_QUICK_SECONDS: Final = 60.0
_SLOW_SECONDS: Final = 180.0
_LONG_SECONDS: Final = 6 * 3600.0
"""SELECTs of Spark may take long."""


class EngineDoor:
    """Every call may raise `EngineUnavailable` or `EngineError`. Threads may share it."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        cluster: Mapping[str, str],
        registry: JSON,
        extensions: str = "",
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._parts: dict[str, JSON] = {"cluster": dict(cluster), "registry": registry, "extensions": extensions}
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._connecting = threading.Lock()
        self._closed = threading.Event()
        self._engine: Engine | None = None
        self._generation = 0

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._engine is not None

    @property
    def generation(self) -> int:
        """Increased with every new connection: jobs of earlier ones have ended."""
        return self._generation

    def run(self, name: str, job: str, spec: JSON) -> None:
        """Start a job that ends with the connection; one of that name that runs elsewhere is stopped first."""
        self._with_engine(lambda engine: engine.run(name, job, spec))

    def status(self, name: str) -> JobStatus:
        """The status of a job."""
        return self._with_engine(lambda engine: engine.status(name))

    def stop(self, name: str, *, timeout_seconds: float = 30.0) -> None:
        """Stop a job; nothing happens without a connection, because its jobs have ended."""
        engine = self._engine
        if engine is not None:
            self._with_engine(lambda found: found.stop(name, timeout_seconds=timeout_seconds))

    def progress(self, names: Iterable[str] | None = None) -> dict[str, JSON]:
        """The progress of queries, by name; empty if the engine is not connected to. Never starts it."""
        if self._engine is None:
            return {}
        wanted = None if names is None else list(names)
        found: dict[str, JSON] = self.call("streams-progress", within_seconds=_QUICK_SECONDS, names=wanted)
        return found

    def rows(self, name: str, *, wait_ms: int, limit: int) -> dict[str, JSON]:
        """The next rows of a query of a client; they are taken out."""
        within = wait_ms / 1000 + _QUICK_SECONDS
        found: dict[str, JSON] = self.call(
            "streams-rows", within_seconds=within, name=name, wait_ms=wait_ms, limit=limit
        )
        return found

    def select(self, plan: PullPlan, tables: Mapping[str, JSON]) -> list[list[JSON]]:
        """The rows of a pull query that Spark answers; `tables` names an Arrow file and its columns for each."""
        found = self.call("streams-select", plan=msgspec.to_builtins(plan), tables=dict(tables), **self._parts)
        rows: list[list[JSON]] = found["rows"]
        return rows

    def explain(self, plan: QueryPlan) -> str:
        """Spark's plan of a query."""
        return str(self.call("streams-explain", plan=msgspec.to_builtins(plan), **self._parts)["text"])

    def forget(self, folder: str, name: str) -> None:
        """Remove the checkpoints of a query that has gone."""
        self.call("streams-forget", within_seconds=_SLOW_SECONDS, folder=folder, name=name)

    def sql(self, statement: str, *, limit: int = 1000) -> dict[str, JSON]:
        """Run a statement of Spark's own SQL: columns, rows, and whether there were more."""
        found: dict[str, JSON] = self.call("sql", statement=statement, limit=limit)
        return found

    def call(self, operation: str, *, within_seconds: float = _LONG_SECONDS, **arguments: JSON) -> JSON:
        """Carry out any operation of the engine. One that takes too long ends the connection, and with it all jobs,
        because the engine must be hanging."""
        engine = self._connected()
        outcome: Future[JSON] = Future()

        def ask() -> None:
            try:
                outcome.set_result(engine.call(operation, **arguments))
            except BaseException as error:  # noqa: BLE001 - raised by the caller
                outcome.set_exception(error)

        threading.Thread(target=ask, name=f"engine-{operation}", daemon=True).start()
        try:
            return outcome.result(within_seconds)
        except TimeoutError:
            self._drop(engine)
            raise EngineUnavailable(f"The engine did not carry out {operation} within {within_seconds:g} s") from None
        except EngineUnavailable:
            self._drop(engine)
            raise

    def close(self) -> None:
        """End the connection, and with it its jobs, for good."""
        self._closed.set()
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _with_engine(self, ask: Callable[[Engine], T]) -> T:
        engine = self._connected()
        try:
            return ask(engine)
        except EngineUnavailable:
            self._drop(engine)
            raise

    def _connected(self) -> Engine:
        engine = self._engine
        if engine is not None:
            return engine
        with self._connecting:
            if self._engine is None:
                self._connect()
            engine = self._engine
        if engine is None:
            raise EngineUnavailable("The engine has ended just now. Try again")
        return engine

    def _connect(self) -> None:
        if self._closed.is_set():
            raise EngineUnavailable("The server is shutting down")
        engine = Engine.connect(self._settings, on_progress=self._on_progress)
        with self._lock:
            self._engine = engine
            self._generation += 1
        if self._closed.is_set():
            self.close()

    def _drop(self, engine: Engine) -> None:
        with self._lock:
            if self._engine is engine:
                self._engine = None
        engine.close()
