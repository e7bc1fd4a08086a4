"""The life of an engine process: one per folder, ready when its socket answers, gone when nobody needs it."""

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
from streams.spark.engine.calls import ConnectionCalls
from streams.spark.engine.client import Engine
from streams.spark.engine.executors import are_missing, bring_packages, check_executors, nobody_works
from streams.spark.engine.folder import EngineFolder, FolderLock
from streams.spark.engine.job import EnginePlace, Job
from streams.spark.engine.jobs import Jobs, RunningJob
from streams.spark.engine.messages import JSON, PROTOCOL, EngineInfo
from streams.spark.engine.operations import OPERATIONS
from streams.spark.engine.registry import Registry
from streams.spark.engine.server import Server
from streams.spark.engine.session import PACKAGE_ROOT, Spark, open_notebook_sessions, start_spark
from streams.spark.engine.versions import digests_of, own_version
from streams.spark.engine.watchdog import family_memory, keep_watch
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
    """Be the engine of a folder until it is told to stop, or until nobody has needed it for a while (background)."""
    folder = EngineFolder(settings.data_dir).create()
    lock = FolderLock.taken(folder) if is_background else _lock_taken_over(settings, folder)
    if lock is None:
        sys.stderr.write(f"an engine runs in {folder.path} already\n")
        return EXIT_TAKEN
    lock.sign(os.getpid())
    keep_watch(lock.fileno())
    _log_to(folder, with_stderr=not is_background)
    told = threading.Event()
    heed_signals(told)
    try:
        with _limited(settings.spark_caudal_start_timeout_ms / 1000):
            host = Host(settings, folder, told, is_background=is_background)
    except EngineUnavailable as error:
        log.error("engine does not start", extra={"reason": str(error)})
        return _leave(EXIT_FAILED)
    heed_signals(told)  # Spark has put a handler of its own in the place of ours
    announce("spark engine", host.endpoints())
    return _leave(host.live(idle_seconds=settings.spark_caudal_idle_timeout_ms / 1000 if is_background else None))


