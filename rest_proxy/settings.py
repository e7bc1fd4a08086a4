"""The settings of a REST proxy, with Confluent's names where it has the same setting."""

from collections.abc import Iterable, Mapping

from typing_extensions import override

from core_broker.client.settings import ClientSettings
from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Problem,
    Properties,
    at_least,
    between,
    gathered,
    not_empty,
    setting,
)
from core_broker.web_access.settings import BEARER, AccessSettings
from schema_registry.client.settings import InvalidSettings, RegistryClientSettings

_IMPATIENT = {"schema.registry.max.retries": "1", "schema.registry.request.timeout.ms": "2000"}
"""A client waits for the response: fail soon if the registry does not answer, instead of retrying for long."""

_CLIENT_ID = "caudal-rest-proxy"
_QUIET = {"log_level": "2"}
"""librdkafka writes to stderr instead of our log; the proxy logs what matters itself."""


class ProxySettings(AccessSettings):
    """The settings of a REST proxy."""

    IGNORED = {
        "confluent.*": "it is about Confluent's licence and telemetry",
        "consumer.iterator.*": "it is about consumers of API v1",
        "debug": "use logging.level",
        "host.name": "use advertised.listeners",
        "metrics.jmx.prefix": "metrics are served at /metrics",
        "producer.threads": "one thread sends all records",
        "simpleconsumer.*": "it is about consumers of API v1",
        "zookeeper.connect": "use bootstrap.servers",
    }
    REFUSED = {
        "api.endpoints.*": "endpoints cannot be switched off one by one: put a proxy that does so in front",
        "authentication.roles": "there are no roles: the cluster decides what its users may do",
        "kafka.rest.resource.extension.class": "Java classes cannot be loaded",
        "rate.limit.*": "use produce.in.flight.max.records, consumer.instances.max and streams.max",
        "ssl.keystore.*": "use ssl.certificate.location and ssl.key.location, with PEM files",
        "ssl.truststore.*": "use ssl.ca.location, with a PEM file",
    }

    listeners: tuple[str, ...] = setting(LIST, default=("http://:8082",))
    """Where HTTP is served: `http://host:port` or `https://host:port`, several separated by commas. An empty host
    means every address, port 0 any free port."""
    advertised_listeners: tuple[str, ...] = setting(LIST, default=())
    """Where clients reach this proxy, for the URLs in its responses. Not set: the host of the request."""
    id: str = setting(STRING, default="")
    """Name of this proxy among several; becomes part of the names that it generates for consumer instances."""
    access_control_allow_origin: tuple[str, ...] = setting(LIST, default=())
    """Origins whose pages may use this proxy from a browser (CORS), such as `https://shop.example`, or `*` for all. Not
    set: only its own."""
    access_control_allow_methods: tuple[str, ...] = setting(LIST, default=("GET", "POST", "PUT", "PATCH", "DELETE"))
    """Methods that such pages may use."""
    access_control_allow_headers: tuple[str, ...] = setting(LIST, default=("*",))
    """Headers that such pages may send; `*` for all."""
    request_max_bytes: int = setting(LONG, default=16 * 1024 * 1024, check=at_least(1024))
    """Largest body of a request; a larger one is refused with 413 before memory is allocated for it. A stream of
    records (API v3) may be of any length: there it limits each record."""

    bootstrap_servers: tuple[str, ...] = setting(LIST, default=("localhost:9092",), check=not_empty())
    """Where to find the Kafka cluster: `host:port`, several separated by commas."""
    kafka_timeout_ms: int = setting(INT, default=30_000, check=at_least(100))
    """How long one call to the cluster may take, once a broker is connected: longer than other brokers need to replace
    one that has died."""
    client_properties: Properties = gathered("client.", default=())
    """Any property of librdkafka for all clients of the cluster: `client.security.protocol`, ..."""
    producer_properties: Properties = gathered("producer.", default=())
    """Any property of librdkafka for producers: `producer.compression.type`, `producer.linger.ms`, ..."""
    consumer_properties: Properties = gathered("consumer.", default=())
    """Any property of librdkafka for consumers: `consumer.isolation.level`, ..."""
    admin_properties: Properties = gathered("admin.", default=())
    """Any property of librdkafka for administration."""

    schema_registry_properties: Properties = gathered("schema.registry.", default=())
    """How to reach the schema registry: `schema.registry.url` (`http://localhost:8081` by default), and the other
    properties of Confluent's clients, such as `schema.registry.basic.auth.user.info`."""

    schema_registry_as_caller: bool = setting(BOOLEAN, default=False)
    """Log in at the schema registry as the caller of each request, with its password or token, so that its access rules
    apply to callers (authentication.method). Otherwise all of them may do there what this proxy may do
    (schema.registry.*)."""

    caller_clients_max: int = setting(INT, default=100, check=between(1, 100_000))
    """Where callers log in (authentication.method): for how many of them Kafka clients are kept at once. Those that
    were not used for the longest time make room for others; 429 while all of them are in use. A caller that writes and
    administers costs about 7 threads, 12 open files and 1 MiB with one broker, and connections to each further one."""
    caller_clients_idle_timeout_ms: int = setting(INT, default=300_000, check=at_least(100))
    """How long Kafka clients of a caller are kept without requests."""

    caller_consumer_instances_max: int = setting(INT, default=100, check=between(1, 10_000))
    """Most consumer instances of one of these callers, so that others get some, too. 429 beyond."""

    produce_request_max_records: int = setting(INT, default=10_000, check=between(1, 1_000_000))
    """Most records in one request, 413 beyond; streams of API v3 have no such limit."""
    produce_batch_max_entries: int = setting(INT, default=10, check=between(1, 100_000))
    """Most entries in one `records:batch` request of API v3."""
    produce_in_flight_max_records: int = setting(INT, default=200_000, check=at_least(1))
    """Most records in flight to the cluster; requests beyond are refused with 429."""
    produce_in_flight_max_bytes: int = setting(LONG, default=256 * 1024 * 1024, check=at_least(1024))
    """Most bytes of records in flight to the cluster; requests beyond are refused with 429."""
    streaming_connection_max_duration_ms: int = setting(LONG, default=24 * 60 * 60 * 1000, check=at_least(1))
    """How long one stream of API v3 may send records; later ones are refused with 408."""
    streaming_connection_max_duration_grace_period_ms: int = setting(LONG, default=500, check=at_least(0))
    """How much longer such a stream stays open, so that its client learns why it ends."""
    streaming_connection_idle_timeout_ms: int = setting(INT, default=300_000, check=at_least(1))
    """How long such a stream may send nothing before it is ended with 408."""

    fetch_min_bytes: int = setting(INT, default=1, check=between(-1, 10_000_000))
    """How many bytes a poll of a consumer instance waits for; -1 to wait until its time is up."""
    consumer_request_timeout_ms: int = setting(INT, default=1000, check=between(0, 2**31 - 1))
    """How long a poll waits for records unless the request has its own time-out."""
    consumer_request_max_bytes: int = setting(LONG, default=16 * 1024 * 1024, check=at_least(1))
    """Most bytes of keys and values in one response, whatever the request asks for; the rest comes with the next."""
    consumer_untaken_max_bytes: int = setting(LONG, default=256 * 1024 * 1024, check=at_least(1))
    """Most bytes of large responses that clients have not read yet; reads beyond are refused with 429."""
    consumer_instance_timeout_ms: int = setting(INT, default=300_000, check=at_least(1))
    """How long a consumer instance lives without requests."""
    consumer_instances_max: int = setting(INT, default=200, check=between(1, 10_000))
    """Most consumer instances at once; each costs a few threads and connections. 429 beyond."""
    state_dir: str = setting(STRING, default="caudal-platform/rest-proxy")
    """Folder in which consumer instances are saved, so that they survive a restart; by default where `caudal up` keeps
    them, and created with the first instance. Empty to keep them in memory only, where a restart loses them."""
    streams_max: int = setting(INT, default=100, check=between(1, 10_000))
    """Most live streams at once. 429 beyond."""
    stream_heartbeat_ms: int = setting(INT, default=15_000, check=at_least(100))
    """How often a live stream without records sends a heartbeat."""
    readers_max: int = setting(INT, default=32, check=between(1, 1000))
    """Most reads without an instance at once, including idle connections kept for them. 429 beyond."""

    api_v2_enable: bool = setting(BOOLEAN, default=True)
    """Whether API v2 is served."""
    api_v3_enable: bool = setting(BOOLEAN, default=True)
    """Whether API v3 is served."""
    api_v2_plain_records: bool = setting(BOOLEAN, default=False)
    """Leave headers and timestamps out of records in API v2, for clients that accept only Confluent's fields."""

    @property
    def address(self) -> str:
        """The bootstrap address of the cluster."""
        return ",".join(self.bootstrap_servers)

    @override
    def own_cluster(self) -> Mapping[str, str]:
        """This cluster checks the passwords of callers."""
        return {"bootstrap.servers": self.address, **dict(self.client_properties)}

    def kafka(self, properties: Properties = ()) -> ClientSettings:
        """How to reach the cluster as the proxy itself; `properties` are those of one kind of client."""
        return ClientSettings(
            bootstrap_servers=self.address,
            client_id=_CLIENT_ID,
            timeout_ms=self.kafka_timeout_ms,
            properties={**_QUIET, **dict(self.client_properties), **dict(properties)},
        )

    def kafka_of_callers(self, properties: Properties = ()) -> ClientSettings:
        """How to reach the cluster, without a user; `properties` are those of one kind of client."""
        cluster = self.password_cluster()
        assert cluster is not None, "there is always a bootstrap address"
        given = {**cluster.properties, **{key: value for key, value in properties if not _is_login(key)}}
        return ClientSettings(
            bootstrap_servers=cluster.bootstrap_servers,
            client_id=_CLIENT_ID,
            timeout_ms=self.kafka_timeout_ms,
            properties={**_QUIET, **given},
        )

    def registry(self) -> RegistryClientSettings:
        """How to reach the schema registry."""
        given = {f"schema.registry.{key}": value for key, value in self.schema_registry_properties}
        return RegistryClientSettings.parse({**_IMPATIENT, **given})

    @override
    def problems(self) -> Iterable[Problem]:
        """Properties for the registry's client must be known to it."""
        yield from super().problems()
        try:
            self.registry()
        except InvalidSettings as error:
            yield Problem(key="schema.registry.*", value="******", reason=str(error))
        if BEARER in self.methods and (reason := self._token_problem()):
            yield Problem(key="client.*", value="******", reason=reason)
        if self.schema_registry_as_caller and not self.methods:
            yield Problem(
                key="schema.registry.as.caller",
                value="true",
                reason="callers have to log in: set authentication.method",
            )

    def _token_problem(self) -> str | None:
        from core_broker.client.java_properties import PropertyRefused

        try:
            properties = self.kafka_of_callers().properties
        except PropertyRefused as error:
            return str(error)
        if not properties.get("security.protocol", "").upper().startswith("SASL_"):
            return "client.security.protocol must be SASL_SSL or SASL_PLAINTEXT: tokens of callers are passed on"
        return None


def _is_login(key: str) -> bool:
    return key == "security.protocol" or key.startswith("sasl.")
