"""A broker as its users meet it."""

import re
from collections.abc import Mapping
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
    """One broker process with its own data directory."""

    ready = re.compile(rb"ready:?.*?PLAINTEXT://([\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, settings={**FAST_SETTINGS, **(settings or {})})
        self.data = directory / "data"

    @property
    def bootstrap(self) -> str:
        """Where clients connect to."""
        return self.address

    @override
    def _command(self) -> list[str]:
        settings = {"listeners": f"PLAINTEXT://127.0.0.1:{self._port}", "log.dirs": str(self.data), **self.settings}
        return run_module("core_broker", settings)
