"""The services of the platform as data: names, ports, who needs whom, and the settings that join them.

The launcher is made from it; the compose files, the chart, the units, the sample properties and the scrape
configuration are tested against it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service, as its operator knows it."""

    name: str
    """Of its command: `caudal NAME`."""
    title: str
    purpose: str
    port: int
    protocol: str = "http"
    """Of its listener."""
    environment_prefix: str
    config_file: str
    """What people call its properties file."""
    settings_page: str
    """Where its settings are explained."""
    needs: tuple[str, ...] = ()
    """Services that must be ready before it starts."""
    metrics_port: int | None = None
    """Where `/metrics` and `/health` are; None: at its own port."""


BROKER: Final = Service(
    name="broker",
    title="Broker",
    purpose="topics, groups and transactions for any Kafka client",
    port=9092,
    protocol="PLAINTEXT",
    environment_prefix="KAFKA_",
    config_file="server.properties",
    settings_page="core_broker/SETTINGS.md",
    metrics_port=9404,
)
REGISTRY: Final = Service(
    name="registry",
    title="Schema registry",
    purpose="Avro, Protobuf and JSON Schema, with Confluent's API",
    port=8081,
    environment_prefix="SCHEMA_REGISTRY_",
    config_file="schema-registry.properties",
    settings_page="schema_registry/SETTINGS.md",
)
REST_PROXY: Final = Service(
    name="rest-proxy",
    title="REST proxy",
    purpose="produce, consume and administer over HTTP",
    port=8082,
    environment_prefix="KAFKA_REST_",
    config_file="kafka-rest.properties",
    settings_page="rest_proxy/SETTINGS.md",
    needs=("broker", "registry"),
)
CONNECT: Final = Service(
    name="connect",
    title="Connect",
    purpose="connectors configured with JSON, the Spark sink among them",
    port=8083,
    environment_prefix="CONNECT_",
    config_file="connect-distributed.properties",
    settings_page="connect/SETTINGS.md",
    needs=("broker", "registry"),
)

STACK: Final = (BROKER, REGISTRY, REST_PROXY, CONNECT)
"""In the order in which they start; they stop in the opposite one."""
BY_NAME: Final = {service.name: service for service in STACK}
SPARK_CONNECT_PORT: Final = 15002
"""Spark is no service of its own: Connect starts it on first need, and notebooks find it here."""
_NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one service stands."""

    host: str
    """The name under which the others reach it."""
    port: int
    data: str
    """A folder of its own."""
    bind: str = ""
    """The address it listens on; empty: every one."""
    metrics_port: int | None = None


def settings_of(name: str, places: Mapping[str, Place], *, elsewhere: Mapping[str, str] = _NOWHERE) -> dict[str, str]:
    """The settings that make a service of the stack work beside the others, wherever they stand.

    `elsewhere` has the addresses of those that are not ours: `broker` as host:port (or several), `registry` as a URL.
    """
    place = places[name]
    shared = {"listeners": f"{BY_NAME[name].protocol}://{place.bind}:{place.port}"}
    match name:
        case "broker":
            return {**shared, **_broker(place, places, elsewhere)}
        case "registry":
            return {**shared, "database.url": f"sqlite:///{place.data}/registry.db"}
        case "rest-proxy":
            return {
                **shared,
                "bootstrap.servers": _bootstrap(places, elsewhere),
                "schema.registry.url": url("registry", places, elsewhere=elsewhere),
                "state.dir": place.data,
            }
        case "connect":
            return {
                **shared,
                "bootstrap.servers": _bootstrap(places, elsewhere),
                "rest.advertised.host.name": place.host,
                "spark.caudal.data.dir": place.data,
            }
        case _:
            raise KeyError(name)


def url(name: str, places: Mapping[str, Place], *, elsewhere: Mapping[str, str] = _NOWHERE) -> str:
    """Where an HTTP service is reached by the others."""
    return elsewhere[name] if name in elsewhere else f"http://{places[name].host}:{places[name].port}"


def _broker(place: Place, places: Mapping[str, Place], elsewhere: Mapping[str, str]) -> dict[str, str]:
    # By default a new group waits 3 s for more members; Kafka's own sample configuration turns that off, too.
    chosen = {"log.dirs": place.data, "group.initial.rebalance.delay.ms": "0"}
    if place.metrics_port is not None:
        chosen["metrics.listener"] = f"http://{place.bind}:{place.metrics_port}"
    if "registry" in places or "registry" in elsewhere:
        # Asked by guarded topics alone.
        chosen["confluent.schema.registry.url"] = url("registry", places, elsewhere=elsewhere)
    return chosen


def _bootstrap(places: Mapping[str, Place], elsewhere: Mapping[str, str]) -> str:
    return elsewhere["broker"] if "broker" in elsewhere else f"{places['broker'].host}:{places['broker'].port}"
