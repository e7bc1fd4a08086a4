"""The engine process: one per folder, ready when its socket answers; in the background it ends when unused."""

import contextlib
import logging
import logging.handlers
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from core_broker.service import logs
from core_broker.service.lifecycle import STOP_SIGNALS, announce
from streams.errors import EngineUnavailable
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.engine.executors import check_executors, executors_missing, no_executor_message, zip_packages
from streams.spark.engine.folder import EngineFolder, FolderLock
from streams.spark.engine.job import ConnectionCalls, EngineContext, Job, Registry
from streams.spark.engine.jobs import Jobs, RunningJob
from streams.spark.engine.messages import JSON, PROTOCOL, EngineInfo
from streams.spark.engine.operations import OPERATIONS
from streams.spark.engine.server import Server
from streams.spark.engine.session import PACKAGE_ROOT, Spark, open_notebook_sessions, start_spark
from streams.spark.engine.versions import caudal_version, setting_digests
from streams.spark.engine.watchdog import family_memory, start_watchdog
from streams.spark.java import find_java

log = logging.getLogger(__name__)

EXIT_TAKEN: Final = 3
"""Another engine has the folder."""
EXIT_FAILED: Final = 1
_LOG_BYTES: Final = 2_000_000
_JOBS_STOP_S: Final = 5.0
_SESSION_STOP_S: Final = 3.0
_STOP_S: Final = 20.0
_PAUSE_S: Final = 0.25
_EXECUTORS_PAUSE_S: Final = 2.0


def run(settings: SparkSettings, *, is_background: bool) -> int:
    """Run the engine of a folder until it is stopped or, in the background, until it has been idle for a while."""
    folder = EngineFolder(settings.data_dir).create()
    lock = FolderLock.try_acquire(folder) if is_background else _take_over(settings, folder)
    if lock is None:
        sys.stderr.write(f"an engine is already running in {folder.path}\n")
        return EXIT_TAKEN
    lock.sign(os.getpid())
    start_watchdog(lock.fileno())
    handler = logging.handlers.RotatingFileHandler(folder.log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logs.formatter_for("json", is_terminal=False))
    logs.configure()
    root = logging.getLogger()
    root.handlers[:] = [handler] if is_background else [handler, *root.handlers]
    stopping = threading.Event()
    install_signal_handlers(stopping)
    try:
        with _exit_after(settings.spark_caudal_start_timeout_ms / 1000):
            host = Host(settings, folder, stopping, is_background=is_background)
    except EngineUnavailable as error:
        log.error("engine failed to start", extra={"reason": str(error)})
        return _exit(EXIT_FAILED)
    install_signal_handlers(stopping)  # Spark has replaced ours
    announce("spark engine", host.endpoints())
    return _exit(host.serve(idle_seconds=settings.spark_caudal_idle_timeout_ms / 1000 if is_background else None))


