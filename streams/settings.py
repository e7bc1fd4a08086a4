"""Settings of the embedded Spark that runs tables and streams: Caudal's own keys, and any of Spark's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from core_broker.service.properties import gather, read_file
from core_broker.service.settings import (
    INT,
    STRING,
    Check,
    Properties,
    Settings,
    at_least,
    between,
    gathered,
    not_empty,
    one_of,
    setting,
)

VARIABLES: Final = ("CONNECT_SPARK_", "CAUDAL_SPARK_")
"""Prefixes of environment variables, the strongest last: beside a Connect worker, its Spark is used by default."""
_MEMORY = Check(
    accepts=lambda value: value[:-1].isdigit() and value[-1:].lower() in "kmgt" and int(value[:-1]) > 0,
    allowed="a number followed by k, m, g or t, such as 1g",
)
_KNOWN = (
    "spark.caudal.connect.host, spark.caudal.connect.port, spark.caudal.data.dir, spark.caudal.idle.timeout.ms, "
    "spark.caudal.start, spark.caudal.start.timeout.ms, spark.caudal.warehouse.dir"
)


class SparkSettings(Settings):
    """Settings of the embedded Spark; Connect's properties may hold the same keys."""

    REFUSED = {
        "spark.caudal.*": f"unknown setting; known are {_KNOWN}",
        "spark.connect.grpc.binding.address": "use spark.caudal.connect.host",
        "spark.connect.grpc.binding.port": "use spark.caudal.connect.port",
        "spark.remote": "Caudal runs Spark itself; set spark.master to choose where it works",
        "spark.sql.warehouse.dir": "use spark.caudal.warehouse.dir",
    }

    spark_caudal_data_dir: str = setting(STRING, default="caudal-spark", check=not_empty())
    """Folder of the engine: its socket, lock, metastore, state of queries and logs. One engine runs per folder, shared
    by all clients that name the folder."""
    spark_caudal_warehouse_dir: str = setting(STRING, default="")
    """Folder of the tables, on any file system that Spark knows; empty: `warehouse` in `spark.caudal.data.dir`."""
    spark_caudal_connect_host: str = setting(STRING, default="127.0.0.1", check=not_empty())
    """Address on which Spark Connect listens for notebooks, which have to show a token (`caudal spark token`). It
    has no TLS: keep it on this machine, or put a proxy in front of it."""
    spark_caudal_connect_port: int = setting(INT, default=15002, check=between(-1, 65535))
    """Its port: 0 for any free one, -1 to disable Spark Connect."""
    spark_caudal_idle_timeout_ms: int = setting(INT, default=60_000, check=at_least(1000))
    """How long the engine stays up without clients."""
    spark_caudal_start: str = setting(STRING, default="when-needed", check=one_of("when-needed", "never"))
    """Whether a client starts the engine if none runs. With `never`, it waits for an engine that is started separately
    (`caudal spark engine`)."""
    spark_caudal_start_timeout_ms: int = setting(INT, default=180_000, check=at_least(1000))
    """How long clients wait for Spark to start. On a cluster, if work waits for an executor for half of this time, the
    engine ends and is started again, because the cluster may have forgotten it."""

    spark_master: str = setting(STRING, default="local[*]", check=not_empty())
    """Where the work is done: `local[N]` in the engine itself, or a cluster such as `spark://host:7077`."""
    spark_driver_memory: str = setting(STRING, default="1g", check=_MEMORY)
    """Heap size of the engine's Java."""
    spark_properties: Properties = gathered("spark.", default=())
    """Any other property of Spark, passed to it unchanged."""

    @classmethod
    def among(cls, values: Mapping[str, str]) -> Self:
        """Parse Spark's keys among the settings of another service."""
        return cls.parse({key: value for key, value in values.items() if key.startswith("spark.")})

    @classmethod
    def read(cls, *, file: Path | None, environment: Mapping[str, str], assignments: Sequence[str] = ()) -> Self:
        """Read a properties file (which may be another service's), environment variables of a Connect worker
        (CONNECT_SPARK_...) and of Spark alone (CAUDAL_SPARK_...), and assignments."""
        values = {key: value for key, value in (read_file(file) if file else {}).items() if key.startswith("spark.")}
        for beginning in VARIABLES:
            named = {name: value for name, value in environment.items() if name.startswith(beginning)}
            values.update(gather(environment=named, prefix=beginning.removesuffix("SPARK_")))
        values.update(gather(assignments=assignments))
        return cls.parse(values)

    @property
    def data_dir(self) -> Path:
        """The engine's folder."""
        return Path(self.spark_caudal_data_dir).absolute()

    @property
    def warehouse(self) -> str:
        """Folder of the tables: a path, or the URI of a folder elsewhere."""
        given = self.spark_caudal_warehouse_dir
        if not given:
            return str(self.data_dir / "warehouse")
        return given if "://" in given or given.startswith("file:") else str(Path(given).absolute())

    @property
    def is_local(self) -> bool:
        """True when the work is done in the engine itself."""
        return self.spark_master.startswith("local")

    @property
    def connect_port(self) -> int | None:
        """The port of Spark Connect, 0 for any; None if it is disabled."""
        return None if self.spark_caudal_connect_port < 0 else self.spark_caudal_connect_port

    def of_spark(self) -> dict[str, str]:
        """Spark's own properties, by their full names."""
        own = {f"spark.{name}": value for name, value in self.spark_properties}
        return {**own, "spark.master": self.spark_master, "spark.driver.memory": self.spark_driver_memory}

    def as_text(self) -> dict[str, str]:
        """Every setting that was given, as `parse` reads it; folders are absolute."""
        single = {key: self.text_of(key) for key in self.set if not self.DEFINITIONS[key].prefix}
        values = {key: text for key, text in single.items() if text is not None}
        values.update({f"spark.{name}": value for name, value in self.spark_properties})
        return {**values, "spark.caudal.data.dir": str(self.data_dir), "spark.caudal.warehouse.dir": self.warehouse}
