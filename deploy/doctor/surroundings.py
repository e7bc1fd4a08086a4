"""What the checks look at: the environment, the data folder and the platform that runs in it, if one does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.service.clock import Clock, SystemClock

if TYPE_CHECKING:
    from deploy.launcher.state import PlatformState


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Given to every check."""

    environment: Mapping[str, str]
    data: Path
    """The platform's data folder, which need not exist."""
    platform: "PlatformState | None" = None
    """What the launcher has written down about the platform that runs there; None when none does."""
    answer_seconds: float = 3.0
    """How long a service may take to answer."""
    clock: Clock = field(default_factory=SystemClock)
