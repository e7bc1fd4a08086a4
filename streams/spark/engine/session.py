"""Starts Spark: Java with a classic session on the folder's catalog, and the endpoint for notebooks."""

import contextlib
import logging
import logging.handlers
import os
import re
import shlex
import shutil
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

import streams
from streams.errors import EngineUnavailable
from streams.settings import SparkSettings
from streams.spark.engine.class_archive import archive_file, archive_options
from streams.spark.engine.configuration import (
    CONNECT_TOKEN,
    engine_environment,
    logging_properties,
    python_path,
    scratch_folder,
    spark_configuration,
)
from streams.spark.engine.failures import error_message
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.properties_text import properties_text

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PACKAGE_ROOT: Final = Path(streams.__file__).parents[1]
"""The folder that our packages are in."""
_NOISY_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")
_OUTPUT_FILE_BYTES: Final = 5_000_000
_OUTPUT_LINE_BYTES_MAX: Final = 10_000
_TOKEN: Final = re.compile(r"(\btoken=)[^;\s]+")


class Spark(msgspec.Struct, frozen=True, kw_only=True):
    """A running Spark: its session, Java's process, and the port for notebooks."""

    session: "SparkSession"
    process: "subprocess.Popen[bytes]"
    connect_port: int | None


def start_spark(settings: SparkSettings, folder: EngineFolder) -> Spark:
    """Start Spark; raises `EngineUnavailable` with the reason if it fails."""
    port = _free_port(settings)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    archive = archive_options(archive_file(os.environ))
    configuration = spark_configuration(
        settings,
        folder,
        connect_port=port,
        connect_token="" if port is None else folder.keep_token(settings.of_spark().get(CONNECT_TOKEN)),
        cores=cores,
        archive_options=archive,
    )
    properties = folder.path / "spark.properties"
    _prepare_folder(folder, properties, configuration)
    _prepare_environment(settings, folder, properties)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    process = _start_java(folder)
    log.info("opening the session")
    session = _open_session(folder)
    bound = None if port is None else int(_connect_service(session).localPort())
    return Spark(session=session, process=process, connect_port=bound)


def open_notebook_sessions(session: "SparkSession") -> int:
    """How many notebooks are connected: sessions of Spark Connect that were neither closed nor timed out."""
    return int(_connect_service(session).sessionManager().listActiveSessions().size())


def _prepare_folder(folder: EngineFolder, properties: Path, configuration: dict[str, str]) -> None:
    shutil.rmtree(scratch_folder(folder), ignore_errors=True)
    scratch_folder(folder).mkdir(parents=True, mode=0o700)
    (folder.path / "log4j2.properties").write_text(logging_properties(folder), encoding="utf-8")
    # Not on Java's command line, where every user of the machine could read passwords.
    private = os.open(properties, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(private, "w", encoding="utf-8") as file:
        file.write(properties_text(configuration))


def _prepare_environment(settings: SparkSettings, folder: EngineFolder, properties: Path) -> None:
    """Set the environment that Java and all Python workers inherit."""
    import pyspark

    environment = engine_environment(settings, os.environ, python=sys.executable)
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    environment["PYTHONPATH"] = python_path(PACKAGE_ROOT, os.environ.get("PYTHONPATH", ""), directory=Path.cwd())
    arguments = f"--properties-file {shlex.quote(str(properties))} --load-spark-defaults pyspark-shell"
    environment["PYSPARK_SUBMIT_ARGS"] = arguments
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # Files written to relative paths must not end up in the directory of the client that happened to come first.
    os.chdir(folder.path)


def _start_java(folder: EngineFolder) -> "subprocess.Popen[bytes]":
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    reading, output = os.pipe()
    threading.Thread(target=_log_output, args=(reading, folder.output), name="output", daemon=True).start()
    try:
        gateway = launch_gateway(popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    except Exception as error:
        raise EngineUnavailable(
            f"Java ended while Spark started; see {folder.output} and {folder.spark_log}"
        ) from error
    finally:
        os.close(output)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the only way to use a Java that we started
    process: subprocess.Popen[bytes] = gateway.proc
    return process


def _log_output(reading: int, path: Path) -> None:
    """Copy what Java and Python workers print into a file of bounded size, apart from the engine's own output."""
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=_OUTPUT_FILE_BYTES, backupCount=1, encoding="utf-8")
    with contextlib.closing(handler), os.fdopen(reading, "rb") as source:
        while line := source.readline(_OUTPUT_LINE_BYTES_MAX):
            # Spark's worker for `foreachBatch` prints the address of a notebook's session, with the token in it.
            text = _TOKEN.sub(r"\1...", line.decode(errors="replace").rstrip("\n"))
            handler.emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))


def _open_session(folder: EngineFolder) -> "SparkSession":
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.getOrCreate()
        log.info("opening the catalog")
        session.sql("SHOW DATABASES").collect()
        # Let Spark discover data sources now: it does so once, and has none for good if its helper dies meanwhile.
        java: Any = session._jsparkSession  # noqa: SLF001
        has_sources = bool(java.sessionState().dataSourceManager().dataSourceExists("caudal"))
    except Exception as error:
        raise EngineUnavailable(f"Spark failed to start: {error_message(error)}; see {folder.spark_log}") from error
    if not has_sources:
        raise EngineUnavailable(f"Spark does not find Caudal's data sources; see {folder.spark_log}")
    return session


def _free_port(settings: SparkSettings) -> int | None:
    """The port for Spark Connect; 0, any free one, if it is in use: tables matter more than notebooks."""
    wanted, host = settings.connect_port, settings.spark_caudal_connect_host
    if not wanted:
        return wanted
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            log.warning("port of Spark Connect is in use, using another one", extra={"port": wanted, "why": str(error)})
            return 0
    return wanted


def _connect_service(session: "SparkSession") -> Any:
    """Java's object of the endpoint: Python's API has neither its port nor its sessions."""
    java: Any = session._jvm  # noqa: SLF001
    service = java.java.lang.Class.forName("org.apache.spark.sql.connect.service.SparkConnectService$")
    return getattr(service.getField("MODULE$"), "get")(None)  # noqa: B009 - plain `get` is a method of py4j's own
