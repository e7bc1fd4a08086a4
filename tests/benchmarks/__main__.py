"""`python -m tests.benchmarks`: measures services of its own and prints the figures beside the aims.

Nothing here asserts a figure: machines differ, and so does their load. Each row says how it was measured.
"""

import argparse
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks import (
    authorization,
    cluster,
    connect,
    machine,
    platform,
    proxy,
    registry,
    requests,
    scale,
    spark,
    sql,
    throughput,
    tls,
    typed_data,
    web_access,
)
from tests.benchmarks.measure import AS_DELIVERED, FULL, GB, TINY, Row, Sizes
from tests.support.broker import BrokerProcess


def _broker(directory: Path, sizes: Sizes) -> Iterator[Row]:
    yield from machine.limits(sizes.stream_bytes)
    yield from machine.echo(sizes.small_requests // 3)
    with BrokerProcess(directory / "main", settings=AS_DELIVERED) as broker:
        pin(broker.pid)
        yield from throughput.big_requests(broker, sizes)
        yield from throughput.large_requests_on_several_connections(broker, sizes)
        yield from requests.small_requests(broker, sizes)
        yield from requests.beside_bulk(broker, sizes)
        yield from throughput.library(broker, sizes)
        yield from scale.long_log(broker, sizes)
        yield from scale.idle_connections(broker, sizes)
        yield from scale.memory_after(broker)
        unpin(broker.pid)
        yield from requests.latency(broker, sizes)
    yield from scale.many_partitions(directory, sizes)
    yield from scale.recovery(directory, sizes)


PARTS = {
    "broker": _broker,
    "authorization": authorization.authorization,
    "tls": tls.tls,
    "cluster": cluster.cluster,
    "registry": registry.registry,
    "web-access": web_access.web_access,
    "typed-data": typed_data.typed_data,
    "rest-proxy": proxy.proxy,
    "connect": connect.connect,
    "spark": spark.spark,
    "sql": sql.sql,
    "platform": platform.platform,
}


def run_all(sizes: Sizes, directory: Path, parts: Iterable[str] = PARTS) -> Iterator[Row]:
    """Every benchmark, one after the other, as their rows come in."""
    for part in parts:
        yield from PARTS[part](directory, sizes)


def pin(pid: int) -> None:
    """Broker and client on different cores, so that neither takes the other's time."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(pid, cores[:1])
        os.sched_setaffinity(0, cores[1:])


def unpin(pid: int) -> None:
    """Any core for both again."""
    everything = set(range(os.cpu_count() or 1))
    os.sched_setaffinity(pid, everything)
    os.sched_setaffinity(0, everything)


def show(rows: list[Row], console: Console) -> None:
    """Print the table."""
    table = Table(title=f"Caudal on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", show_lines=False)
    for heading in ("what", "result", "aim", "how it was measured"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.what, row.result, row.aim, row.how)
    console.print(table)


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="seconds instead of minutes; the figures mean nothing")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be repeated")
    parser.add_argument("--log-gb", type=float, help="size of the long log (default 5)")
    parser.add_argument("--dir", type=Path, help="where the data goes (default: a temporary folder)")
    options = parser.parse_args()
    sizes = TINY if options.tiny else FULL
    if options.log_gb is not None:
        sizes = replace(sizes, log_bytes=int(options.log_gb * GB))
    console = Console(width=None if os.isatty(1) else 180)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="caudal-bench-") as directory:
        rows = []
        for row in run_all(sizes, Path(directory), options.part or PARTS):
            console.print(f"[dim]{row.what}: {row.result}[/dim]")
            rows.append(row)
    show(rows, console)


if __name__ == "__main__":
    main()
