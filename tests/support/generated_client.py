"""A client of the proxy that a generator made from its OpenAPI document."""

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

PACKAGE: Final = "generated_proxy_client"


def generate(document_url: str, directory: Path) -> str:
    """Make the client's package in a directory; gives what the generator said about it, and fails if it warned."""
    config = directory / "generator.yaml"
    config.write_text("post_hooks: []\n")  # They would only make it pretty.
    generator = Path(sys.executable).with_name("openapi-python-client")
    where = ["--url", document_url, "--output-path", str(directory / PACKAGE), "--meta", "none"]
    run = subprocess.run(
        [str(generator), "generate", *where, "--config", str(config), "--fail-on-warning"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


class GeneratedClient:
    """Calls by tag and operation, as the package lays them out; its directory must be importable."""

    def __init__(self, url: str) -> None:
        self._client = _module("client").Client(base_url=url)

    def __enter__(self) -> Self:
        self._client.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._client.__exit__(*failure)

    def call(self, tag: str, operation: str, *parts: object, **parameters: object) -> Any:
        """What an operation answers, read into the models of the client, or None for an empty answer."""
        return self.answer(tag, operation, *parts, **parameters).parsed

    def answer(self, tag: str, operation: str, *parts: object, **parameters: object) -> Any:
        """The same with its status and headers."""
        return _module(f"api.{tag}.{operation}").sync_detailed(*parts, client=self._client, **parameters)


def model(name: str, fields: Mapping[str, Any]) -> Any:
    """A body by its model's name, from JSON."""
    return getattr(_module("models"), name).from_dict(fields)


def word(enumeration: str, value: str) -> Any:
    """One of the words that a parameter allows."""
    return getattr(_module("models"), enumeration)(value)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{name}")
