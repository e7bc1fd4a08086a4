"""The addresses and folders of a tour's platform, and the commands that name them."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from core_broker.client.settings import ClientSettings
from deploy.clients.connect import ConnectClient
from deploy.clients.connections import client_settings, connect_client, login_of, read_properties, sql_client
from deploy.clients.http_login import HttpLogin
from deploy.clients.registry import registry_client
from deploy.clients.sql import SqlClient
from deploy.security.folder import SecurityFolder
from deploy.stack import BROKER, CONNECT, REGISTRY, STREAMS
from schema_registry.client.registry_client import RegistryClient

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
"""Schemas, configurations and SQL that the tour uses."""

Part = Literal["cluster", "registry", "connect", "streams", "spark", "platform"]
_WITH_LOGIN: Final = ("cluster", "registry", "connect", "streams")
_TIMEOUT_S: Final = 60.0
_KNOWN_BOOTSTRAP: Final = f"localhost:{BROKER.port}"
_KNOWN_REGISTRY: Final = f"http://localhost:{REGISTRY.port}"
_KNOWN_CONNECT: Final = f"http://localhost:{CONNECT.port}"
_KNOWN_STREAMS: Final = f"http://localhost:{STREAMS.port}"
_KNOWN_DATA: Final = "caudal-platform"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAddresses:
    """Addresses and folders of a running platform."""

    data: Path
    bootstrap: str
    registry: str
    proxy: str
    connect: str
    streams: str
    spark_data: Path
    spark_port: int
    logs: Mapping[str, Path]
    """The log of each service, by its name."""
    client_config: Path | None = None
    """The properties file by which clients log in; None if they need no login."""

    def cluster(self) -> ClientSettings:
        """The settings of a client of the cluster."""
        return client_settings(self.bootstrap, None, self.client_config, timeout=_TIMEOUT_S)

    def connect_client(self) -> ConnectClient:
        """A client of Connect."""
        return connect_client(self.connect, None, self.client_config, timeout=_TIMEOUT_S)

    def sql_client(self) -> SqlClient:
        """A client of the service of SQL."""
        return sql_client(self.streams, None, self.client_config, timeout=_TIMEOUT_S)

    def registry_client(self) -> RegistryClient:
        """A client of the registry."""
        return registry_client(self.registry, None, None, self.client_config, timeout=_TIMEOUT_S)

    def login(self) -> HttpLogin:
        """Who the tour is at HTTP services."""
        return login_of(read_properties(None, self.client_config) if self.client_config else {})

    @property
    def curl(self) -> str:
        """The word `curl`, with what it needs to log in."""
        return "curl" if self._security is None else f"curl --config {path_word(self._security.curl_config)}"

    @property
    def registry_login(self) -> dict[str, str]:
        """How converters of connectors log in at the registry: as Connect, by its certificate."""
        if self._security is None:
            return {}
        return {
            "value.converter.schema.registry.ssl.ca.location": str(self._security.authority_file),
            "value.converter.schema.registry.ssl.certificate.location": str(self._security.certificate(CONNECT.name)),
        }

    @property
    def _security(self) -> SecurityFolder | None:
        return SecurityFolder(self.data) if self.client_config else None

    @property
    def shop(self) -> Path:
        """The database that the SQL sink writes to."""
        return self.data / "shop.db"

    @property
    def folder(self) -> Path:
        """The files that the tour sends, for users to look at and send again."""
        return self.data / "quickstart"

    @property
    def spark_log(self) -> Path:
        """The log of the Spark engine."""
        return self.spark_data / "engine.log"

    def caudal(self, words: str, part: Part) -> str:
        """A command to type, without addresses that are the default."""
        login = "" if self.client_config is None or not data_option(self.data) else self._login_option
        options = {
            # One broker that is found by default leads to the others.
            "cluster": "" if _KNOWN_BOOTSTRAP in self.bootstrap.split(",") else _option("--bootstrap", self.bootstrap),
            "registry": _option("--registry", self.registry, usual=_KNOWN_REGISTRY),
            "connect": _option("--connect", self.connect, usual=_KNOWN_CONNECT),
            "streams": _option("--server", self.streams, usual=_KNOWN_STREAMS),
            "spark": _option("--set", f"spark.caudal.data.dir={relative(self.spark_data)}"),
            "platform": data_option(self.data),
        }
        return f"{program()} {words}{options[part]}{login if part in _WITH_LOGIN else ''}"

    @property
    def _login_option(self) -> str:
        return _option("--client-config", relative(self.client_config)) if self.client_config else ""

    def fill_in(self, text: str) -> str:
        """A configuration of the examples with the addresses and the folder of this platform."""
        return text.replace(_KNOWN_REGISTRY, self.registry).replace(_KNOWN_DATA, str(self.data.resolve()))


def relative(path: Path, *, resolve: bool = True) -> str:
    """A path relative to the current directory, if it is below it."""
    resolved, here = path.resolve() if resolve else path, Path.cwd()
    return str(resolved.relative_to(here)) if resolved.is_relative_to(here) else str(path)


def path_word(path: Path) -> str:
    """A path as a word of a shell command."""
    return shell_quote(relative(path))


def data_option(data: Path) -> str:
    """The option that names the folder of the platform; empty for the default."""
    return _option("--data", relative(data), usual=_KNOWN_DATA)


def shell_quote(text: str) -> str:
    """Text as a word of a shell command, with double quotes if it contains single ones."""
    if "'" in text and not set(text) & set('"$`\\!'):
        return f'"{text}"'
    return shlex.quote(text)


def program() -> str:
    """The command `caudal`, as a path if it is not on the PATH."""
    if shutil.which("caudal"):
        return "caudal"
    beside = Path(sys.executable).with_name("caudal")
    # Not resolved: Python in a virtual environment is a link to another folder.
    return shell_quote(relative(beside, resolve=False)) if beside.exists() else "caudal"


def _option(name: str, value: str, *, usual: str = "") -> str:
    return "" if value == usual else f" {name} {shell_quote(value)}"
