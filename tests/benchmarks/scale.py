"""Cost that stays flat: a long log, many partitions, many connections, start and memory."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.benchmarks.measure import AS_DELIVERED, MB, Row, Sizes, Stopwatch, cpu_seconds, percentile
from tests.benchmarks.raw_client import RawClient, fetch_request, produce_request
from tests.benchmarks.requests import small_requests
from tests.benchmarks.throughput import BATCH_BYTES, RECORD_BYTES, RECORDS_PER_MEGABYTE, end_offset
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.memory import resident_bytes
from tests.support.wire import WireConnection


def long_log(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """Fetches from the middle of a long log beside fetches from its tail."""
    topic = "bench-long"
    create_topic(broker, topic)
    request = produce_request(topic, 0, records=RECORDS_PER_MEGABYTE, record_bytes=RECORD_BYTES)
    count = max(8, sizes.log_bytes // len(request))
    before = resident_bytes(broker.pid)
    with RawClient(broker.bootstrap) as client:
        client.repeat(request, count, in_flight=2)
    end = end_offset(broker, topic)
    grown = resident_bytes(broker.pid) - before
    middle = random.Random(1).sample(range(end // 4, 3 * end // 4), min(400, end // 4))
    tail = [end - 1 - n % RECORDS_PER_MEGABYTE for n in range(len(middle))]
    size = f"{count * len(request) / 1e9:.1f} GB log"
    return [
        _fetch_row(broker, topic, middle, f"fetch from the middle of a {size}", "random offsets"),
        _fetch_row(broker, topic, tail, f"fetch from the tail of a {size}", "offsets of the last batch"),
        Row(
            what=f"memory taken by a {size}",
            result=f"{grown / MB:.1f} MB",
            aim="flat",
            how="VmRSS of the broker after the log was written, minus before",
        ),
    ]


def _fetch_row(broker: BrokerProcess, topic: str, offsets: list[int], what: str, how: str) -> Row:
    waits = []
    with RawClient(broker.bootstrap) as client:
        client.run(_one(topic, offsets[0]), in_flight=1)
        with Stopwatch(broker.pid) as watch:
            for offset in offsets:
                started = time.perf_counter()
                client.run(_one(topic, offset), in_flight=1)
                waits.append(time.perf_counter() - started)
    cost = watch.cpu_seconds / len(offsets) * 1e6
    result = f"{cost:.0f} µs of broker CPU, p50 {percentile(waits, 0.5) * 1000:.2f} ms"
    note = f"{len(offsets)} fetches of ~1 MB, one in flight, {how}; {watch.note()}"
    return Row(what=what, result=result, aim="middle = tail", how=note)


def _one(topic: str, offset: int) -> Iterator[bytes]:
    yield fetch_request(topic, 0, offset, max_bytes=BATCH_BYTES)


def idle_connections(broker: BrokerProcess, sizes: Sizes) -> list[Row]:
    """Connections that are open and silent."""
    before = resident_bytes(broker.pid)
    with ExitStack() as stack:
        for _ in range(sizes.connections):
            stack.enter_context(WireConnection(broker.bootstrap))
        time.sleep(0.2)
        grown = resident_bytes(broker.pid) - before
        cpu = cpu_seconds(broker.pid)
        time.sleep(sizes.idle_s)
        share = (cpu_seconds(broker.pid) - cpu) / sizes.idle_s
    return [
        Row(
            what=f"{sizes.connections:,} idle connections",
            result=f"{grown / MB:.1f} MB, {share:.2%} of a core",
            aim="next to nothing",
            how=f"VmRSS minus before; broker CPU over {sizes.idle_s} s",
        )
    ]


def many_partitions(directory: Path, sizes: Sizes) -> list[Row]:
    """A broker of its own: start, memory and request cost, empty and with many partitions."""
    rows = []
    with BrokerProcess(directory / "scale", settings=AS_DELIVERED) as broker:
        empty_start = Start.of(broker)
        idle = resident_bytes(broker.pid)
        create_topic(broker, "bench-partitions", partitions=sizes.partitions)
        with RawClient(broker.bootstrap) as client:
            for number in range(sizes.partitions):
                request = produce_request("bench-partitions", number, records=1, record_bytes=100)
                client.repeat(request, 1, in_flight=1)
        full = resident_bytes(broker.pid)
        rows += small_requests(broker, sizes, topic="bench-beside-partitions")[:1]
        broker.restart()
        start = Start.of(broker)
        restarted = resident_bytes(broker.pid)
        broker.restart(kill=True)
        after_kill = Start.of(broker)
        cpu = cpu_seconds(broker.pid)
        time.sleep(sizes.idle_s)
        share = (cpu_seconds(broker.pid) - cpu) / sizes.idle_s
    label = f"{sizes.partitions:,} partitions"
    process = "from the start of the process to its ready line"
    return [
        _start_row("empty", empty_start, process),
        _start_row(label, start, f"{process}; after a clean stop"),
        _start_row(f"{label}, killed", after_kill, f"{process}; after SIGKILL"),
        Row(what="memory, idle", result=f"{idle / MB:.1f} MB", aim="< 80 MB", how="VmRSS of the broker when ready"),
        Row(
            what=f"memory, {label}",
            result=f"{full / MB:.1f} MB, {restarted / MB:.1f} MB after a restart",
            aim="next to nothing more",
            how="VmRSS after one record was written to each",
        ),
        Row(
            what=f"idle with {label}",
            result=f"{share:.2%} of a core",
            aim="next to nothing",
            how=f"broker CPU over {sizes.idle_s} s",
        ),
        *(Row(what=f"{row.what}, beside {label}", result=row.result, aim=row.aim, how=row.how) for row in rows),
    ]


def recovery(directory: Path, sizes: Sizes) -> list[Row]:
    """A broker of its own, killed right after it has written a log."""
    topic = "bench-recovery"
    with BrokerProcess(directory / "recovery", settings=AS_DELIVERED) as broker:
        create_topic(broker, topic)
        request = produce_request(topic, 0, records=RECORDS_PER_MEGABYTE, record_bytes=RECORD_BYTES)
        count = max(8, sizes.stream_bytes // len(request))
        with RawClient(broker.bootstrap) as client:
            client.repeat(request, count, in_flight=2)
        written = broker.stored_bytes(topic)
        broker.restart(kill=True)
        start = Start.of(broker)
        assert broker.stored_bytes(topic) == written, "the log is shorter than before the kill"
    size = f"a log of {count * len(request) / 1e9:.1f} GB, killed"
    return [_start_row(size, start, "from the start of the process to its ready line; after SIGKILL", aim="< 5 s")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How long a broker took to be ready, by the wall and in processor time."""

    seconds: float
    cpu_seconds: float

    @classmethod
    def of(cls, broker: BrokerProcess) -> Self:
        """The last start of a broker that has only just become ready."""
        return cls(seconds=broker.ready_after_s, cpu_seconds=cpu_seconds(broker.pid))


def _start_row(state: str, start: Start, how: str, *, aim: str = "< 500 ms") -> Row:
    result = f"{start.seconds * 1000:.0f} ms, of them {start.cpu_seconds * 1000:.0f} ms of CPU"
    return Row(what=f"time to ready, {state}", result=result, aim=aim, how=how)


def memory_after(broker: BrokerProcess) -> list[Row]:
    """What all the runs left behind."""
    now, peak = resident_bytes(broker.pid), resident_bytes(broker.pid, field="VmHWM")
    return [
        Row(
            what="memory after all runs",
            result=f"{now / MB:.1f} MB, peak {peak / MB:.1f} MB",
            aim="flat",
            how="VmRSS and VmHWM of the broker",
        )
    ]
