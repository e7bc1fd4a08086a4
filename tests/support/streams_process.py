"""The SQL service as its users meet it: a process with an engine of its own, which goes with it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from typing_extensions import override

from streams.settings import SparkSettings
from tests.support.service import ServiceProcess, run_module
from tests.support.spark_engine import end_engine

_SPARK: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "640m",
    "spark.caudal.connect.port": "-1",
    "spark.caudal.idle.timeout.ms": "5000",
    "spark.caudal.start.timeout.ms": "600000",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
}


class StreamsProcess(ServiceProcess):
    """One server of SQL over topics."""

    ready = re.compile(rb"streams ready: listeners=(https?://[\w.\[\]:-]+:\d+)")

    def __init__(
        self, directory: Path, *, bootstrap: str, registry: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        own = {
            **_SPARK,
            "bootstrap.servers": bootstrap,
            "ksql.service.id": "test_",
            "ksql.streams.state.dir": str(directory / "state"),
            "spark.caudal.data.dir": str(directory / "spark"),
            **({"ksql.schema.registry.url": registry} if registry else {}),
        }
        super().__init__(directory, settings={**own, **(settings or {})})

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return self.address

    @override
    def stop(self) -> None:
        try:
            super().stop()
        finally:
            end_engine(SparkSettings.among(self.settings))

    @override
    def _command(self) -> list[str]:
        return run_module("streams", {"listeners": f"http://127.0.0.1:{self._port}", **self.settings})
