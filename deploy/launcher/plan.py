"""Turns a request into a plan: services, addresses, ports and settings. Nothing is started or created yet."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.launcher.request import Refused, Request
from deploy.launcher.state import earlier_controller_ports
from deploy.security.folder import SecurityFolder
from deploy.security.settings import secret_settings, secure_settings
from deploy.stack import (
    BROKER,
    BROKERS_MAX,
    BY_NAME,
    CERTIFICATES_LISTENER,
    CLIENTS_LISTENER,
    SPARK_CONNECT_PORT,
    STACK,
    THIS_MACHINE,
    WITH_SPARK,
    Service,
    ServiceAddress,
    broker_number,
    brokers_of,
    kind_of,
    settings_of,
)

ANY_PORT: Final = 0
METRICS: Final = "broker-metrics"
"""The metrics of the only broker."""
SPARK: Final = "spark"
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::", "[::]", "*")
_FOLDERS: Final = {"connect": "spark", "broker-1": "broker"}
"""Connect stores its state in topics; its data on disk is Spark's. The only broker becomes the first of a cluster."""
_FORBIDDEN: Final = frozenset(",?#\n")
"""Separators in the settings and URLs that contain the path."""
_OPTIONS: Final = {
    "listeners": "--host ADDR and --ports NAME=PORT",
    "metrics.listener": "--host ADDR and --ports broker-metrics=PORT",
    "spark.caudal.connect.port": "--ports spark=PORT",
    "spark.caudal.data.dir": "--data DIR",
}
"""Settings that have options of their own, because other services need them, too."""
_SECURITY_PAGE: Final = "deploy/SECURITY.md"
_ELSEWHERE: Final = {"broker": "--bootstrap HOST:PORT", "registry": "--registry URL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will run, and where; a port may still be `ANY_PORT`."""

    data: Path
    services: tuple[Service, ...]
    bind: str
    """The address to listen on; empty for all."""
    host: str
    """The name under which the services are reached."""
    ports: Mapping[str, int]
    """By service, and of `SPARK` and the metrics and controllers of brokers."""
    extra: Mapping[str, Mapping[str, str]]
    """Settings of the request, by service; those of `broker` are for every broker."""
    elsewhere: Mapping[str, str]
    """Addresses of services that run elsewhere."""
    racks: bool = False
    """Whether each broker has a rack of its own."""
    security: SecurityFolder | None = None
    """The certificates and users of a secured platform; None for a platform without logins."""

    @property
    def logs(self) -> Path:
        """The folder of all logs."""
        return self.data / "logs"

    @property
    def spark(self) -> Path:
        """The folder of the Spark engine."""
        return self.data / SPARK

    @property
    def has_spark(self) -> bool:
        """Whether a service of this plan may start Spark."""
        return any(service.name in WITH_SPARK for service in self.services)

    def log_of(self, name: str) -> Path:
        """The log of a service."""
        return self.logs / f"{name}.log"

    def folder_of(self, name: str) -> Path:
        """The folder of a service."""
        return self.data / _FOLDERS.get(name, name)

    def needs_of(self, service: Service, *, is_restart: bool = False) -> tuple[str, ...]:
        """The services of this plan that must be ready before it; a restart does not wait for the brokers of a cluster,
        of which some may be down."""
        return tuple(
            other.name
            for other in self.services
            if kind_of(other.name).name in service.needs and not (is_restart and broker_number(other.name))
        )

    def addresses(self) -> dict[str, ServiceAddress]:
        """The address of each service, once all ports are known."""
        return {
            service.name: ServiceAddress(
                host=self.host,
                port=self.ports[service.name],
                data=str(self.folder_of(service.name)),
                bind=self.bind,
                metrics_port=self.ports[_metrics_of(service.name)] if service.metrics_port else None,
                controller_port=self.ports[_controller_of(service.name)] if service.controller_port else None,
                certificates_port=self.ports[_certificates_of(service.name)]
                if service.certificates_port and self.security
                else None,
                scheme=self._scheme,
            )
            for service in self.services
        }

    @property
    def brokers(self) -> list[str]:
        """The names of the brokers."""
        return [service.name for service in self.services if kind_of(service.name) is BROKER]

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers, for clients."""
        return ",".join(map(self.endpoint_of, self.brokers))

    @property
    def certificates_bootstrap(self) -> str:
        """The same for clients that log in with a certificate; only of a secured platform."""
        return ",".join(f"{self.host}:{self.ports[_certificates_of(name)]}" for name in self.brokers)

    @property
    def controller_ports(self) -> dict[str, int]:
        """The ports by which the brokers of a cluster find each other."""
        names = (_controller_of(service.name) for service in self.services if service.controller_port)
        return {name: self.ports[name] for name in names}

    def settings_of(self, name: str) -> dict[str, str]:
        """All settings of a service; those of the request win."""
        settings = settings_of(name, self.addresses(), elsewhere=self.elsewhere)
        if name in WITH_SPARK:
            settings |= self._spark_settings()
        number = broker_number(name)
        if number and self.racks:
            settings["broker.rack"] = f"rack-{number}"
        if number and not self.bind:
            # All brokers must name the same address of a broker. A single one names that by which it was reached.
            ports = {CLIENTS_LISTENER if self.security else BROKER.protocol: self.ports[name]}
            if self.security:
                ports[CERTIFICATES_LISTENER] = self.ports[_certificates_of(name)]
            machine = _name_of_machine()
            settings["advertised.listeners"] = ",".join(f"{key}://{machine}:{port}" for key, port in ports.items())
        given = {**self.extra.get(kind_of(name).name, {}), **self.extra.get(name, {})}
        if self.security:
            settings |= secure_settings(
                self.security, name, bootstrap=self.bootstrap, brokers=self.brokers, given=given
            )
            if name == "connect" and "registry" in self.ports:
                settings["connector.allowed.addresses"] = f"{self.host}:{self.ports['registry']}"
        return {**settings, "logging.format": "text", **given}

    def _spark_settings(self) -> dict[str, str]:
        """Connect and streams share one Spark, and so its settings: the first of them that needs it starts it."""
        given = [self.extra.get(name, {}) for name in WITH_SPARK]
        shared = {key: value for one in given for key, value in one.items() if key.startswith("spark.")}
        own = {"spark.caudal.data.dir": str(self.spark), "spark.caudal.connect.port": str(self.ports[SPARK])}
        return own | shared

    def secrets_of(self, name: str) -> dict[str, str]:
        """Settings of a service that no other user may read. Raises OSError."""
        return secret_settings(self.security, name) if self.security else {}

    def endpoint_of(self, name: str) -> str:
        """The address for clients: host:port of a broker, else a URL."""
        address = f"{self.host}:{self.ports[name]}"
        return address if kind_of(name).protocol != "http" else f"{self._scheme}://{address}"

    def watch_of(self, name: str) -> str:
        """Where `/health` and `/metrics` of a service are."""
        port = self.ports[_metrics_of(name) if kind_of(name).metrics_port else name]
        return f"{self._scheme}://{self.host}:{port}"

    @property
    def _scheme(self) -> str:
        return "https" if self.security else "http"


def make_plan(request: Request) -> Plan:
    """The plan of a request; raises `Refused` if it cannot work."""
    data = Path(request.data).expanduser().absolute()
    if bad := sorted(_FORBIDDEN & set(str(data))):
        raise Refused(
            f"--data {data} has {' and '.join(map(repr, bad))} in it, which services cannot take in a path",
            ["choose another folder:  `--data DIR` (or set CAUDAL_DATA)"],
        )
    for name in request.without:
        if name not in BY_NAME:
            raise Refused(f"--without {name}: there is no such service", [f"there are:  {', '.join(BY_NAME)}"])
    services = tuple(service for service in _stack(request, data) if service.name not in request.without)
    if not services:
        raise Refused("--without leaves nothing to run", [f"there are:  {', '.join(BY_NAME)}"])
    security = _security(request, data)
    return Plan(
        data=data,
        services=services,
        bind=_bind(request.host),
        host=_bind(request.host) or THIS_MACHINE,
        ports=_ports(request.ports, services, data, is_secure=security is not None),
        extra=_extra(request.settings, services),
        elsewhere=_elsewhere(request, services),
        racks=request.racks,
        security=security,
    )


def port_names(services: Sequence[Service] = STACK, *, is_secure: bool = False) -> dict[str, int]:
    """Everything that listens, with its default port."""
    named: dict[str, int] = {}
    for service in services:
        named[service.name] = service.port
        if service.certificates_port and is_secure:
            named[_certificates_of(service.name)] = service.certificates_port
        if service.controller_port:
            named[_controller_of(service.name)] = service.controller_port
        if service.metrics_port:
            named[_metrics_of(service.name)] = service.metrics_port
    return {**named, SPARK: SPARK_CONNECT_PORT} if any(name in named for name in WITH_SPARK) else named


def is_open(bind: str) -> bool:
    """Whether other machines can reach this address."""
    return bind not in (THIS_MACHINE, "[::1]") and not bind.startswith("127.")


def _security(request: Request, data: Path) -> SecurityFolder | None:
    """The certificates and users of a platform that is to be secured, or was so before; None for an open one."""
    if request.secure and request.insecure:
        raise Refused("--secure and --insecure contradict each other", ["leave out one of them"])
    folder = SecurityFolder(data)
    if request.secure or (folder.is_set_up and not request.insecure):
        if "broker" in request.without or request.bootstrap or request.registry:
            raise Refused(
                "a secured platform has its own users, and so its own broker and registry",
                ["leave out  `--without broker`, `--bootstrap` and `--registry`", f"or by hand:  {_SECURITY_PAGE}"],
            )
        return folder
    if is_open(_bind(request.host)) and not request.insecure:
        raise Refused(
            f"--host {request.host}: everyone who reaches this machine could read, change and delete everything, "
            "because nothing is encrypted and no login is needed",
            [
                "encrypted, with users:  `--secure`",
                "or, where only those reach it who may do everything:  `--insecure`",
            ],
        )
    return None


def _stack(request: Request, data: Path) -> tuple[Service, ...]:
    """All services, with as many brokers as the request says, or as the folder has data of."""
    if "broker" in request.without:
        if request.brokers is not None:
            raise Refused("--brokers and --without broker contradict each other", ["leave out one of them"])
        return STACK
    numbers = [number for folder in data.glob("broker-*") if (number := broker_number(folder.name))]
    present = max(numbers, default=1)
    wanted = present if request.brokers is None else request.brokers
    if not 1 <= wanted <= BROKERS_MAX:
        raise Refused(f"--brokers {wanted} must be from 1 to {BROKERS_MAX}")
    if wanted < present:
        raise Refused(
            f"--brokers {wanted}: {data} has the data of {present} brokers, which need each other",
            [
                f"start them all:  `--brokers {present}`",
                f"or take one away for good; while they run:  `caudal cluster drain {present}`",
                f"stop broker-{present}, and  `caudal cluster unregister {present}`; then delete broker-{present}/",
            ],
        )
    return tuple(other for service in STACK for other in (brokers_of(wanted) if service is BROKER else (service,)))


def _name_of_machine() -> str:
    """The name by which others may know this machine, if it knows it itself."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return THIS_MACHINE
    return name


def _metrics_of(name: str) -> str:
    return f"{name}-metrics"


def _certificates_of(name: str) -> str:
    return f"{name}-certificates"


def _controller_of(name: str) -> str:
    return f"{name}-controller"


def _bind(host: str) -> str:
    if host in _EVERY_ADDRESS:
        return ""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _ports(given: Sequence[str], services: Sequence[Service], data: Path, *, is_secure: bool) -> dict[str, int]:
    ports = port_names(services, is_secure=is_secure)
    if "any" in given:
        ports = dict.fromkeys(ports, ANY_PORT)
    # A quorum whose members all have new addresses cannot elect a leader, which alone could make them known.
    ports |= {name: port for name, port in earlier_controller_ports(data).items() if name in ports}
    for assignment in given:
        if assignment == "any":
            continue
        name, equals, port = assignment.partition("=")
        if not (equals and port.isdecimal() and int(port) <= 65535):
            raise Refused(
                f"--ports {assignment} must be `any` or NAME=PORT with a port from 0 (any free one) to 65535",
                [f"names are:  {', '.join(ports)}"],
            )
        if name not in ports:
            raise Refused(
                f"--ports {assignment}: nothing called {name} listens here", [f"there are:  {', '.join(ports)}"]
            )
        ports[name] = int(port)
    _check_distinct(ports)
    return ports


def _check_distinct(ports: Mapping[str, int]) -> None:
    by_port: dict[int, str] = {}
    for name, port in ports.items():
        if port and port in by_port:
            raise Refused(
                f"{by_port[port]} and {name} cannot both listen on port {port}",
                [f"choose another:  `--ports {name}=PORT`"],
            )
        by_port[port] = name


def _extra(given: Sequence[str], services: Sequence[Service]) -> dict[str, dict[str, str]]:
    extra: dict[str, dict[str, str]] = {}
    for assignment in given:
        name, colon, rest = assignment.partition(":")
        key, equals, value = rest.partition("=")
        if not (colon and equals and key.strip()):
            raise Refused(f"--set {assignment} must look like SERVICE:key=value, such as broker:num.partitions=3")
        known = {service.name for service in services} | {kind_of(service.name).name for service in services}
        if name not in known:
            names = ", ".join(service.name for service in services)
            raise Refused(f"--set {assignment}: no service called {name} runs here", [f"there are:  {names}"])
        if option := _OPTIONS.get(key.strip()):
            raise Refused(f"--set {assignment}: the launcher sets that itself", [f"use  `{option}`"])
        extra.setdefault(name, {})[key.strip()] = value.strip()
    return extra


def _elsewhere(request: Request, services: Sequence[Service]) -> dict[str, str]:
    """Addresses of services that are left out; refuses if another service needs one without an address."""
    given = {"broker": request.bootstrap, "registry": request.registry}
    running = {kind_of(service.name).name for service in services}
    needed = {need: service.name for service in reversed(services) for need in service.needs}
    for name, address in given.items():
        option = _ELSEWHERE[name]
        if address and name in running:
            raise Refused(f"{option} names an external {name}, but one is to run here", [f"add  `--without {name}`"])
        if not address and name not in running and name in needed:
            raise Refused(
                f"--without {name}: {needed[name]} needs one",
                [f"say where yours is:  `{option}`", f"or leave out  `{needed[name]}`  as well"],
            )
    return {name: address for name, address in given.items() if address}
