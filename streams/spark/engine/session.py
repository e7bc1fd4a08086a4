"""Starts Spark: Java with a classic session on the catalog of the folder, and the endpoint for notebooks."""

import contextlib
import logging
import os
import shlex
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

import streams
from streams.errors import EngineUnavailable
from streams.settings import SparkSettings
from streams.spark.engine.class_archive import archive_file, archive_options
from streams.spark.engine.configuration import (
    engine_environment,
    logging_properties,
    python_path,
    scratch,
    spark_configuration,
)
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.output import output_kept
from streams.spark.engine.properties_text import properties_text

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PACKAGE_ROOT: Final = Path(streams.__file__).parents[1]
"""The folder that our packages are in."""
_NOISY_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")


class Spark(msgspec.Struct, frozen=True, kw_only=True):
    """A Spark that runs: its session, Java's process, and where notebooks connect."""

    session: "SparkSession"
    process: "subprocess.Popen[bytes]"
    connect_port: int | None


def start_spark(settings: SparkSettings, folder: EngineFolder) -> Spark:
    """Start Spark; raises `EngineUnavailable` with the reason when it does not start."""
    port = _free_port(settings)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    classes = archive_options(archive_file(os.environ))
    configuration = spark_configuration(settings, folder, connect_port=port, cores=cores, of_classes=classes)
    _prepare_folder(folder, configuration)
    _prepare_environment(settings, folder)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    process = _start_java(folder)
    log.info("opening the session")
    session = _open_session(folder)
    return Spark(session=session, process=process, connect_port=None if port is None else _connect_port(session))


def open_notebook_sessions(session: "SparkSession") -> int:
    """How many notebooks are connected: sessions of Spark Connect that were neither closed nor forgotten."""
    return int(_connect_service(session).sessionManager().listActiveSessions().size())


def _prepare_folder(folder: EngineFolder, configuration: dict[str, str]) -> None:
    shutil.rmtree(scratch(folder), ignore_errors=True)
    scratch(folder).mkdir(parents=True, mode=0o700)
    (folder.path / "log4j2.properties").write_text(logging_properties(folder), encoding="utf-8")
    # Not on Java's command line, where everybody on the machine could read passwords.
    private = os.open(_properties_file(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(private, "w", encoding="utf-8") as file:
        file.write(properties_text(configuration))


def _properties_file(folder: EngineFolder) -> Path:
    return folder.path / "spark.properties"


def _prepare_environment(settings: SparkSettings, folder: EngineFolder) -> None:
    """Java and all Python workers inherit it."""
    import pyspark

    environment = engine_environment(settings, os.environ, python=sys.executable)
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    environment["PYTHONPATH"] = python_path(PACKAGE_ROOT, os.environ.get("PYTHONPATH", ""), directory=Path.cwd())
    arguments = f"--properties-file {shlex.quote(str(_properties_file(folder)))} --load-spark-defaults pyspark-shell"
    environment["PYSPARK_SUBMIT_ARGS"] = arguments
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # Whatever is written to a path that is not absolute shall not land where the first client happened to be.
    os.chdir(folder.path)


def _start_java(folder: EngineFolder) -> "subprocess.Popen[bytes]":
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    output = output_kept(folder.output)
    try:
        gateway = launch_gateway(popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    except Exception as error:
        raise EngineUnavailable(
            f"Java ended while Spark started; see {folder.output} and {folder.spark_log}"
        ) from error
    finally:
        os.close(output)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the one way to bring a Java of one's own
    process: subprocess.Popen[bytes] = gateway.proc
    return process


def _open_session(folder: EngineFolder) -> "SparkSession":
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.getOrCreate()
        log.info("opening the catalog")
        session.sql("SHOW DATABASES").collect()
        has_sources = _looks_for_sources(session)
    except Exception as error:
        from streams.spark.engine.failures import readable

        raise EngineUnavailable(f"Spark does not start: {readable(error)}; see {folder.spark_log}") from error
    if not has_sources:
        raise EngineUnavailable(f"Spark does not find Caudal's data sources; see {folder.spark_log}")
    return session


def _looks_for_sources(session: "SparkSession") -> bool:
    """Let Spark look for data sources now: it does so once, and if its helper dies meanwhile, it has none for ever."""
    java: Any = session._jsparkSession  # noqa: SLF001
    return bool(java.sessionState().dataSourceManager().dataSourceExists("caudal"))


def _free_port(settings: SparkSettings) -> int | None:
    """The port that Spark Connect is to take; any other when somebody has it, as tables matter more than notebooks."""
    wanted, host = settings.connect_port, settings.spark_caudal_connect_host
    if not wanted:
        return wanted
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            log.warning(
                "port of Spark Connect is taken, another one is used", extra={"port": wanted, "why": str(error)}
            )
            return 0
    return wanted


def _connect_port(session: "SparkSession") -> int:
    return int(_connect_service(session).localPort())


def _connect_service(session: "SparkSession") -> Any:
    """Java's object of the endpoint: no Python API tells its port or its sessions."""
    java: Any = session._jvm  # noqa: SLF001
    service = java.java.lang.Class.forName("org.apache.spark.sql.connect.service.SparkConnectService$")
    return getattr(service.getField("MODULE$"), "get")(None)  # noqa: B009 - plain `get` is a method of py4j's own
