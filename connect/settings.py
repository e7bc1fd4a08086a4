"""The settings of a Connect worker, with Kafka Connect's names where it has them."""

from collections.abc import Iterable, Mapping

from typing_extensions import override

from core_broker.client.settings import ClientSettings
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
    at_least,
    between,
    gathered,
    not_empty,
    one_of,
    optional,
    setting,
)
from core_broker.web_access.settings import RuleSettings

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_ADMIN = Check(
    accepts=lambda value: value in ("", "listeners"),
    allowed="empty, for no /admin, or not set: it has no listeners of its own",
)
_FACTOR = Check(accepts=lambda value: value == -1 or value >= 1, allowed="-1 (the cluster's default) or at least 1")


class ConnectSettings(RuleSettings):
    """The settings of a Connect worker."""

    IGNORED = {
        "access.control.*": "cross-origin requests are not supported",
        "config.storage.partitions": "the config topic always has one partition",
        "confluent.*": "it is for Confluent's licence and telemetry",
        "connect.protocol": "workers elect a leader through the group of group.id",
        "inter.worker.key.generation.algorithm": "it is always HmacSHA256",
        "inter.worker.key.size": "it is always 256",
        "inter.worker.signature.algorithm": "it is always HmacSHA256",
        "inter.worker.verification.algorithms": "it is always HmacSHA256",
        "internal.key.converter*": "it is always JSON",
        "internal.value.converter*": "it is always JSON",
        "metric.reporters": "metrics are served at /metrics",
        "metrics.*": "metrics are served at /metrics",
        "offset.storage.file.filename": "offsets are kept in offset.storage.topic",
        "plugin.discovery": "plugins are Python entry points",
        "plugin.path": "plugins are Python entry points: install their package",
        "rest.extension.classes": "Java classes cannot be loaded",
        "scheduled.rebalance.max.delay.ms": "tasks of a lost worker start elsewhere at once",
        "worker.sync.timeout.ms": "every worker reads the config topic",
        "worker.unsync.backoff.ms": "every worker reads the config topic",
    }
    REFUSED = {
        "ssl.keystore.*": "use ssl.certificate.location and ssl.key.location, with PEM files",
        "ssl.truststore.*": "use ssl.ca.location, with a PEM file",
    }

    listeners: tuple[str, ...] = setting(LIST, default=("http://:8083",))
    """The addresses of the REST API: `http://host:port` or `https://host:port`, several separated by commas. An empty
    host means every address, port 0 any free port."""
    admin_listeners: str = setting(STRING, default="listeners", check=_ADMIN)
    """Not set: `/admin` is served on all listeners; empty: it is not served at all."""
    rest_advertised_host_name: str = setting(STRING, default="")
    """The host name of this worker for other workers and users; not set: the first listener's host, or the machine's
    name if that is empty."""
    rest_advertised_port: int | None = setting(optional(INT), default=None, check=between(1, 65535))
    """The port of this worker for other workers and users; not set: that of the first listener."""
    rest_request_timeout_ms: int = setting(INT, default=90_000, check=at_least(1000))
    """How long a request may take in this worker before it fails with status 500."""

    bootstrap_servers: tuple[str, ...] = setting(LIST, default=("localhost:9092",), check=not_empty())
    """The addresses of the Kafka cluster: `host:port`, several separated by commas."""
    kafka_timeout_ms: int = setting(INT, default=30_000, check=at_least(100))
    """How long one call to the cluster may take, once a broker is connected: longer than other brokers need to replace
    one that has died."""
    client_properties: Properties = gathered("client.", default=())
    """Any property of librdkafka for all clients of the cluster: `client.security.protocol`, ..."""
    producer_properties: Properties = gathered("producer.", default=())
    """Any property of librdkafka for the producers of sources and dead letters."""
    consumer_properties: Properties = gathered("consumer.", default=())
    """Any property of librdkafka for the consumers of sinks."""
    admin_properties: Properties = gathered("admin.", default=())
    """Any property of librdkafka for creating topics."""

    group_id: str = setting(STRING, default="connect-cluster", check=not_empty())
    """Workers with the same group id work together: one leads, the others stand by or run tasks."""
    session_timeout_ms: int = setting(INT, default=10_000, check=at_least(100))
    """A worker without a heartbeat for this long is considered lost."""
    heartbeat_interval_ms: int = setting(INT, default=3_000, check=at_least(1))
    """How often a worker sends a heartbeat."""
    inter_worker_key_ttl_ms: int = setting(INT, default=3_600_000, check=at_least(1000))
    """Where callers log in: how long workers sign the requests that they forward with the same key."""
    config_storage_topic: str = setting(STRING, default="connect-configs", check=not_empty())
    """The topic for the configurations and target states of connectors."""
    config_storage_replication_factor: int = setting(SHORT, default=3, check=_FACTOR)
    """Its replicas when this worker creates it; fewer where the cluster has fewer brokers."""
    offset_storage_topic: str = setting(STRING, default="connect-offsets", check=not_empty())
    """The topic for the offsets of sources."""
    offset_storage_partitions: int = setting(INT, default=25, check=at_least(1))
    """The number of its partitions when this worker creates it."""
    offset_storage_replication_factor: int = setting(SHORT, default=3, check=_FACTOR)
    """Its replicas when this worker creates it; fewer where the cluster has fewer brokers."""
    status_storage_topic: str = setting(STRING, default="connect-status", check=not_empty())
    """The topic for the states of connectors and tasks."""
    status_storage_partitions: int = setting(INT, default=5, check=at_least(1))
    """The number of its partitions when this worker creates it."""
    status_storage_replication_factor: int = setting(SHORT, default=3, check=_FACTOR)
    """Its replicas when this worker creates it; fewer where the cluster has fewer brokers."""

    redrive_storage_topic: str = setting(STRING, default="connect-redriven", check=not_empty())
    """The topic that records which dead letters were redriven, so that none is redriven twice."""

    key_converter: str = setting(STRING, default=_JSON)
    """The converter for keys of records, unless a connector has its own."""
    key_converter_properties: Properties = gathered("key.converter.", default=())
    """Its options, such as `key.converter.schemas.enable`."""
    value_converter: str = setting(STRING, default=_JSON)
    """The converter for values of records, unless a connector has its own."""
    value_converter_properties: Properties = gathered("value.converter.", default=())
    """Its options, such as `value.converter.schema.registry.url`."""
    header_converter: str = setting(STRING, default=_SIMPLE_HEADERS)
    """The converter for headers of records, unless a connector has its own."""
    header_converter_properties: Properties = gathered("header.converter.", default=())
    """Its options."""

    config_providers: tuple[str, ...] = setting(LIST, default=("file", "env", "dir"))
    """Names of the providers for placeholders in configurations, such as `${file:/run/secrets/db:password}`."""
    config_provider_properties: Properties = gathered("config.providers.", default=())
    """Their classes and options, such as `config.providers.file.param.allowed.paths`."""
    connector_client_config_override_policy: str = setting(
        STRING, default="All", check=one_of("All", "None", "Principal", "Allowlist")
    )
    """Which client properties connectors may override (`producer.override.…`, `consumer.override.…`,
    `admin.override.…`)."""
    connector_client_config_override_allowlist: tuple[str, ...] = setting(LIST, default=())
    """The properties that the policy Allowlist allows."""

    connector_allowed_paths: tuple[str, ...] | None = setting(optional(LIST), default=None)
    """The files and folders (with all that is in them) that connectors may use, separated by commas; `*` is all.
    Not set: all, or none where callers log in (authentication.method)."""
    connector_allowed_addresses: tuple[str, ...] | None = setting(optional(LIST), default=None)
    """The addresses that connectors may connect to, separated by commas: names (`db.example.com`, `*.example.com`),
    addresses and networks (`10.1.0.0/16`), names and addresses with a port if need be; `*` is all but link-local ones
    and those where clouds keep the credentials of machines. Not set: the same as `*`, or none where callers log in."""

    spark_properties: Properties = gathered("spark.", default=())
    """For connectors that use Spark: the location of its data and tables (`spark.caudal.…`), its master, and any other
    property of Spark."""

    offset_flush_interval_ms: int = setting(LONG, default=10_000, check=at_least(1))
    """How often sources and sinks commit offsets."""
    offset_flush_timeout_ms: int = setting(LONG, default=5_000, check=at_least(1))
    """How long a commit may take before it is retried later."""
    exactly_once_source_support: str = setting(
        STRING, default="requested", check=one_of("disabled", "preparing", "requested", "enabled")
    )
    """Whether sources write records and offsets in transactions: never, for connectors with
    `exactly.once.support=required`, or always."""
    topic_creation_enable: bool = setting(BOOLEAN, default=True)
    """Whether sources may create their topics (`topic.creation.…` of the connector)."""
    topic_tracking_enable: bool = setting(BOOLEAN, default=True)
    """Whether to track which topics a connector uses."""
    topic_tracking_allow_reset: bool = setting(BOOLEAN, default=True)
    """Whether that may be reset on request."""
    task_shutdown_graceful_timeout_ms: int = setting(LONG, default=5_000, check=at_least(0))
    """How long tasks may take to stop before they are cancelled."""

    executor: str = setting(STRING, default="in_process", check=one_of("in_process", "celery"))
    """Where tasks run: in this worker and its own processes, or on Celery workers."""
    task_processes: int = setting(INT, default=-1, check=between(-1, 256))
    """How many processes run this worker's tasks: 0 for threads in the worker only, -1 for one per processor."""
    celery_broker_url: str = setting(STRING, default="redis://localhost:6379/0", sensitive=True)
    """The Redis with the queue of the Celery workers and the owners of tasks."""
    celery_queue: str = setting(STRING, default="connect", check=not_empty())
    """The queue of the Celery workers; do not share it with other programs."""
    celery_lease_ms: int = setting(INT, default=10_000, check=at_least(1000))
    """How long a Celery worker owns a task without renewing its lease."""

    @property
    def address(self) -> str:
        """The addresses of the cluster."""
        return ",".join(self.bootstrap_servers)

    @override
    def own_cluster(self) -> Mapping[str, str]:
        """This cluster checks the passwords of callers."""
        return {"bootstrap.servers": self.address, **dict(self.client_properties)}

    def kafka(self, properties: Properties = (), *, client_id: str = "caudal-connect") -> ClientSettings:
        """The settings of a client; `properties` are those of its kind."""
        return ClientSettings(
            bootstrap_servers=self.address,
            client_id=client_id,
            timeout_ms=self.kafka_timeout_ms,
            # librdkafka logs to stderr; the worker logs what matters itself.
            properties={"log_level": "2", **dict(self.client_properties), **dict(properties)},
        )

    @override
    def problems(self) -> Iterable[Problem]:
        """Each topic has a single purpose."""
        yield from super().problems()
        topics = [self.config_storage_topic, self.offset_storage_topic, self.status_storage_topic]
        topics.append(self.redrive_storage_topic)
        if len(set(topics)) < len(topics):
            reason = "the topics for configs, offsets, statuses and redriven letters must be different"
            yield Problem(key="config.storage.topic", value=self.config_storage_topic, reason=reason)
