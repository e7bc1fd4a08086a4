"""A schema registry as its users meet it."""

import re
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from tests.support.service import ServiceProcess, run_module


class RegistryProcess(ServiceProcess):
    """One registry process; on a SQLite file in its own directory unless the settings name another database."""

    ready = re.compile(rb"registry ready: listeners=(http://[\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, settings={"database.url": f"sqlite:///{directory}/registry.db", **(settings or {})})

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return self.address

    @override
    def _command(self) -> list[str]:
        return run_module("schema_registry", {"listeners": f"http://127.0.0.1:{self._port}", **self.settings})
