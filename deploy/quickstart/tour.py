"""What the steps of a tour share: the platform's addresses, and the results of earlier steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from deploy.quickstart.addresses import PlatformAddresses

T = TypeVar("T")

PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.1


class StepFailed(Exception):
    """The result of a step is not what it should be; `log` is where to read more."""

    def __init__(self, reason: str, *, log: Path | None = None) -> None:
        super().__init__(reason)
        self.log = log


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The topic, partition and offset of a record that the tour sent."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic} partition {self.partition} offset {self.offset}"


@dataclass(slots=True, kw_only=True)
class Tour:
    """One tour over a platform."""

    addresses: PlatformAddresses
    spark_problem: str | None = None
    """Why Spark is left out; None if it is not."""
    may_kill_brokers: bool = False
    """Whether its platform has several brokers, and was started for it."""
    spark_since: float | None = None
    """When Spark began to start; None if it ran before."""
    schema_ids: dict[str, int] = field(default_factory=dict)
    """Ids of registered schemas by topic."""
    first_order: int = 0
    """The number of its first order."""
    good_orders: tuple[int, ...] = ()
    """Numbers of orders that every table takes."""
    refused_order: int = 0
    """The number of the order that the SQL table refuses."""
    refused: Sent | None = None
    garbled: Sent | None = None
    """The record that is not an order."""
    refused_letter: tuple[int, int] | None = None
    """Partition and offset of the dead letter that the refused order has become."""


def wait_for(
    ask: Callable[[], T],
    accept: Callable[[T], bool],
    *,
    otherwise: str,
    log: Path | None = None,
    patience_s: float = PATIENCE_S,
    pause_s: float = _PAUSE_S,
) -> T:
    """Repeat a request until the answer is accepted; raises `StepFailed` on a time-out."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = ask()
        if accept(answer):
            return answer
        if time.monotonic() > deadline:
            raise StepFailed(f"{otherwise} within {patience_s:.0f} s", log=log)
        time.sleep(pause_s)


def ensure(condition: bool, reason: str, *, log: Path | None = None) -> None:
    """Raise `StepFailed` unless the condition holds."""
    if not condition:
        raise StepFailed(reason, log=log)
