"""A REST proxy as its users meet it."""

import re
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from tests.support.service import ServiceProcess, run_module


class ProxyProcess(ServiceProcess):
    """One proxy process, in front of a broker and a registry, with a state folder in its own directory."""

    ready = re.compile(rb"rest-proxy ready: listeners=(http://[\w.\[\]:-]+:\d+)")

    def __init__(
        self, directory: Path, *, bootstrap: str, registry: str, settings: Mapping[str, str] | None = None
    ) -> None:
        own = {
            "bootstrap.servers": bootstrap,
            "schema.registry.url": registry,
            "state.dir": str(directory / "state"),
        }
        super().__init__(directory, settings={**own, **(settings or {})})

    @property
    def url(self) -> str:
        """Where clients send their requests."""
        return self.address

    @override
    def _command(self) -> list[str]:
        return run_module("rest_proxy", {"listeners": f"http://127.0.0.1:{self._port}", **self.settings})
