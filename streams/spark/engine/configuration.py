"""Spark's configuration: our defaults, which the operator's properties override."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from streams.settings import SparkSettings
from streams.spark.engine.folder import EngineFolder

CONNECT_TOKEN: Final = "spark.connect.authenticate.token"
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
    connect_token: str = "",
    archive_options: Sequence[str] = (),
) -> dict[str, str]:
    """Every property that Spark is started with.

    `connect_port` is that of Spark Connect, None for none, and `connect_token` its token; `archive_options` are Java's,
    for an archive of classes.
    """
    given = settings.of_spark()
    hive = scratch_folder(folder) / "hive"
    ours = {
        "spark.app.name": "caudal",
        "spark.driver.maxResultSize": "512m",
        "spark.local.dir": str(scratch_folder(folder)),
        # How long Java and Python wait for each other; on a busy machine the default, 15 s, is soon over.
        "spark.python.authenticate.socketTimeout": "60s",
        # Tasks of streaming queries must not wait for a long interactive query.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # How long a session may cache a table's list of files before it sees what others have written.
        "spark.sql.metadataCacheTTLSeconds": "1",
        # Hive on Derby cannot filter partitions by some types, dates among them: Spark then does it itself.
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
        "spark.hadoop.hive.exec.local.scratchdir": str(hive),
        "spark.hadoop.hive.exec.scratchdir": str(hive),
        # Column types grow as schemas do, which Hive would forbid.
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder.metastore};create=true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # What plans show of options: Spark's own list of words lacks the logins of Kafka's clients.
        "spark.sql.redaction.options.regex": r"(?i)url|secret|password|token|jaas|user\.info|\.key|\.pem",
        # Lets Delta tables that are read through Python skip files.
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": settings.warehouse,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.is_local:
        ours["spark.driver.bindAddress"] = ours["spark.driver.host"] = _LOOPBACK
        # Other users of the machine reach the ports by which Spark talks to itself. It makes the secret.
        ours["spark.authenticate"] = "true"
        ours["spark.sql.shuffle.partitions"] = str(max(2 * cores, 4))
    fixed = {
        "spark.master": spark_master(settings.spark_master, cores=cores),
        "spark.driver.extraJavaOptions": _java_options(
            folder, archive_options, given.get("spark.driver.extraJavaOptions", "")
        ),
    }
    if connect_port is not None:
        plugins = [name.strip() for name in given.get("spark.plugins", "").split(",") if name.strip()]
        fixed["spark.plugins"] = ",".join(dict.fromkeys([*plugins, _CONNECT_PLUGIN]))
        fixed["spark.connect.grpc.binding.address"] = settings.spark_caudal_connect_host
        fixed["spark.connect.grpc.binding.port"] = str(connect_port)
        fixed[CONNECT_TOKEN] = connect_token
    return {**ours, **given, **fixed}


def spark_master(given: str, *, cores: int) -> str:
    """The master for Spark: in `local[N]` a task is retried when a worker dies, as on a cluster."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", given)
    if found is None:
        return given
    threads = {None: "1", "*": str(cores)}.get(found[1], found[1])
    return f"local[{threads},{_TASK_TRIES}]"


def scratch_folder(folder: EngineFolder) -> Path:
    """Spark's and Java's temporary files; emptied at each start, because a killed engine leaves them behind."""
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
        # A time without a zone is in UTC everywhere, whatever the machine's zone is.
        "TZ": "UTC",
        **({"SPARK_LOCAL_IP": _LOOPBACK} if settings.is_local else {}),
    }


def python_path(package_root: Path, given: str, *, directory: Path) -> str:
    """Where Python workers find our packages, the data sources that every session knows, and the user's own code."""
    ours = [package_root / "streams" / "spark" / "discovery", package_root]
    own = [directory / part for part in given.split(os.pathsep) if part]
    return os.pathsep.join(dict.fromkeys(str(path) for path in (*ours, *own)))


def logging_properties(folder: EngineFolder) -> str:
    """Log4j's configuration: warnings go to a file of bounded size, nothing to the console."""
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
# Warnings of every start that need no action.
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


def _java_options(folder: EngineFolder, archive_options: Sequence[str], given: str) -> str:
    values = {
        "derby.stream.error.file": folder.path / "derby.log",
        "derby.system.home": folder.path,
        "java.io.tmpdir": scratch_folder(folder),
        "log4j2.configurationFile": folder.path / "log4j2.properties",
        "user.timezone": "UTC",
    }
    # A Java that ran out of memory cannot be trusted any more: it exits, and the next client starts another engine.
    ours = ["-XX:+ExitOnOutOfMemoryError", *(f'"-D{name}={value}"' for name, value in values.items())]
    return " ".join([*ours, *archive_options, given]).strip()
