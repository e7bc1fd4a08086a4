"""The client of the engine, which starts on first use and is shared by everyone who names the same folder.

with Engine.connect(SparkSettings.read(file=None, environment=os.environ)) as engine:
    engine.call("sql", statement="SELECT 1", limit=10)
"""

import itertools
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Self, TypeVar

import msgspec

from streams.errors import EngineError, EngineUnavailable
from streams.settings import SparkSettings
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.messages import (
    JSON,
    PROTOCOL,
    Action,
    Answer,
    Call,
    EngineInfo,
    Hello,
    JobStatus,
    Quit,
    Request,
    Run,
    Status,
    Stop,
)
from streams.spark.engine.starting import connect_or_start, open_channel
from streams.spark.engine.versions import caudal_version, differing_keys
from streams.spark.engine.wire import BrokenMessage, Channel

T = TypeVar("T")

_ANSWER_TIMEOUT_S: Final = 30.0
_TAKE_OVER_TIMEOUT_S: Final = 150.0
_PAUSE_S: Final = 0.1


class _HungUp(EngineUnavailable):
    """The engine closed the connection before the greeting."""


class Engine:
    """A connection to the engine; jobs started over it end with it. Threads may share it."""

    def __init__(self, channel: Channel, folder: EngineFolder) -> None:
        self._channel = channel
        self._folder = folder
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, SimpleQueue[Answer | None]] = {}
        self._is_over = False
        self.info = self._greet()
        channel.wait_at_most(None)
        threading.Thread(target=self._receive, name="engine-answers", daemon=True).start()

    @classmethod
    def connect(cls, settings: SparkSettings, *, on_progress: Callable[[str], None] = lambda _: None) -> Self:
        """Connect to the engine of the settings' folder, and start it first if none runs.

        `on_progress` gets lines to show. Raises `EngineUnavailable` (or `JavaMissing`) that says what to do.
        """
        folder = EngineFolder(settings.data_dir)
        deadline = time.monotonic() + settings.spark_caudal_start_timeout_ms / 1000
        engine: Self | None = None
        while engine is None:
            try:
                engine = cls(connect_or_start(settings, on_progress), folder)
            except _HungUp:
                # That engine was about to end and took no more connections; wait for the next one.
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
        if keys := differing_keys(settings, engine.info.settings):
            on_progress(f"the engine in {folder.path} runs with a different {', '.join(keys)}; stop it to apply yours")
        return engine

    @classmethod
    def running(cls, settings: SparkSettings) -> Self | None:
        """Connect to the engine if it runs; None when it does not."""
        folder = EngineFolder(settings.data_dir)
        channel = open_channel(folder)
        try:
            return None if channel is None else cls(channel, folder)
        except _HungUp:
            return None

    def call(self, operation: str, **arguments: JSON) -> JSON:
        """Carry out an operation and return its answer; raises `EngineError`, or `EngineUnavailable` if it is gone.

        There is no time-out: close the connection, from any thread, to end the call.
        """
        return self._request(Call(operation=operation, arguments=arguments), object, timeout_seconds=None)

    def run(self, name: str, job: str, spec: JSON) -> None:
        """Start a job that this connection owns: it is stopped as soon as the connection ends.

        A job of that name that another connection owns is fenced: it is stopped first. Returns when the job is about
        to start; `status` says how it went.
        """
        self._request(Run(name=name, job=job, spec=spec), None, timeout_seconds=_TAKE_OVER_TIMEOUT_S)

    def status(self, name: str) -> JobStatus:
        """The status of a job of this connection."""
        return self._request(Status(name=name), JobStatus, timeout_seconds=_ANSWER_TIMEOUT_S)

    def stop(self, name: str, *, timeout_seconds: float) -> None:
        """Stop a job and return when it has ended; raises `EngineError` of kind `TimeoutError` when it does not."""
        action = Stop(name=name, timeout_seconds=timeout_seconds)
        self._request(action, None, timeout_seconds=timeout_seconds + _ANSWER_TIMEOUT_S)

    def quit(self) -> None:
        """End the engine, with everything in it."""
        self._request(Quit(), None, timeout_seconds=_ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """End the connection, and with it its jobs."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _greet(self) -> EngineInfo:
        try:
            self._channel.send(Request(number=0, action=Hello(protocol=PROTOCOL, version=caudal_version())))
            answer = self._channel.receive(Answer)
        except ConnectionError:
            answer = None
        except (OSError, BrokenMessage) as error:
            self.close()
            raise EngineUnavailable(f"The engine of {self._folder.path} does not answer: {error}") from error
        if answer is None:
            self.close()
            raise _HungUp(f"The engine of {self._folder.path} refuses connections; see its log {self._folder.log}")
        if answer.failure is not None:
            self.close()
            raise EngineUnavailable(
                f"The engine of {self._folder.path} cannot be used: {answer.failure.message}. It belongs to another "
                f"version of Caudal: end its process, whose id is in {self._folder.lock}, and try again."
            )
        return msgspec.json.decode(answer.value, type=EngineInfo)

    def _request(self, action: Action, kind: type[T] | None, *, timeout_seconds: float | None) -> T:
        number, answers = next(self._numbers), SimpleQueue[Answer | None]()
        with self._lock:
            if self._is_over:
                raise self._gone()
            self._waiting[number] = answers
        try:
            self._channel.send(Request(number=number, action=action))
            answer = answers.get(timeout=timeout_seconds)
        except BrokenMessage as error:
            raise EngineError("BrokenMessage", str(error)) from error
        except OSError as error:
            raise self._gone() from error
        except Empty:
            reason = f"The engine of {self._folder.path} did not answer within {timeout_seconds:.0f} s"
            raise EngineUnavailable(reason) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise self._gone()
        if answer.failure is not None:
            raise EngineError(answer.failure.kind, answer.failure.message)
        return msgspec.json.decode(answer.value, type=kind)

    def _receive(self) -> None:
        """Hand each answer to the thread that waits for it; wake all of them once no more can come."""
        try:
            while (answer := self._channel.receive(Answer)) is not None:
                with self._lock:
                    waiting = self._waiting.get(answer.number)
                if waiting is not None:
                    waiting.put(answer)
        except (OSError, BrokenMessage):
            pass  # as if the engine had hung up
        finally:
            with self._lock:
                self._is_over = True
                for waiting in self._waiting.values():
                    waiting.put(None)

    def _gone(self) -> EngineUnavailable:
        return EngineUnavailable(f"The engine of {self._folder.path} is gone; its logs in that folder say why")
