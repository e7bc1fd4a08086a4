"""What an operator may change about the Spark that runs tables and streams: Caudal's own keys, and any of Spark's."""

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
"""How their names begin, the strongest last: where a Connect worker runs, its Spark is the one that is meant."""
_MEMORY = Check(
    accepts=lambda value: value[:-1].isdigit() and value[-1:].lower() in "kmgt" and int(value[:-1]) > 0,
    allowed="a number with k, m, g or t behind it, such as 1g",
)
_KNOWN = (
    "spark.caudal.connect.host, spark.caudal.connect.port, spark.caudal.data.dir, spark.caudal.idle.timeout.ms, "
    "spark.caudal.start, spark.caudal.start.timeout.ms, spark.caudal.warehouse.dir"
)


class SparkSettings(Settings):
    """What an operator may change about the embedded Spark; the same keys stand in Connect's own properties."""

    REFUSED = {
        "spark.caudal.*": f"unknown setting; there are {_KNOWN}",
        "spark.connect.grpc.binding.address": "use spark.caudal.connect.host",
        "spark.connect.grpc.binding.port": "use spark.caudal.connect.port",
        "spark.remote": "Caudal runs Spark itself; spark.master says where its work is done",
        "spark.sql.warehouse.dir": "use spark.caudal.warehouse.dir",
    }

    spark_caudal_data_dir: str = setting(STRING, default="caudal-spark", check=not_empty())
    """Folder of the engine: its socket, lock, metastore, state of queries and logs. One engine runs per folder, and
    everybody who names the same folder shares it."""
    spark_caudal_warehouse_dir: str = setting(STRING, default="")
    """Folder of the tables, on any file system that Spark knows; empty: `warehouse` in `spark.caudal.data.dir`."""
    spark_caudal_connect_host: str = setting(STRING, default="127.0.0.1", check=not_empty())
    """Address at which Spark Connect listens for notebooks. It asks nobody for a password: keep it on this machine,
    or set `spark.connect.authenticate.token`."""
    spark_caudal_connect_port: int = setting(INT, default=15002, check=between(-1, 65535))
    """Its port: 0 for any free one, -1 for no Spark Connect at all."""
    spark_caudal_idle_timeout_ms: int = setting(INT, default=60_000, check=at_least(1000))
    """How long the engine stays when nobody is connected to it."""
    spark_caudal_start: str = setting(STRING, default="when-needed", check=one_of("when-needed", "never"))
    """Whether whoever needs the engine and finds none starts it. `never`: somebody else sees to it that it runs
    (`caudal spark engine`), and it is waited for."""
    spark_caudal_start_timeout_ms: int = setting(INT, default=180_000, check=at_least(1000))
    """How long Spark may take to start before whoever waits for it gives up. On a cluster, half of it is how long work
    may wait for an executor before the engine ends, to be started again: a cluster may have forgotten it."""

    spark_master: str = setting(STRING, default="local[*]", check=not_empty())
    """Where the work is done: `local[N]` in the engine itself, or a cluster such as `spark://host:7077`."""
    spark_driver_memory: str = setting(STRING, default="1g", check=_MEMORY)
    """How much memory the engine's Java may take for its objects."""
    spark_properties: Properties = gathered("spark.", default=())
    """Any other property of Spark, given to it as it is."""

    @classmethod
    def among(cls, values: Mapping[str, str]) -> Self:
        """Read those of the given settings that are Spark's, and leave the others (another service's) alone."""
        return cls.parse({key: value for key, value in values.items() if key.startswith("spark.")})

    @classmethod
    def read(cls, *, file: Path | None, environment: Mapping[str, str], assignments: Sequence[str] = ()) -> Self:
        """Read a properties file (which may be another service's), variables of a Connect worker (CONNECT_SPARK_...),
        those of Spark alone (CAUDAL_SPARK_...), and assignments."""
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
        """Where tables are: a path, or the URI of a folder elsewhere."""
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
        """The port of Spark Connect, 0 for any; None when it is not wanted."""
        return None if self.spark_caudal_connect_port < 0 else self.spark_caudal_connect_port

    def of_spark(self) -> dict[str, str]:
        """The properties that are Spark's own, by their whole names."""
        own = {f"spark.{name}": value for name, value in self.spark_properties}
        return {**own, "spark.master": self.spark_master, "spark.driver.memory": self.spark_driver_memory}

    def as_text(self) -> dict[str, str]:
        """Every setting that was given, as `parse` would read it again; folders are absolute."""
        single = {key: self.text_of(key) for key in self.set if not self.DEFINITIONS[key].prefix}
        values = {key: text for key, text in single.items() if text is not None}
        values.update({f"spark.{name}": value for name, value in self.spark_properties})
        return {**values, "spark.caudal.data.dir": str(self.data_dir), "spark.caudal.warehouse.dir": self.warehouse}
