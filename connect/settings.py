"""What an operator may change about a Connect worker, in the names that Kafka Connect uses where it has one."""

from collections.abc import Iterable

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
from core_broker.service.web.settings import WebSettings

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_ADMIN = Check(
    accepts=lambda value: value in ("", "listeners"),
    allowed="empty, for no /admin, or not set: it has no listeners of its own",
)
_FACTOR = Check(accepts=lambda value: value == -1 or value >= 1, allowed="-1 (the cluster's default) or at least 1")


class ConnectSettings(WebSettings):
    """What an operator may change about a Connect worker."""

    IGNORED = {
        "access.control.*": "browsers of other origins are not served",
        "config.storage.partitions": "the topic of configurations has one partition, always",
        "confluent.*": "it is about Confluent's licence and telemetry",
        "connect.protocol": "workers choose a leader through the group of group.id",
        "inter.worker.*": "workers share nothing but topics: no keys are exchanged",
        "internal.key.converter*": "it is JSON, always",
        "internal.value.converter*": "it is JSON, always",
        "metric.reporters": "metrics are served at /metrics",
        "metrics.*": "metrics are served at /metrics",
        "offset.storage.file.filename": "offsets are kept in offset.storage.topic",
        "plugin.discovery": "plugins are Python entry points",
        "plugin.path": "plugins are Python entry points: install the package that brings them",
        "rest.extension.classes": "Java classes cannot be loaded",
        "scheduled.rebalance.max.delay.ms": "tasks of a lost worker are started elsewhere at once",
        "worker.sync.timeout.ms": "workers read the topic of configurations on their own",
        "worker.unsync.backoff.ms": "workers read the topic of configurations on their own",
    }
    REFUSED = {
        "ssl.keystore.*": "use ssl.certificate.location and ssl.key.location, with PEM files",
        "ssl.truststore.*": "use ssl.ca.location, with a PEM file",
    }

    listeners: tuple[str, ...] = setting(LIST, default=("http://:8083",))
    """Where HTTP is served: `http://host:port` or `https://host:port`, several separated by commas. An empty host
    means every address, port 0 any free port."""
    admin_listeners: str = setting(STRING, default="listeners", check=_ADMIN)
    """Not set: `/admin` is served where everything else is; empty: it is not served at all."""
    rest_advertised_host_name: str = setting(STRING, default="")
    """The name under which other workers and users find this one; not set: the first listener's host, or the machine's
    name where that is empty."""
    rest_advertised_port: int | None = setting(optional(INT), default=None, check=between(1, 65535))
    """The port under which they find it; not set: that of the first listener."""
    rest_request_timeout_ms: int = setting(INT, default=90_000, check=at_least(1000))
    """How long a request may take in this worker before it is answered with 500."""

    bootstrap_servers: tuple[str, ...] = setting(LIST, default=("localhost:9092",), check=not_empty())
    """Where to find the Kafka cluster: `host:port`, several separated by commas."""
    kafka_timeout_ms: int = setting(INT, default=10_000, check=at_least(100))
    """How long one call to the cluster may take, once a broker is connected."""
    client_properties: Properties = gathered("client.", default=())
    """Any property of librdkafka for all that speaks to the cluster: `client.security.protocol`, ..."""
    producer_properties: Properties = gathered("producer.", default=())
    """Any property of librdkafka for producers of sources and dead letters."""
    consumer_properties: Properties = gathered("consumer.", default=())
    """Any property of librdkafka for consumers of sinks."""
    admin_properties: Properties = gathered("admin.", default=())
    """Any property of librdkafka for creating topics."""

    group_id: str = setting(STRING, default="connect-cluster", check=not_empty())
    """Workers of the same name work together: one leads, the others stand by or carry tasks."""
    session_timeout_ms: int = setting(INT, default=10_000, check=at_least(100))
    """After how long a worker that says nothing is lost."""
    heartbeat_interval_ms: int = setting(INT, default=3_000, check=at_least(1))
    """How often a worker says that it lives."""
    config_storage_topic: str = setting(STRING, default="connect-configs", check=not_empty())
    """The topic that keeps what connectors are to do."""
    config_storage_replication_factor: int = setting(SHORT, default=-1, check=_FACTOR)
    """How many copies of it, when this worker creates it."""
    offset_storage_topic: str = setting(STRING, default="connect-offsets", check=not_empty())
    """The topic that keeps how far sources have read."""
    offset_storage_partitions: int = setting(INT, default=25, check=at_least(1))
    """How many partitions it gets, when this worker creates it."""
    offset_storage_replication_factor: int = setting(SHORT, default=-1, check=_FACTOR)
    """How many copies of it, when this worker creates it."""
    status_storage_topic: str = setting(STRING, default="connect-status", check=not_empty())
    """The topic that keeps how connectors and tasks fare."""
    status_storage_partitions: int = setting(INT, default=5, check=at_least(1))
    """How many partitions it gets, when this worker creates it."""
    status_storage_replication_factor: int = setting(SHORT, default=-1, check=_FACTOR)
    """How many copies of it, when this worker creates it."""

    redrive_storage_topic: str = setting(STRING, default="connect-redriven", check=not_empty())
    """The topic that keeps which dead letters were sent again, so that none is twice."""

    key_converter: str = setting(STRING, default=_JSON)
    """How keys of records are read and written, unless a connector says otherwise."""
    key_converter_properties: Properties = gathered("key.converter.", default=())
    """Its options, such as `key.converter.schemas.enable`."""
    value_converter: str = setting(STRING, default=_JSON)
    """How values of records are read and written, unless a connector says otherwise."""
    value_converter_properties: Properties = gathered("value.converter.", default=())
    """Its options, such as `value.converter.schema.registry.url`."""
    header_converter: str = setting(STRING, default=_SIMPLE_HEADERS)
    """How headers of records are read and written, unless a connector says otherwise."""
    header_converter_properties: Properties = gathered("header.converter.", default=())
    """Its options."""

    config_providers: tuple[str, ...] = setting(LIST, default=("file", "env", "dir"))
    """Names of the providers that connectors may take values from, as in `${file:/run/secrets/db:password}`."""
    config_provider_properties: Properties = gathered("config.providers.", default=())
    """Their classes and options, such as `config.providers.file.param.allowed.paths`."""
    connector_client_config_override_policy: str = setting(
        STRING, default="All", check=one_of("All", "None", "Principal", "Allowlist")
    )
    """Which properties of clients connectors may set (`producer.override.…`, `consumer.override.…`,
    `admin.override.…`)."""
    connector_client_config_override_allowlist: tuple[str, ...] = setting(LIST, default=())
    """Those that the policy Allowlist allows."""

    spark_properties: Properties = gathered("spark.", default=())
    """For connectors that let Spark work: where its data and tables are (`spark.caudal.…`), its master, and any
    property of Spark's own."""

    offset_flush_interval_ms: int = setting(LONG, default=10_000, check=at_least(1))
    """How often sources note how far they are, and sinks commit."""
    offset_flush_timeout_ms: int = setting(LONG, default=5_000, check=at_least(1))
    """How long that may take before it is tried again later."""
    exactly_once_source_support: str = setting(
        STRING, default="requested", check=one_of("disabled", "preparing", "requested", "enabled")
    )
    """Whether sources write records and offsets in transactions: never, for connectors that say
    `exactly.once.support=required`, or for all."""
    topic_creation_enable: bool = setting(BOOLEAN, default=True)
    """Whether sources may create their topics (`topic.creation.…` of the connector)."""
    topic_tracking_enable: bool = setting(BOOLEAN, default=True)
    """Whether it is noted which topics a connector uses."""
    topic_tracking_allow_reset: bool = setting(BOOLEAN, default=True)
    """Whether that may be forgotten on request."""
    task_shutdown_graceful_timeout_ms: int = setting(LONG, default=5_000, check=at_least(0))
    """How long tasks may take to stop before they are left to themselves."""

    executor: str = setting(STRING, default="in_process", check=one_of("in_process", "celery"))
    """Where tasks run: in this worker and processes of its own, or on Celery workers."""
    task_processes: int = setting(INT, default=-1, check=between(-1, 256))
    """How many processes this worker's tasks are spread over: 0 for threads of the worker alone, -1 for one per
    processor."""
    celery_broker_url: str = setting(STRING, default="redis://localhost:6379/0", sensitive=True)
    """The Redis that Celery workers listen to, and that keeps who owns which task."""
    celery_queue: str = setting(STRING, default="connect", check=not_empty())
    """The queue of those workers; never share it with other programs."""
    celery_lease_ms: int = setting(INT, default=10_000, check=at_least(1000))
    """For how long a Celery worker owns a task without saying that it lives."""

    @property
    def address(self) -> str:
        """Where the cluster is looked for."""
        return ",".join(self.bootstrap_servers)

    def kafka(self, properties: Properties = (), *, client_id: str = "caudal-connect") -> ClientSettings:
        """How to reach the cluster; `properties` are those of one kind of client."""
        return ClientSettings(
            bootstrap_servers=self.address,
            client_id=client_id,
            timeout_ms=self.kafka_timeout_ms,
            # librdkafka writes to stderr past our log; what matters of it, the worker logs itself.
            properties={"log_level": "2", **dict(self.client_properties), **dict(properties)},
        )

    @override
    def problems(self) -> Iterable[Problem]:
        """A topic keeps one thing alone."""
        yield from super().problems()
        topics = [self.config_storage_topic, self.offset_storage_topic, self.status_storage_topic]
        topics.append(self.redrive_storage_topic)
        if len(set(topics)) < len(topics):
            reason = "the topics of configs, offsets, status and redriven letters must be four"
            yield Problem(key="config.storage.topic", value=self.config_storage_topic, reason=reason)
