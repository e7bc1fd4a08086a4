"""The services of the platform as data: names, ports, who needs whom, and the settings that join them.

The launcher is made from it; the compose files, the chart, the units, the sample properties and the scrape
configuration are tested against it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service."""

    name: str
    """The name of its command: `caudal NAME`."""
    title: str
    purpose: str
    port: int
    protocol: str = "http"
    """The protocol of its listener."""
    environment_prefix: str
    config_file: str
    """The usual name of its properties file."""
    settings_page: str
    """The page that explains its settings."""
    needs: tuple[str, ...] = ()
    """Services that must be ready before it starts."""
    metrics_port: int | None = None
    """The port of `/metrics` and `/health`; None for its own port."""
    controller_port: int | None = None
    """The port for the controllers of other brokers; None for a broker on its own."""
    certificates_port: int | None = None
    """The port of a secured broker for other brokers, and for clients that log in with a certificate."""


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
    certificates_port=9192,
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
STREAMS: Final = Service(
    name="streams",
    title="Streams",
    purpose="SQL over topics, with ksqlDB's API; Spark runs its queries",
    port=8088,
    environment_prefix="KSQL_",
    config_file="ksql-server.properties",
    settings_page="streams/SETTINGS.md",
    needs=("broker", "registry"),
)

STACK: Final = (BROKER, REGISTRY, REST_PROXY, CONNECT, STREAMS)
"""In the order in which they start; they stop in reverse."""
BY_NAME: Final = {service.name: service for service in STACK}
THIS_MACHINE: Final = "localhost"
DEFAULT_BOOTSTRAP: Final = f"{THIS_MACHINE}:{BROKER.port}"
BROKERS_MAX: Final = 9
"""Brokers of a cluster on one machine."""
CLIENTS_LISTENER: Final = "CLIENTS"
CERTIFICATES_LISTENER: Final = "CERTIFICATES"
"""The listeners of a secured broker: for logins with a password, and for those with a certificate, as of brokers."""
CONTROLLERS_LISTENER: Final = "CONTROLLER"
SPARK_CONNECT_PORT: Final = 15002
"""The port for notebooks. Spark is not a service of its own: Connect and streams start it on first use."""
WITH_SPARK: Final = (CONNECT.name, STREAMS.name)
"""Services that start Spark when they need it."""
_CLIENTS: Final = (REST_PROXY.name, CONNECT.name, STREAMS.name)
"""Services that are clients of the cluster."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_NUMBERED_BROKER: Final = re.compile(r"broker-([1-9]\d*)")


def brokers_of(count: int) -> tuple[Service, ...]:
    """The brokers of a platform: one called `broker`, or `broker-1` and so on, which form a cluster."""
    if count == 1:
        return (BROKER,)
    assert BROKER.metrics_port is not None
    assert BROKER.certificates_port is not None
    return tuple(
        replace(
            BROKER,
            name=f"broker-{number + 1}",
            port=BROKER.port + 2 * number,
            controller_port=BROKER.port + 2 * number + 1,
            metrics_port=BROKER.metrics_port + number,
            certificates_port=BROKER.certificates_port + 2 * number,
        )
        for number in range(count)
    )


def kind_of(name: str) -> Service:
    """The service of the stack that a name stands for: `broker-2` is a broker. KeyError for others."""
    return BROKER if broker_number(name) else BY_NAME[name]


def broker_number(name: str) -> int | None:
    """2 for `broker-2`; None for what is not a broker of a cluster."""
    found = _NUMBERED_BROKER.fullmatch(name)
    return int(found[1]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddress:
    """The address and folder of a running service."""

    host: str
    """The name under which the others reach it."""
    port: int
    data: str
    """Its own folder."""
    bind: str = ""
    """The address it listens on; empty for all."""
    metrics_port: int | None = None
    controller_port: int | None = None
    certificates_port: int | None = None
    """Only of a secured broker."""
    scheme: str = "http"
    """`https` for secured services."""


def settings_of(
    name: str, addresses: Mapping[str, ServiceAddress], *, elsewhere: Mapping[str, str] = _NONE
) -> dict[str, str]:
    """The settings that make a service work with the others, wherever they run.

    `elsewhere` has the addresses of those that are not ours: `broker` as host:port (or several), `registry` as a URL.
    """
    own, kind = addresses[name], kind_of(name)
    settings = {"listeners": f"{own.scheme}://{own.bind}:{own.port}"}
    own_urls = {other: f"{address.scheme}://{address.host}:{address.port}" for other, address in addresses.items()}
    urls = own_urls | dict(elsewhere)
    brokers = {other: address for other, address in addresses.items() if kind_of(other) is BROKER}
    if name in _CLIENTS:
        own_brokers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers.values())
        settings["bootstrap.servers"] = elsewhere.get("broker") or own_brokers
    match kind.name:
        case "broker":
            settings |= _broker_settings(own, urls)
            if len(brokers) > 1:
                settings |= _cluster_settings(name, brokers)
        case "registry":
            settings["database.url"] = f"sqlite:///{own.data}/registry.db"
        case "rest-proxy":
            settings |= {"schema.registry.url": urls["registry"], "state.dir": own.data}
        case "connect":
            settings |= {"rest.advertised.host.name": own.host, "spark.caudal.data.dir": own.data}
        case "streams":
            settings |= _streams_settings(own, urls)
            if len(brokers) > 1:
                settings["ksql.internal.topic.replicas"] = str(_replicas(brokers))
        case _:
            raise KeyError(name)
    return settings


def _broker_settings(own: ServiceAddress, urls: Mapping[str, str]) -> dict[str, str]:
    """Settings of every broker."""
    # By default a new group waits 3 s for more members; Kafka's own sample configuration turns that off, too.
    settings = {"listeners": _listeners_of(own), "log.dirs": own.data, "group.initial.rebalance.delay.ms": "0"}
    if own.metrics_port is not None:
        settings["metrics.listener"] = f"{own.scheme}://{own.bind}:{own.metrics_port}"
    if "registry" in urls:
        # Only guarded topics use it.
        settings["confluent.schema.registry.url"] = urls["registry"]
    return settings


def _streams_settings(own: ServiceAddress, urls: Mapping[str, str]) -> dict[str, str]:
    """Settings of the service of SQL."""
    settings = {
        "ksql.schema.registry.url": urls["registry"],
        "ksql.streams.state.dir": own.data,
        "spark.caudal.data.dir": f"{own.data}/spark",
    }
    if "connect" in urls:
        # Only statements about connectors use it.
        settings["ksql.connect.url"] = urls["connect"]
    return settings


def _listeners_of(own: ServiceAddress) -> str:
    """The listeners of a broker; controllers talk on this machine only, whatever address clients use."""
    name = CLIENTS_LISTENER if own.certificates_port else BROKER.protocol
    listeners = [f"{name}://{own.bind}:{own.port}"]
    if own.certificates_port:
        listeners.append(f"{CERTIFICATES_LISTENER}://{own.bind}:{own.certificates_port}")
    if own.controller_port:
        listeners.append(f"{CONTROLLERS_LISTENER}://{THIS_MACHINE}:{own.controller_port}")
    return ",".join(listeners)


def _replicas(brokers: Mapping[str, ServiceAddress]) -> int:
    """How many copies a cluster keeps of each topic."""
    return min(3, len(brokers))


def _cluster_settings(name: str, brokers: Mapping[str, ServiceAddress]) -> dict[str, str]:
    """Settings of one broker of a cluster: the first forms it, the others join it and become voters."""
    first = next(iter(brokers))
    replicas = _replicas(brokers)
    # With three copies a write is on two; with two it has to do with one, or no broker could fail.
    in_sync = str(max(1, replicas - 1))
    settings = {
        "node.id": str(broker_number(name)),
        "controller.listener.names": CONTROLLERS_LISTENER,
        "controller.quorum.auto.join.enable": "true",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
    }
    if name != first:
        settings["controller.quorum.bootstrap.servers"] = f"{THIS_MACHINE}:{brokers[first].controller_port}"
    return settings
