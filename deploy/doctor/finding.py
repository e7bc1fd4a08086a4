"""What a check is given, and what it finds: how bad it is, what it is, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from core_broker.service.clock import Clock, SystemClock
from deploy.launcher.state import PlatformState


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every check is given."""

    environment: Mapping[str, str]
    data: Path
    """The platform's data folder, which need not exist."""
    platform: PlatformState | None = None
    """The state that the launcher of the platform there has written; None when none runs."""
    answer_seconds: float = 3.0
    """How long a service may take to answer."""
    clock: Clock = field(default_factory=SystemClock)

    @property
    def client_config(self) -> Path | None:
        """The properties file by which clients of the platform log in; None if they need no login."""
        return Path(self.platform.client_config) if self.platform and self.platform.client_config else None


class Level(StrEnum):
    """How bad it is; only a problem makes the command fail."""

    OK = "ok"
    NOTE = "note"
    """Neither good nor bad: worth knowing."""
    WARNING = "warning"
    """It works now, and may not later, or not for everything."""
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check has seen."""

    level: Level
    subject: str
    found: str
    next_steps: tuple[str, ...] = ()


def ok(subject: str, found: str) -> Finding:
    """As it should be."""
    return Finding(level=Level.OK, subject=subject, found=found)


def note(subject: str, found: str, *next_steps: str) -> Finding:
    """Worth knowing."""
    return Finding(level=Level.NOTE, subject=subject, found=found, next_steps=next_steps)


def warning(subject: str, found: str, *next_steps: str) -> Finding:
    """May become a problem."""
    return Finding(level=Level.WARNING, subject=subject, found=found, next_steps=next_steps)


def problem(subject: str, found: str, *next_steps: str) -> Finding:
    """Something does not work."""
    return Finding(level=Level.PROBLEM, subject=subject, found=found, next_steps=next_steps)
