"""A broker as its users meet it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from tests.support.service import ServiceProcess, run_module

FAST_SETTINGS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.initial.task.delay.ms": "0",
    "metrics.listener": "",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""Settings that make rebalances, retention and compaction happen at the pace of a test."""


class BrokerProcess(ServiceProcess):
    """One broker process with its own data directory; a subclass may have others beside it, as one cluster."""

    ready = re.compile(rb"ready:?.*?(?:PLAINTEXT|SECURE)://([\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, settings={**FAST_SETTINGS, **(settings or {})})
        self.data = directory / "data"
        self.node_id = 1

    @property
    def nodes(self) -> Sequence["BrokerProcess"]:
        """Every broker of the cluster, this one first."""
        return [self]

    @property
    def bootstrap(self) -> str:
        """Where clients connect to: every broker."""
        return ",".join(node.address for node in self.nodes)

    def stored_bytes(self, topic: str, partition: int = 0) -> int:
        """The size of a partition's segments, of its largest replica."""
        return max(
            sum(path.stat().st_size for path in node.data.rglob(f"{topic}-{partition}/*.log")) for node in self.nodes
        )

    @override
    def _command(self) -> list[str]:
        settings = {"listeners": f"PLAINTEXT://127.0.0.1:{self._port}", "log.dirs": str(self.data), **self.settings}
        return run_module("core_broker", settings)
