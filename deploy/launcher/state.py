"""The state of a running platform: the launcher writes it to `platform.json`, other processes read it."""

import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from deploy.launcher.lock import lock_holder
from deploy.security.folder import SecurityFolder
from deploy.stack import BROKER, kind_of

FILE_NAME: Final = "platform.json"
VERSION: Final = 1
_LOOK_S: Final = 0.02
_PATIENCE_S: Final = 1.0
"""A launcher writes its state right after it has acquired the lock."""

ServiceCondition = Literal["starting", "ready", "restarting", "failed", "stopped"]
PlatformCondition = Literal["starting", "running", "stopping"]


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """One service."""

    state: ServiceCondition
    port: int
    endpoint: str
    """The address for clients: host:port of the broker, else a URL."""
    metrics: str
    log: str
    pid: int | None = None
    restarts: int = 0
    ready_after_s: float | None = None
    """How long its last start took."""
    started_ms: int | None = None
    """When its process was started."""


class SparkState(msgspec.Struct, frozen=True, kw_only=True):
    """The embedded Spark, which Connect and streams start on first use."""

    data_dir: str
    connect_port: int
    settings: dict[str, str] = {}
    """The settings for Spark, for any process that starts it."""
    missing: str | None = None
    """Why it cannot start here; None if it can, or if that is not known yet."""


class PlatformState(msgspec.Struct, frozen=True, kw_only=True):
    """A platform and its launcher."""

    version: int = VERSION
    pid: int
    started_ms: int
    data: str
    state: PlatformCondition
    services: dict[str, ServiceState]
    spark: SparkState | None = None
    elsewhere: dict[str, str] = {}
    """Addresses of what runs elsewhere for this platform: `broker`, `registry`."""
    client_config: str | None = None
    """Properties file with which a client may use everything here; None if no login is needed."""
    is_secure: bool = False
    """Whether everything is encrypted, and asks who is there."""
    controller_ports: dict[str, int] = {}
    """Of the brokers of a cluster, for the next start: they find each other by these ports."""

    @property
    def is_ready(self) -> bool:
        """Whether every service is ready."""
        return self.state == "running" and all(service.state == "ready" for service in self.services.values())

    @property
    def bootstrap(self) -> str | None:
        """The addresses of its brokers, or of the cluster that it uses instead."""
        own = [service.endpoint for name, service in self.services.items() if kind_of(name) is BROKER]
        return ",".join(own) or self.elsewhere.get("broker")

    def tls(self) -> ssl.SSLContext | None:
        """TLS of a client that may ask services for their health; None where they do not ask who it is.

        Raises OSError for those who may not read the certificate of the launcher.
        """
        return SecurityFolder(Path(self.data)).launcher_tls() if self.is_secure else None


def read(data: Path) -> PlatformState | None:
    """The platform of a folder; None if no launcher runs there."""
    deadline = time.monotonic() + _PATIENCE_S
    while (pid := lock_holder(data)) is not None:
        with suppress(OSError, msgspec.DecodeError):
            state = msgspec.json.decode((data / FILE_NAME).read_bytes(), type=PlatformState)
            if state.pid == pid:
                return state
        if time.monotonic() > deadline:
            return None
        time.sleep(_LOOK_S)
    return None


def earlier_controller_ports(data: Path) -> dict[str, int]:
    """The controller ports with which the brokers of a folder ran last."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((data / FILE_NAME).read_bytes(), type=PlatformState).controller_ports
    return {}


def write(state: PlatformState) -> None:
    """Replace the file atomically."""
    path = Path(state.data) / FILE_NAME
    draft = path.with_suffix(".tmp")
    draft.touch(mode=0o600)  # settings may contain passwords
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=2))
    draft.replace(path)