class Host:
    """Spark, the jobs in it, and the socket through which clients use them."""

    def __init__(
        self, settings: SparkSettings, folder: EngineFolder, stopping: threading.Event, *, is_background: bool
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._stopping = stopping
        self._is_dead = False
        self._registry = Registry({**OPERATIONS, "info": self._describe})
        self._jobs = Jobs()
        self._began = time.monotonic()
        self._spark = self._start()
        port = self._spark.connect_port
        self.info = EngineInfo(
            protocol=PROTOCOL,
            version=caudal_version(),
            pid=os.getpid(),
            spark_version=self._spark.session.version,
            master=str(self._spark.session.sparkContext.master),
            connect_url=None if port is None else f"sc://{_url_host(settings.spark_caudal_connect_host)}:{port}",
            warehouse=settings.warehouse,
            log=str(folder.spark_log),
            settings=setting_digests(settings),
            is_background=is_background,
        )
        self._socket = folder.choose_socket()
        self._server = Server(self._socket, self)
        seconds = round(time.monotonic() - self._began, 1)
        log.info("engine ready", extra={**self.endpoints(), "pid": os.getpid(), "seconds": seconds})

    def endpoints(self) -> dict[str, str]:
        """Its addresses, for the ready line."""
        notebooks = {"connect": self.info.connect_url} if self.info.connect_url else {}
        socket = str(self._socket)
        return {**notebooks, "socket": socket, "data": str(self._folder.path), "master": self.info.master}

    def serve(self, *, idle_seconds: float | None) -> int:
        """Wait until it is time to end, and end cleanly; the exit code says whether Spark has failed."""
        unused_since = time.monotonic()
        while not self._stopping.wait(_PAUSE_S):
            if idle_seconds is None or self._is_used():
                unused_since = time.monotonic()
            elif time.monotonic() - unused_since >= idle_seconds and self._server.close_unless_used():
                log.info("engine is no longer used", extra={"idle_seconds": idle_seconds})
                break
        if self._is_dead:
            return EXIT_FAILED
        log.info("ending")
        with contextlib.suppress(OSError):
            self._socket.unlink()
        self._server.close()
        # Jobs first, so that they end in order, then Spark; what hangs ends with the process.
        self._jobs.stop_all(_JOBS_STOP_S)
        session_stop = threading.Thread(target=self._spark.session.stop, name="stop", daemon=True)
        session_stop.start()
        session_stop.join(_SESSION_STOP_S)
        log.info("ended")
        return 0

    def calls(self) -> ConnectionCalls:
        """Carries out the operations of a new connection."""
        return ConnectionCalls(self._spark.session, self._settings, self._registry)

    def run(self, name: str, job: str, spec: JSON) -> RunningJob:
        """Start a job, in a session of its own."""
        job_class = self._registry.job(job)

        def make() -> Job:
            return job_class(EngineContext(self._spark.session.newSession(), self._settings), name, spec)

        return self._jobs.run(name, make)

    def quit(self) -> None:
        """End the engine, a moment later, so that the answer still gets out."""
        log.info("a client ends the engine")
        self._stopping.set()

    def _start(self) -> Spark:
        java = find_java(os.environ)
        log.info("starting Java", extra={"master": self._settings.spark_master, "java": java.version})
        spark = start_spark(self._settings, self._folder)
        threading.Thread(target=self._watch_java, args=[spark], name="java", daemon=True).start()
        if not self._settings.is_local:
            log.info("checking the executors")
            patience = self._settings.spark_caudal_start_timeout_ms / 2000
            packages = zip_packages(PACKAGE_ROOT, self._folder.path / "scratch" / "caudal.zip")
            spark.session.sparkContext.addPyFile(str(packages))
            check_executors(spark.session, timeout_seconds=patience)
            watch = threading.Thread(
                target=self._watch_executors, args=[spark, patience], name="executors", daemon=True
            )
            watch.start()
        return spark

    def _watch_java(self, spark: Spark) -> None:
        code = spark.process.wait()
        if not self._stopping.is_set():
            self._is_dead = True
            how = f"signal {-code}" if code < 0 else f"code {code}"
            details = {"reason": f"it ended with {how}", "log": str(self._folder.spark_log)}
            log.error("Java has ended, so the engine ends too", extra=details)
            self._stopping.set()

    def _watch_executors(self, spark: Spark, patience: float) -> None:
        """End the engine if a restarted master has forgotten it: it gets no executors then, and Spark waits forever."""
        last_seen = time.monotonic()
        while not self._stopping.wait(_EXECUTORS_PAUSE_S):
            try:
                is_waiting = executors_missing(spark.session)
            except Exception:  # noqa: BLE001 - py4j raises many errors while Java ends, which `_watch_java` reports
                return
            if not is_waiting:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= patience:
                reason = no_executor_message(self._settings.spark_master, patience)
                log.error("the cluster gives no executors, so the engine ends", extra={"reason": reason})
                self._is_dead = True
                self._stopping.set()

    def _describe(self, _: EngineContext, __: dict[str, JSON]) -> JSON:
        """The operation `info`: what runs here, and how much memory it takes."""
        memory, processes = family_memory()
        return {
            **{key: value for key, value in msgspec.structs.asdict(self.info).items() if key != "settings"},
            "uptime_seconds": time.monotonic() - self._began,
            "memory_bytes": memory,
            "processes": processes,
            "connections": self._server.connections(),
            "notebooks": 0 if self.info.connect_url is None else open_notebook_sessions(self._spark.session),
            "jobs": {name: msgspec.structs.asdict(status) for name, status in self._jobs.statuses().items()},
        }

    def _is_used(self) -> bool:
        if self._server.connections():
            return True
        try:
            return self._spark.connect_port is not None and open_notebook_sessions(self._spark.session) > 0
        except Exception:  # noqa: BLE001 - py4j raises many things when Java is about to be gone
            return False


def _take_over(settings: SparkSettings, folder: EngineFolder) -> FolderLock | None:
    """The lock of the folder: a background engine is ended for it. None if the engine there was started explicitly."""
    deadline = time.monotonic() + settings.spark_caudal_start_timeout_ms / 1000
    while (lock := FolderLock.try_acquire(folder)) is None and time.monotonic() < deadline:
        try:
            running = Engine.running(settings)
            if running is not None:
                with running:
                    if not running.info.is_background:
                        return None
                    running.quit()
        except EngineUnavailable:
            pass  # it is about to end, or hangs: the lock decides
        time.sleep(_PAUSE_S)
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        thread.join(_PAUSE_S)  # the watchdog is forked next, which must happen without threads
    return lock


def _exit(code: int) -> int:
    """Exit now: threads of libraries must not keep the process alive, and the watchdog ends what they started."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def install_signal_handlers(stopping: threading.Event) -> None:
    """Set the event on the first signal to stop; exit at once on the second."""

    def handle(number: int, _: object) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        log.info("stopping", extra={"signal": signal.Signals(number).name})
        stopping.set()
        # The process ends even if something hangs.
        timer = threading.Timer(_STOP_S, os._exit, args=[128 + number])
        timer.daemon = True
        timer.start()

    for number in STOP_SIGNALS:
        signal.signal(number, handle)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@contextmanager
def _exit_after(seconds: float) -> Iterator[None]:
    """Exit the process if the block takes longer: calls into Java cannot be interrupted."""

    def give_up() -> None:
        log.error("engine did not start in time", extra={"seconds": seconds})
        logging.shutdown()
        os._exit(EXIT_FAILED)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _url_host(host: str) -> str:
    # Spark's client shows its token without TLS to `localhost` alone, and to no address.
    if host in ("0.0.0.0", "127.0.0.1", "::", "::1"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
