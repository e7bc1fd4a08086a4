"""The state of a running platform: written by the launcher to `platform.json`, read by all others."""

import time
from pathlib import Path
from typing import Final, Literal

import msgspec

from deploy.launcher.lock import lock_holder

FILE_NAME: Final = "platform.json"
VERSION: Final = 1
_LOOK_S: Final = 0.02
_PATIENCE_S: Final = 1.0
"""A launcher that has just taken the lock writes its state at once."""

ServiceCondition = Literal["starting", "ready", "restarting", "failed", "stopped"]
PlatformCondition = Literal["starting", "running", "stopping"]


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """One service."""

    state: ServiceCondition
    port: int
    endpoint: str
    """Where clients find it: host:port of the broker, else a URL."""
    metrics: str
    log: str
    pid: int | None = None
    restarts: int = 0
    ready_after_s: float | None = None
    """How long its last start took."""
    started_ms: int | None = None
    """When its process was started."""


class SparkState(msgspec.Struct, frozen=True, kw_only=True):
    """The embedded Spark, which Connect starts on first use."""

    data_dir: str
    connect_port: int
    settings: dict[str, str] = {}
    """Connect's settings for Spark, so that any process that starts it starts the same."""
    missing: str | None = None
    """Why it cannot start here; None when it can, or when this is not known yet."""


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

    @property
    def is_ready(self) -> bool:
        """Whether every service is."""
        return self.state == "running" and all(service.state == "ready" for service in self.services.values())


def read(data: Path) -> PlatformState | None:
    """The platform of a folder; None when no launcher runs there."""
    deadline = time.monotonic() + _PATIENCE_S
    while (pid := lock_holder(data)) is not None:
        state = _stored(data)
        if state is not None and state.pid == pid:
            return state
        if time.monotonic() > deadline:
            return None
        time.sleep(_LOOK_S)
    return None


def write(state: PlatformState) -> None:
    """Replace what was known; a reader sees the one or the other, never half of both."""
    path = Path(state.data) / FILE_NAME
    passing = path.with_suffix(".tmp")
    passing.touch(mode=0o600)  # settings may hold passwords
    passing.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=2))
    passing.replace(path)


def _stored(data: Path) -> PlatformState | None:
    try:
        return msgspec.json.decode((data / FILE_NAME).read_bytes(), type=PlatformState)
    except (OSError, msgspec.DecodeError):
        return None