class Host:
    """Spark, the jobs in it, and the socket through which others use them."""

    def __init__(
        self, settings: SparkSettings, folder: EngineFolder, told: threading.Event, *, is_background: bool
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._is_background = is_background
        self._told = told
        self._is_dead = False
        self._registry = Registry({**OPERATIONS, "info": self._told_info})
        self._jobs = Jobs()
        self._began = time.monotonic()
        self._spark = self._started()
        self.info = self._own_info()
        self._socket = folder.choose_socket()
        self._server = Server(self._socket, self)
        seconds = round(time.monotonic() - self._began, 1)
        log.info("engine ready", extra={**self.endpoints(), "pid": os.getpid(), "seconds": seconds})

    def endpoints(self) -> dict[str, str]:
        """Where it is reached."""
        notebooks = {"connect": self.info.connect_url} if self.info.connect_url else {}
        return {**notebooks, "socket": str(self._socket), "master": self.info.master}

    def live(self, *, idle_seconds: float | None) -> int:
        """Wait until it is time to end, and end cleanly; the exit code tells whether that was wanted."""
        unused_since = time.monotonic()
        while not self._told.wait(_PAUSE_S):
            if idle_seconds is None or self._is_used():
                unused_since = time.monotonic()
            elif time.monotonic() - unused_since >= idle_seconds and self._server.close_unless_used():
                log.info("nobody needs the engine any more", extra={"idle_seconds": idle_seconds})
                break
        if self._is_dead:
            return EXIT_FAILED
        self._end()
        return 0

    def calls(self) -> ConnectionCalls:
        """Somebody who carries out the operations of a new connection."""
        return ConnectionCalls(self._spark.session, self._settings, self._registry)

    def run(self, name: str, job: str, spec: JSON) -> RunningJob:
        """Start a job, in a session of its own."""
        made = self._registry.job(job)

        def make() -> Job:
            return made(EnginePlace(self._spark.session.newSession(), self._settings), name, spec)

        return self._jobs.run(name, make)

    def quit(self) -> None:
        """End the engine, a moment later: the answer is on its way."""
        log.info("asked to end")
        self._told.set()

    def _started(self) -> Spark:
        java = find_java(os.environ)
        log.info("starting Java", extra={"master": self._settings.spark_master, "java": java.version})
        spark = start_spark(self._settings, self._folder)
        threading.Thread(target=self._watch_java, args=[spark], name="java", daemon=True).start()
        if not self._settings.is_local:
            log.info("checking the executors")
            patience = self._settings.spark_caudal_start_timeout_ms / 2000
            bring_packages(spark.session, PACKAGE_ROOT, self._folder.path / "scratch" / "caudal.zip")
            check_executors(spark.session, timeout_seconds=patience)
            threading.Thread(
                target=self._watch_executors, args=[spark, patience], name="executors", daemon=True
            ).start()
        return spark

    def _watch_java(self, spark: Spark) -> None:
        code = spark.process.wait()
        if not self._told.is_set():
            self._is_dead = True
            how = f"signal {-code}" if code < 0 else f"code {code}"
            details = {"reason": f"it ended with {how}", "log": str(self._folder.spark_log)}
            log.error("Java is gone, and the engine with it", extra=details)
            self._told.set()

    def _watch_executors(self, spark: Spark, patience: float) -> None:
        """A cluster whose master was lost may have forgotten us: it sends nobody any more, and Spark waits for ever."""
        last_seen = time.monotonic()
        while not self._told.wait(_EXECUTORS_PAUSE_S):
            try:
                is_waiting = are_missing(spark.session)
            except Exception:  # noqa: BLE001 - py4j raises many things when Java is about to be gone, which is told
                return
            if not is_waiting:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= patience:
                reason = nobody_works(self._settings.spark_master, patience)
                log.error("the cluster is gone, and the engine with it", extra={"reason": reason})
                self._is_dead = True
                self._told.set()

    def _own_info(self) -> EngineInfo:
        context, port = self._spark.session.sparkContext, self._spark.connect_port
        return EngineInfo(
            protocol=PROTOCOL,
            version=own_version(),
            pid=os.getpid(),
            spark_version=self._spark.session.version,
            master=str(context.master),
            connect_url=None if port is None else f"sc://{_url_host(self._settings.spark_caudal_connect_host)}:{port}",
            warehouse=self._settings.warehouse,
            log=str(self._folder.spark_log),
            settings=digests_of(self._settings),
            is_background=self._is_background,
        )

    def _told_info(self, _: EnginePlace, __: dict[str, JSON]) -> JSON:
        """The operation `info`: what runs here, and how much it takes."""
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

    def _end(self) -> None:
        """Jobs first, so that they end in order; then Spark. What hangs is left to the end of the process."""
        log.info("ending")
        with contextlib.suppress(OSError):
            self._socket.unlink()
        self._server.close()
        self._jobs.stop_all(_JOBS_STOP_S)
        stopping = threading.Thread(target=self._spark.session.stop, name="stop", daemon=True)
        stopping.start()
        stopping.join(_SESSION_STOP_S)
        log.info("ended")


def _lock_taken_over(settings: SparkSettings, folder: EngineFolder) -> FolderLock | None:
    """The right to the folder: an engine that a client has started in passing makes room. None when another stays."""
    deadline = time.monotonic() + settings.spark_caudal_start_timeout_ms / 1000
    while (lock := FolderLock.taken(folder)) is None and time.monotonic() < deadline:
        try:
            running = Engine.running(settings)
            if running is not None:
                with running:
                    if not running.info.is_background:
                        return None
                    running.quit()
        except EngineUnavailable:
            pass  # it is about to end, or hangs: its lock tells
        time.sleep(_PAUSE_S)
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        thread.join(_PAUSE_S)  # the watchdog is forked next, which must happen without threads
    return lock


def _leave(code: int) -> int:
    """End now: threads of others must not keep the process, and the watchdog ends what they have started."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def heed_signals(told: threading.Event) -> None:
    """Set the event when the process is asked to end; asked a second time, it ends at once."""

    def handle(number: int, _: object) -> None:
        if told.is_set():
            os._exit(128 + number)
        log.info("stopping", extra={"signal": signal.Signals(number).name})
        told.set()
        _end_at_last(128 + number)

    for number in STOP_SIGNALS:
        signal.signal(number, handle)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _end_at_last(code: int) -> None:
    """Whatever hangs, the process does not stay."""
    timer = threading.Timer(_STOP_S, os._exit, args=[code])
    timer.daemon = True
    timer.start()


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End the process when what is inside takes longer: calls into Java cannot be interrupted."""

    def give_up() -> None:
        log.error("engine does not start in time", extra={"seconds": seconds})
        logging.shutdown()
        os._exit(EXIT_FAILED)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _log_to(folder: EngineFolder, *, with_stderr: bool) -> None:
    """Log to a file of bounded size, and to stderr when somebody may look there."""
    handler = logging.handlers.RotatingFileHandler(folder.log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logs.formatter_for("json", is_terminal=False))
    logs.configure()
    root = logging.getLogger()
    root.handlers[:] = [handler, *(root.handlers if with_stderr else [])]


def _url_host(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
