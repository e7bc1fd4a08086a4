"""The brokers of deploy/compose/cluster.yaml as processes of this machine, with their settings but for addresses."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from typing_extensions import override

from deploy.stack import BROKER
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import free_port
from tests.support.deployment import DEPLOY, merge_compose, read_yaml, settings_in
from tests.support.service import run_module

_ADDRESS: Final = re.compile(r"(?<![\w-])([\w-]*):(\d+)")
_PACE: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "offsets.topic.num.partitions": "3",
}
"""A dead broker is noticed within seconds."""


class Addresses:
    """Addresses of this machine instead of those of containers, the same for each of them."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, str], int] = {}

    def here(self, name: str, value: str) -> str:
        """A setting of a container, with the addresses in it replaced."""
        return _ADDRESS.sub(lambda found: self._address(name, *found.groups()), value)

    def _address(self, name: str, host: str, port: str) -> str:
        if host == "localhost":  # as clients on the machine see this container
            port = str(BROKER.port)
        container = name if host in ("", "localhost") else host
        if (container, port) not in self._ports:
            self._ports[container, port] = free_port()
        return f"127.0.0.1:{self._ports[container, port]}"


class ComposeBroker(BrokerProcess):
    """A broker with the settings of its container, and no others than those of the pace of a test."""

    @override
    def _command(self) -> list[str]:
        return run_module("core_broker", self.settings)

    @property
    def metrics_url(self) -> str:
        """Where it serves its metrics."""
        return f"{self.settings['metrics.listener']}/metrics"


class ComposeCluster:
    """The brokers by the names of their containers."""

    def __init__(self, directory: Path) -> None:
        compose = DEPLOY / "compose"
        services = merge_compose(read_yaml(compose / "compose.yaml"), read_yaml(compose / "cluster.yaml"))["services"]
        self._addresses = Addresses()
        self.brokers: dict[str, ComposeBroker] = {}
        for name, container in services.items():
            if container["command"] == [BROKER.name]:
                settings = settings_in(BROKER.name, container["environment"])
                broker = ComposeBroker(directory / name)
                broker.settings = {key: self._here(name, key, value) for key, value in settings.items()}
                broker.settings |= _PACE | {"log.dirs": str(broker.data)}
                self.brokers[name] = broker

    def _here(self, name: str, key: str, value: str) -> str:
        is_address = key.endswith(("listeners", "listener", "servers"))
        return self._addresses.here(name, value) if is_address else value

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda broker: broker.kill(), self))

    def __iter__(self) -> Iterator[ComposeBroker]:
        return iter(self.brokers.values())

    def start(self) -> None:
        """Start the brokers that do not run, and wait until those that joined the cluster vote."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda broker: broker.is_running or broker.start(), self))
        joined = list(self)[1:]
        eventually(lambda: all("is a voter of the metadata quorum" in broker.log_text() for broker in joined))

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(broker.address for broker in self)
