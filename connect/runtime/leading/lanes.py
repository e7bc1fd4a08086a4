"""Work for each connector is done in order, one piece at a time; that of different connectors side by side."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], None]

_AT_ONCE: Final = 16
_PATIENCE_SECONDS: Final = 1.0
"""How long foreign code may take before others need not wait behind it."""
_LOOK_SECONDS: Final = 0.1


class Lanes:
    """A lane for each name, with a thread only while there is work. Of all lanes, some move at the same time."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._slots = threading.Semaphore(at_once)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Job, Future[None]]]] = {}
        self._is_closed = False
        self._emptied = threading.Condition(self._lock)

    def submit(self, name: str, job: Job) -> "Future[None]":
        """Do this after all that was submitted under the name before; jobs that come after `close` are dropped."""
        done: Future[None] = Future()
        with self._lock:
            if self._is_closed:
                done.cancel()
                return done
            lane = self._waiting.get(name)
            if lane is not None:
                lane.append((job, done))
                return done
            self._waiting[name] = deque([(job, done)])
        threading.Thread(target=self._run, args=(name,), name=f"connector-{name}", daemon=True).start()
        return done

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let others go on while a job waits for something; inside of jobs only."""
        self._slots.release()
        try:
            yield
        finally:
            self._slots.acquire()

    def limited(self, work: Callable[[], T], seconds: float, *, hurry: threading.Event | None = None) -> T:
        """Run code that may hang; TimeoutError when it does, and it is left to itself. Inside of jobs only.

        `hurry` ends the wait for code that is slow: something else is to be done.
        """
        future, finished = begun(work), threading.Event()
        future.add_done_callback(lambda _: finished.set())
        if not finished.wait(min(_PATIENCE_SECONDS, seconds)):
            with self.aside():
                ends_at = time.monotonic() + seconds - _PATIENCE_SECONDS
                while not finished.wait(_LOOK_SECONDS) and time.monotonic() < ends_at:
                    if hurry is not None and hurry.is_set():
                        break
        if not finished.is_set():
            raise TimeoutError
        return future.result()

    def close(self, timeout_seconds: float) -> bool:
        """Take no more work, drop what has not begun, and wait for the rest; False when time was up."""
        with self._lock:
            self._is_closed = True
            for lane in self._waiting.values():
                while len(lane) > 1:
                    lane.pop()[1].cancel()
            return self._emptied.wait_for(lambda: not self._waiting, timeout_seconds)

    def _run(self, name: str) -> None:
        while True:
            with self._lock:
                job, done = self._waiting[name][0]
            self._do(name, job, done)
            with self._lock:
                lane = self._waiting[name]
                lane.popleft()
                if not lane:
                    del self._waiting[name]
                    self._emptied.notify_all()
                    return

    def _do(self, name: str, job: Job, done: "Future[None]") -> None:
        if not done.set_running_or_notify_cancel():
            return
        with self._slots:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - whoever waits is told, and the lane goes on
                log.warning("work for a connector failed", extra={"connector": name, "error": repr(error)})
                done.set_exception(error)
            else:
                done.set_result(None)


def begun(work: Callable[[], T]) -> "Future[T]":
    """Run something on a thread of its own, which may never end."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            future.set_exception(error)

    threading.Thread(target=run, name="foreign-code", daemon=True).start()
    return future
