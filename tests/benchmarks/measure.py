"""What was measured, in a shape that prints, and the processor time that processes take."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import psutil

GB: Final = 1_000_000_000
MB: Final = 1_000_000


AS_DELIVERED: Final = {
    "log.retention.check.interval.ms": "300000",
    "log.initial.task.delay.ms": "30000",
    "log.cleaner.backoff.ms": "15000",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
}
"""Defaults of the broker that the tests change for their own pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    result: str
    how: str
    aim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much each benchmark does."""

    stream_bytes: int
    """Bytes written and read by each throughput run."""
    messages: int
    """Messages that a client library writes and reads."""
    small_requests: int
    latency_messages: int
    log_bytes: int
    """Size of the log whose middle is compared with its tail."""
    partitions: int
    connections: int
    idle_s: float
    registry_versions: tuple[int, ...]
    """How many versions a registry holds, one run each."""
    registry_requests: int
    proxy_requests: int
    """Single-record requests to the REST proxy."""
    proxy_records: int
    """Records sent in batches, and read, through the REST proxy."""
    connect_records: int
    """Records that each task of Connect carries."""
    connect_connectors: int
    """Connectors that a worker holds while its REST API is measured."""
    cluster_rounds: int
    """How often each cluster of three brokers is started and measured."""
    cluster_messages: int
    """Messages of 1 KB that a cluster replicates; three times as many of 100 B."""
    cluster_latency_messages: int
    spark_rows: int
    """Rows that each Spark sink writes."""
    spark_latency_seconds: float
    platform_idle_s: float
    """How long the whole platform is watched while nobody uses it."""
    platform_has_spark: bool
    """Whether it is watched with Spark, too, which takes a minute of processor time."""


FULL: Final = Sizes(
    stream_bytes=1 * GB,
    messages=400_000,
    small_requests=60_000,
    latency_messages=2_000,
    log_bytes=5 * GB,
    partitions=1_000,
    connections=1_000,
    idle_s=5.0,
    registry_versions=(1, 1_000, 100_000),
    registry_requests=40_000,
    proxy_requests=12_000,
    proxy_records=500_000,
    connect_records=500_000,
    connect_connectors=500,
    cluster_rounds=3,
    cluster_messages=400_000,
    cluster_latency_messages=20_000,
    spark_rows=2_000_000,
    spark_latency_seconds=20.0,
    platform_idle_s=30.0,
    platform_has_spark=True,
)
TINY: Final = Sizes(
    stream_bytes=8 * MB,
    messages=500,
    small_requests=200,
    latency_messages=20,
    log_bytes=16 * MB,
    partitions=10,
    connections=10,
    idle_s=0.1,
    registry_versions=(1, 50),
    registry_requests=200,
    proxy_requests=60,
    proxy_records=2_000,
    connect_records=2_000,
    connect_connectors=5,
    cluster_rounds=1,
    cluster_messages=2_000,
    cluster_latency_messages=100,
    spark_rows=5_000,
    spark_latency_seconds=3.0,
    platform_idle_s=0.5,
    platform_has_spark=False,
)


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process, those that have ended too, to the nanosecond."""
    clock = (~pid << 3) | 2  # how Linux numbers the clock of another process
    return time.clock_gettime(clock)


def family_cpu_seconds(process: psutil.Process) -> float:
    """Processor time of a process and all that it has started, those that have ended too."""
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        with suppress(OSError, psutil.Error):
            ended = member.cpu_times()
            total += cpu_seconds(member.pid) + ended.children_user + ended.children_system
    return total


def _busy_seconds() -> float:
    """Processor time of the whole machine that was not idle."""
    user, nice, system, _, _, irq, softirq = (int(word) for word in Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Wall time, a process's processor time, and what others took of the machine meanwhile."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.foreign_share = 0.0

    def __enter__(self) -> Self:
        self._busy = _busy_seconds()
        self._own = time.process_time()
        self._cpu = cpu_seconds(self._pid)
        self._started = time.perf_counter()
        return self

    def __exit__(self, *failure: object) -> None:
        self.seconds = time.perf_counter() - self._started
        self.cpu_seconds = cpu_seconds(self._pid) - self._cpu
        ours = self.cpu_seconds + time.process_time() - self._own
        others = max(0.0, _busy_seconds() - self._busy - ours)
        self.foreign_share = others / (self.seconds * (os.cpu_count() or 1))

    def note(self) -> str:
        """How busy the machine was otherwise."""
        return f"others used {self.foreign_share:.0%} of the machine"


def best_of_three(pid: int, work: Callable[[], None]) -> Stopwatch:
    """Do the same work three times; the run that cost the process least was disturbed least by others."""
    watches = []
    for _ in range(3):
        os.sync()  # what earlier runs wrote is not this one's load
        with Stopwatch(pid) as watch:
            work()
        watches.append(watch)
    return min(watches, key=lambda watch: watch.cpu_seconds)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
