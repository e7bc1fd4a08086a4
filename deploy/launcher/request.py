"""What somebody asks of the launcher, as it was typed, and as it travels to a launcher in the background."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

DATA_VARIABLE: Final = "CAUDAL_DATA"
DEFAULT_DATA: Final = Path("caudal-platform")
THIS_MACHINE: Final = "localhost"


def data_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the platform that is meant when nobody names one."""
    return Path(environment.get(DATA_VARIABLE) or DEFAULT_DATA).expanduser().absolute()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `caudal up`."""

    data: str = str(DEFAULT_DATA)
    host: str = THIS_MACHINE
    """The address on which everything listens."""
    ports: tuple[str, ...] = ()
    """`any`, or NAME=PORT."""
    without: tuple[str, ...] = ()
    """Services that are not to run."""
    settings: tuple[str, ...] = ()
    """SERVICE:key=value."""
    bootstrap: str | None = None
    """Where the cluster is when our broker is left out."""
    registry: str | None = None
    """Where the registry is when ours is left out."""
