"""A request to the launcher, as typed and as sent to one in the background, and why it may be refused."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from deploy.stack import THIS_MACHINE

DATA_VARIABLE: Final = "CAUDAL_DATA"
DEFAULT_DATA: Final = Path("caudal-platform")


def data_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the platform if no option names one."""
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
    brokers: int | None = None
    """How many brokers; None for as many as there are in the folder, or one."""
    racks: bool = False
    """Whether each broker has a rack of its own."""
    secure: bool = False
    """Whether everything is encrypted, and everyone has to log in."""
    insecure: bool = False
    """Whether to start without that although others can reach the platform, or it was secured before."""


class Refused(Exception):
    """The platform cannot be started; nothing is left running."""

    def __init__(self, text: str, next_steps: Sequence[str] = (), *, tail: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.text = text
        self.next_steps = tuple(next_steps)
        """What to do about it; commands are in backticks."""
        self.tail = tuple(tail)
        """The last lines of the log that says more."""
