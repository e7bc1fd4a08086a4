"""What Spark is told at its start: our choices, which any property of the operator overrides."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from streams.settings import SparkSettings
from streams.spark.engine.folder import EngineFolder

_CONNECT_PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_TASK_TRIES: Final = 4
_LOOPBACK: Final = "127.0.0.1"
_LOG_BYTES: Final = "10MB"


def spark_configuration(
    settings: SparkSettings,
    folder: EngineFolder,
    *,
    connect_port: int | None,
    cores: int,
    of_classes: Sequence[str] = (),
) -> dict[str, str]:
    """Every property that Spark is started with; `connect_port` is that of Spark Connect, None for none, `of_classes`
    are Java's options about an archive of classes."""
    given = settings.of_spark()
    ours = {
        "spark.app.name": "caudal",
        "spark.driver.maxResultSize": "512m",
        "spark.local.dir": str(scratch(folder)),
        # How long Java and Python wait for each other; on a machine with much else to do 15 s are soon over.
        "spark.python.authenticate.socketTimeout": "60s",
        # Tasks of queries that stream must not wait until a long query of a person has ended.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # What was written by one session is seen by the others: they may keep a table's files in mind only this long.
        "spark.sql.metadataCacheTTLSeconds": "1",
        # Hive on Derby cannot choose partitions by some types, dates among them: Spark then does it itself.
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
        # Types of columns grow as schemas do; Hive would forbid it.
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Delta tables that are read through Python skip files by it.
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": settings.warehouse,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_of_the_metastore(folder),
        **(_of_one_machine(cores) if settings.is_local else {}),
    }
    return {
        **ours,
        **given,
        "spark.master": master(settings.spark_master, cores=cores),
        "spark.driver.extraJavaOptions": _java_options(
            folder, of_classes, given.get("spark.driver.extraJavaOptions", "")
        ),
        **_of_connect(settings, given, port=connect_port),
    }


def master(given: str, *, cores: int) -> str:
    """The master as it is given to Spark: in `local[N]` a task is tried again, as on a cluster, when a worker dies."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", given)
    if found is None:
        return given
    threads = {None: "1", "*": str(cores)}.get(found[1], found[1])
    return f"local[{threads},{_TASK_TRIES}]"


def scratch(folder: EngineFolder) -> Path:
    """What Spark and Java keep on disk while they run; emptied at each start, as a killed engine leaves it behind."""
    return folder.path / "scratch"


def engine_environment(settings: SparkSettings, inherited: Mapping[str, str], *, python: str) -> dict[str, str]:
    """The environment of Java and of the Python workers that it starts."""
    removed = {"PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "SPARK_TESTING"}
    kept = {key: value for key, value in inherited.items() if key not in removed}
    own = dict(settings.spark_properties)
    chosen = python if settings.is_local else own.get("pyspark.python") or inherited.get("PYSPARK_PYTHON") or python
    return {
        **kept,
        "PYSPARK_PYTHON": chosen,
        "PYSPARK_DRIVER_PYTHON": python,
        # A time without a zone is one of UTC everywhere, whatever the machine's zone is.
        "TZ": "UTC",
        **({"SPARK_LOCAL_IP": _LOOPBACK} if settings.is_local else {}),
    }


def python_path(package_root: Path, given: str, *, directory: Path) -> str:
    """Where Python workers find our packages, the data sources that every session knows, and the user's own code."""
    ours = [package_root / "streams" / "spark" / "discovery", package_root]
    own = [directory / part for part in given.split(os.pathsep) if part]
    return os.pathsep.join(dict.fromkeys(str(path) for path in (*ours, *own)))


def logging_properties(folder: EngineFolder) -> str:
    """Log4j's configuration: warnings go to a file that does not grow without end, nothing to the console."""
    return f"""status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {folder.spark_log}
appender.file.filePattern = {folder.spark_log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}}{{UTC}} %-5p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {_LOG_BYTES}
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
# Said at every start, and nothing to do about.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.metastore.name = org.apache.hadoop.hive.metastore
logger.metastore.level = error
logger.hive.name = org.apache.hadoop.hive.conf
logger.hive.level = error
logger.statistics.name = hive.log
logger.statistics.level = error
logger.hooks.name = org.apache.hadoop.hive.ql.session.SessionState
logger.hooks.level = error
logger.database.name = DataNucleus
logger.database.level = error
"""


def _of_one_machine(cores: int) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.sql.shuffle.partitions": str(max(2 * cores, 4)),
    }


def _of_the_metastore(folder: EngineFolder) -> dict[str, str]:
    temporary = scratch(folder) / "hive"
    return {
        "spark.hadoop.hive.exec.local.scratchdir": str(temporary),
        "spark.hadoop.hive.exec.scratchdir": str(temporary),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder.metastore};create=true",
    }


def _of_connect(settings: SparkSettings, given: Mapping[str, str], *, port: int | None) -> dict[str, str]:
    if port is None:
        return {}
    plugins = [name.strip() for name in given.get("spark.plugins", "").split(",") if name.strip()]
    return {
        "spark.plugins": ",".join(dict.fromkeys([*plugins, _CONNECT_PLUGIN])),
        "spark.connect.grpc.binding.address": settings.spark_caudal_connect_host,
        "spark.connect.grpc.binding.port": str(port),
    }


def _java_options(folder: EngineFolder, of_classes: Sequence[str], given: str) -> str:
    values = {
        "derby.stream.error.file": folder.path / "derby.log",
        "derby.system.home": folder.path,
        "java.io.tmpdir": scratch(folder),
        "log4j2.configurationFile": folder.path / "log4j2.properties",
        "user.timezone": "UTC",
    }
    # Without memory nothing that runs in it can be trusted any more: it ends, and is started again by whoever needs it.
    ours = ["-XX:+ExitOnOutOfMemoryError", *(f'"-D{name}={value}"' for name, value in values.items()), *of_classes]
    return " ".join([*ours, given]).strip()
