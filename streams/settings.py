"""Settings of the SQL service, with ksqlDB's names where it has them, and of the embedded Spark that does the work."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from typing_extensions import override

from core_broker.client.settings import ClientSettings
from core_broker.service.properties import gather, read_file
from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    Check,
    Problem,
    Properties,
    Settings,
    SettingsError,
    at_least,
    between,
    gathered,
    not_empty,
    one_of,
    optional,
    setting,
)
from core_broker.web_access.settings import AccessSettings

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


_CLIENT_ID: Final = "caudal-streams"
_STATE_DIR: Final = "caudal-platform/streams"
_FORMATS: Final = ("AVRO", "DELIMITED", "JSON", "JSON_SR", "KAFKA", "NONE", "PROTOBUF", "PROTOBUF_NOSR")
_KEY_FORMAT: Final = Check(accepts=lambda name: name.upper() in _FORMATS, allowed=f"one of {', '.join(_FORMATS)}")
_VALUE_FORMAT: Final = Check(
    accepts=lambda name: not name or name.upper() in _FORMATS, allowed=f"empty, or one of {', '.join(_FORMATS)}"
)
_SERVICE_ID: Final = Check(
    accepts=lambda text: bool(text) and all(c.isascii() and (c.isalnum() or c in "._-") for c in text),
    allowed="letters, digits, dots, dashes and underscores",
)
_STREAMS: Final = "ksql.streams."


class StreamsSettings(AccessSettings):
    """The settings of the SQL service: those of a ksqlDB server."""

    IGNORED = {
        "auto.register.schemas": "use ksql.schema.registry.auto.register.schemas",
        "confluent.*": "it is for Confluent's licence and telemetry",
        "ksql.access.validator.enable": "the Kafka cluster decides what this service may do",
        "ksql.authentication.*": "use authentication.method",
        "ksql.cast.strings.preserve.nulls": "a cast of NULL is always NULL",
        "ksql.connect.worker.config": "Connect runs on its own: use ksql.connect.url",
        "ksql.enable.metastore.backup": "definitions are kept in a topic",
        "ksql.endpoint.logging.*": "use logging.level",
        "ksql.error.classifier.*": "errors are classified by their kind",
        "ksql.headers.columns.enabled": "header columns are always available",
        "ksql.heartbeat.*": "servers find each other through a consumer group",
        "ksql.internal.*": "it is about the inside of ksqlDB",
        "ksql.lag.reporting.*": "the lag of copies is in /metrics",
        "ksql.logging.*": "records that cannot be processed go to dead-letter topics",
        "ksql.metastore.backup.location": "definitions are kept in a topic",
        "ksql.metrics.*": "metrics are served at /metrics",
        "ksql.multicol.key.format.enabled": "keys of several columns are always possible",
        "ksql.nested.error.set.null": "errors inside an expression always make it NULL",
        "ksql.new.query.planner.enabled": "there is one planner",
        "ksql.query.error.max.queue.size": "the last error of a query is kept",
        "ksql.query.push.v2.*": "each push query reads its topics",
        "ksql.query.retry.*": "queries are started again after a failure until they succeed or are terminated",
        "ksql.query.transient.max.bytes.buffering.total": "use ksql.push.queries.rows.max",
        "ksql.query.persistent.max.bytes.buffering.total": "Spark keeps state on disk",
        "ksql.rowpartition.rowoffset.enabled": "ROWPARTITION and ROWOFFSET are always available",
        "ksql.runtime.feature.*": "it is about the inside of Kafka Streams",
        "ksql.server.error.messages": "Java classes cannot be loaded",
        "ksql.server.install.dir": "there is nothing to find there",
        "ksql.server.preconditions": "Java classes cannot be loaded",
        "ksql.shared.runtime.enabled": "all queries share one Spark",
        "ksql.source.table.materialization.enabled": "source tables are always kept for pull queries",
        "ksql.suppress.*": "EMIT FINAL is always available, and keeps its state on disk",
        "ksql.transient.*": "what a push query leaves behind is removed when it ends",
        "ksql.udf.*": "users' functions are Python, in ksql.extension.dir",
        "ksql.udfs.enabled": "users' functions are read from ksql.extension.dir if it exists",
        "ksql.verticle.instances": "use worker.threads",
        "ksql.worker.pool.size": "use worker.threads",
        "metric.reporters": "metrics are served at /metrics",
        "metrics.*": "metrics are served at /metrics",
        "ui.deployment.type": "it is for Confluent's telemetry",
    }
    REFUSED = {
        "ksql.connect.basic.auth.*": "put user and password into ksql.connect.url: http://user:password@host:8083",
        "ksql.connect.request.headers.plugin": "Java classes cannot be loaded",
        "ksql.queries.file": "headless mode is not supported: send the file with caudal sql -f",
        "ksql.security.extension.class": "Java classes cannot be loaded: use authentication.method",
        "ksql.websockets.enabled": "the websocket cannot be switched off: put a proxy that does so in front",
        "ssl.keystore.*": "use ssl.certificate.location and ssl.key.location, with PEM files",
        "ssl.truststore.*": "use ssl.ca.location, with a PEM file",
    }

    listeners: tuple[str, ...] = setting(LIST, default=("http://:8088",))
    """Where HTTP is served: `http://host:port` or `https://host:port`, several separated by commas. An empty host
    means every address, port 0 any free port. All of them speak HTTP/1.1 and HTTP/2."""
    ksql_advertised_listener: str = setting(STRING, default="")
    """Where other programs reach this server, as it is shown in the state of queries. Not set: its first listener."""
    bootstrap_servers: tuple[str, ...] = setting(LIST, default=("localhost:9092",), check=not_empty())
    """Where to find the Kafka cluster: `host:port`, several separated by commas."""
    kafka_timeout_ms: int = setting(INT, default=30_000, check=at_least(100))
    """How long one call to the cluster may take, once a broker is connected: longer than other brokers need to replace
    one that has died."""
    security_protocol: str = setting(
        STRING, default="PLAINTEXT", check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    )
    """How to talk to the cluster."""
    sasl_properties: Properties = gathered("sasl.", default=())
    """How to log in at the cluster, such as `sasl.mechanism` and `sasl.jaas.config`."""
    client_properties: Properties = gathered("client.", default=())
    """Any property of Kafka's clients, in Java's names or in librdkafka's, for all clients of the cluster:
    `client.ssl.ca.location`, `client.sasl.password`, ..."""

    ksql_service_id: str = setting(STRING, default="default_", check=_SERVICE_ID)
    """Servers with the same id work together, on the same streams, tables and queries; becomes part of the names of
    their topics and groups."""
    ksql_streams_state_dir: str = setting(STRING, default=_STATE_DIR, check=not_empty())
    """Folder of the copies of tables, and of the checkpoints of queries. Servers that may take over each other's
    queries need the same folder for the checkpoints: see ksql.checkpoints.dir."""
    ksql_checkpoints_dir: str = setting(STRING, default="")
    """Folder of the checkpoints of queries, on any file system that Spark knows; empty: `checkpoints` in
    `ksql.streams.state.dir`."""
    ksql_extension_dir: str = setting(STRING, default="ext")
    """Folder of users' functions, in Python; it need not exist."""
    ksql_streams_properties: Properties = gathered("ksql.streams.", default=())
    """Defaults for properties of queries, such as `ksql.streams.auto.offset.reset`, which a SET overrides."""
    ksql_functions_properties: Properties = gathered("ksql.functions.", default=())
    """Options of functions, such as `ksql.functions.collect_list.limit`."""
    ksql_schema_registry_properties: Properties = gathered("ksql.schema.registry.", default=())
    """How to reach the schema registry: `ksql.schema.registry.url`, and the other properties of Confluent's clients,
    such as `ksql.schema.registry.basic.auth.user.info`. Without a URL, only formats without schemas can be used."""
    ksql_connect_url: str = setting(STRING, default="")
    """Where to reach Connect, for CREATE CONNECTOR and SHOW CONNECTORS: `http://localhost:8083`. Not set: there is
    none."""
    spark_properties: Properties = gathered("spark.", default=())
    """The embedded Spark: the location of its data (`spark.caudal.…`), its master, and any other of its properties."""

    ksql_persistence_default_format_key: str = setting(STRING, default="KAFKA", check=_KEY_FORMAT)
    """Format of keys where a statement names none."""
    ksql_persistence_default_format_value: str = setting(STRING, default="", check=_VALUE_FORMAT)
    """Format of values where a statement names none. Not set: a statement has to."""
    ksql_persistence_wrap_single_values: bool | None = setting(optional(BOOLEAN), default=None)
    """Whether a single value column is written as a record with one field, where a statement does not say so. Not set:
    as is usual for the format."""
    ksql_output_topic_name_prefix: str = setting(STRING, default="")
    """Beginning of the names of the topics that queries make."""
    ksql_internal_topic_replicas: int = setting(SHORT, default=1, check=at_least(1))
    """Replicas of the topics in which this service keeps its definitions and what flows between parts of queries."""
    ksql_sink_partitions: int | None = setting(optional(INT), default=None, check=at_least(1))
    """Partitions of the topics that queries make. Not set: as many as the topic has that is read first."""
    ksql_sink_replicas: int | None = setting(optional(SHORT), default=None, check=at_least(1))
    """Replicas of those topics. Not set: as many as the topic has that is read first."""
    ksql_create_or_replace_enabled: bool = setting(BOOLEAN, default=True)
    """Whether CREATE OR REPLACE is allowed."""
    ksql_timestamp_throw_on_invalid: bool = setting(BOOLEAN, default=False)
    """Whether a record whose timestamp column is not valid is a dead letter; otherwise it is left out."""
    ksql_variable_substitution_enable: bool = setting(BOOLEAN, default=True)
    """Whether ${variables} in statements are replaced."""
    ksql_hidden_topics: tuple[str, ...] = setting(LIST, default=("_confluent.*", "__.*", "_schemas.*"))
    """Patterns of topics that SHOW TOPICS leaves out; SHOW ALL TOPICS has them."""
    ksql_readonly_topics: tuple[str, ...] = setting(LIST, default=("_confluent.*", "__.*", "_schemas.*"))
    """Patterns of topics that statements cannot write to."""

    ksql_server_command_response_timeout_ms: int = setting(LONG, default=5000, check=at_least(0))
    """How long a request waits for its statement to take effect before the answer is that it still runs."""
    ksql_query_persistent_active_limit: int = setting(INT, default=2**31 - 1, check=at_least(0))
    """Most persistent queries at once."""
    ksql_query_trigger_ms: int = setting(INT, default=150, check=between(10, 3_600_000))
    """How often a query looks for new records: its batches begin at least so far apart."""
    ksql_max_push_queries: int = setting(INT, default=100, check=between(0, 10_000))
    """Most push queries and PRINTs at once; each push query is a query of Spark."""
    ksql_push_queries_rows_max: int = setting(INT, default=1000, check=between(1, 1_000_000))
    """Most rows that are taken from a push query at once, and sent before the next are taken. A client that reads
    slowly slows its own query down."""
    ksql_pull_queries_enable: bool = setting(BOOLEAN, default=True)
    """Whether pull queries are answered."""
    ksql_query_pull_table_scan_enabled: bool = setting(BOOLEAN, default=True)
    """Whether pull queries may read a whole table."""
    ksql_query_pull_max_concurrent_requests: int = setting(INT, default=64, check=between(1, 10_000))
    """Most pull queries at once; 429 beyond."""
    ksql_query_pull_max_allowed_offset_lag: int = setting(LONG, default=2**63 - 1, check=at_least(0))
    """How many records the copy of a table may lack for a pull query to be answered from it."""
    ksql_inserts_in_flight_max: int = setting(INT, default=1000, check=between(1, 1_000_000))
    """Most rows of one insert stream that wait for the cluster; the stream is read on when there are fewer."""
    ksql_idle_connection_timeout_seconds: int = setting(INT, default=600, check=at_least(1))
    """How long an insert stream may send nothing before it ends, and a push query that has no rows stays without a sign
    that its client is still there."""
    ksql_websocket_connection_max_timeout_ms: int = setting(LONG, default=3_600_000, check=at_least(0))
    """How long a websocket may stay open; 0: as long as its query."""
    ksql_properties_overrides_denylist: tuple[str, ...] = setting(LIST, default=())
    """Properties that requests cannot set."""
    ksql_heartbeat_enable: bool = setting(BOOLEAN, default=False)
    """Whether `/clusterStatus` is served."""

    @property
    def address(self) -> str:
        """The bootstrap address of the cluster."""
        return ",".join(self.bootstrap_servers)

    @property
    def state_folder(self) -> Path:
        """Where this server keeps its files."""
        return Path(self.ksql_streams_state_dir).absolute()

    @property
    def checkpoints(self) -> str:
        """Folder of the checkpoints: a path, or the URI of a folder elsewhere."""
        given = self.ksql_checkpoints_dir
        if not given:
            return str(self.state_folder / "checkpoints")
        return given if "://" in given or given.startswith("file:") else str(Path(given).absolute())

    @property
    def extensions(self) -> str:
        """The folder of users' functions; empty if there is none."""
        folder = Path(self.ksql_extension_dir or ".").absolute()
        return str(folder) if self.ksql_extension_dir and folder.is_dir() else ""

    @property
    def registry_url(self) -> str:
        """The address of the schema registry; empty if there is none."""
        return dict(self.ksql_schema_registry_properties).get("url", "")

    @property
    def registry_properties(self) -> dict[str, str]:
        """All properties of the registry's client, by its own names (`schema.registry.url`, ...)."""
        return {f"schema.registry.{key}": value for key, value in self.ksql_schema_registry_properties}

    @property
    def spark(self) -> SparkSettings:
        """The embedded Spark's."""
        return SparkSettings.among({f"spark.{key}": value for key, value in self.spark_properties})

    @override
    def own_cluster(self) -> Mapping[str, str]:
        """This cluster checks the passwords of callers."""
        return {"bootstrap.servers": self.address, **self._security()}

    def cluster(self) -> dict[str, str]:
        """How Spark and the copies reach the cluster, in librdkafka's names, with `bootstrap.servers`.

        Raises PropertyRefused.
        """
        from core_broker.client.java_properties import to_librdkafka  # the command line needs no client

        return {"bootstrap.servers": self.address, **to_librdkafka(self._security().items())}

    def kafka(self, client_id: str = _CLIENT_ID) -> ClientSettings:
        """How the service itself reaches the cluster."""
        properties = {"log_level": "2", **self.cluster()}  # librdkafka writes to stderr instead of our log
        return ClientSettings(
            bootstrap_servers=properties.pop("bootstrap.servers"),
            client_id=client_id,
            timeout_ms=self.kafka_timeout_ms,
            properties=properties,
        )

    def defaults(self) -> dict[str, str]:
        """The properties of queries that this server sets, by the names that SET uses: without `ksql.streams.`."""
        ours = {
            key: self.text_of(key)
            for key, definition in self.DEFINITIONS.items()
            if key.startswith("ksql.") and not definition.prefix and not key.startswith(_STREAMS)
        }
        known = {key: text for key, text in ours.items() if text is not None}
        functions = {f"ksql.functions.{key}": value for key, value in self.ksql_functions_properties}
        return {**known, **functions, **dict(self.ksql_streams_properties)}

    @override
    def problems(self) -> Iterable[Problem]:
        """The clients' properties must be possible, and Spark's must be known."""
        yield from super().problems()
        from core_broker.client.java_properties import PropertyRefused

        try:
            self.cluster()
        except PropertyRefused as error:
            yield Problem(key=error.key, value="******", reason=error.reason)
        try:
            _ = self.spark
        except SettingsError as error:
            yield from error.problems

    def _security(self) -> dict[str, str]:
        own = {"security.protocol": self.security_protocol} if self.is_set("security.protocol") else {}
        sasl = {f"sasl.{key}": value for key, value in self.sasl_properties}
        return {**own, **sasl, **dict(self.client_properties)}
