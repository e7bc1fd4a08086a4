"""Controllers and brokers that are processes of their own: `process.roles=controller` and `process.roles=broker`."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from typing_extensions import override

from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import FAST_FAILOVER, ClusterNode, free_port
from tests.support.service import run_module

CONTROLLERS: Final = (1, 2, 3)
BROKERS: Final = (4, 5, 6)


class ControllerProcess(BrokerProcess):
    """A node that only takes part in the quorum."""

    ready = re.compile(rb"ready:?.*?CONTROLLER://([\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, *, node_id: int, settings: Mapping[str, str]) -> None:
        super().__init__(directory, settings={"process.roles": "controller", "node.id": str(node_id), **settings})
        self._port = free_port()

    @classmethod
    def in_place_of(cls, node: ClusterNode) -> "ControllerProcess":
        """A node that was a broker, too: the same folder and controller listener."""
        listener = {
            "listeners": f"CONTROLLER://127.0.0.1:{node.controller_port}",
            "controller.listener.names": "CONTROLLER",
        }
        return cls(node.directory, node_id=node.node_id, settings={**node.settings, **listener})

    @override
    def _command(self) -> list[str]:
        settings = {"listeners": f"CONTROLLER://127.0.0.1:{self._port}", "log.dirs": str(self.data), **self.settings}
        return run_module("core_broker", settings)


class PureBrokerProcess(BrokerProcess):
    """A node that only serves clients."""

    def __init__(self, directory: Path, *, node_id: int, settings: Mapping[str, str]) -> None:
        super().__init__(directory, settings={"process.roles": "broker", "node.id": str(node_id), **settings})
        self._port = free_port()


class RoleCluster:
    """Three controllers and three brokers, with the voters in the settings or with voters that join."""

    def __init__(self, directory: Path, *, is_static: bool) -> None:
        self.is_static = is_static
        self.controllers = {
            number: ControllerProcess(directory / f"controller-{number}", node_id=number, settings=FAST_FAILOVER)
            for number in CONTROLLERS
        }
        self.brokers = {
            number: PureBrokerProcess(directory / f"broker-{number}", node_id=number, settings=FAST_FAILOVER)
            for number in BROKERS
        }
        nodes: dict[int, BrokerProcess] = {**self.controllers, **self.brokers}
        for number, node in nodes.items():
            node.settings.update(self._quorum_settings(number))

    def _quorum_settings(self, node_id: int) -> dict[str, str]:
        addresses = {number: f"127.0.0.1:{controller.port}" for number, controller in self.controllers.items()}
        if self.is_static:
            voters = ",".join(f"{number}@{address}" for number, address in addresses.items())
            return {"controller.quorum.voters": voters, "cluster.id": "AAAAAAAAAAAAAAAAAAAAAA"}
        if node_id == CONTROLLERS[0]:
            return {}
        return {
            "controller.quorum.bootstrap.servers": ",".join(addresses.values()),
            "controller.quorum.auto.join.enable": "true" if node_id in CONTROLLERS else "false",
        }

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self.brokers.values())

    @contextmanager
    def running(self) -> Iterator["RoleCluster"]:
        """All six processes, ready, and with three voters."""
        nodes = [*self.controllers.values(), *self.brokers.values()]
        with ThreadPoolExecutor(len(nodes)) as threads:
            try:
                list(threads.map(lambda node: node.start(), nodes))
                joined = [] if self.is_static else list(self.controllers.values())[1:]
                eventually(lambda: all("is a voter of the metadata quorum" in node.log_text() for node in joined))
                yield self
            finally:
                list(threads.map(lambda node: node.kill(), nodes))
