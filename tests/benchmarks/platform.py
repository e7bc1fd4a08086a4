"""The whole platform, as `caudal up` starts it: time until it is ready, memory and idle processor time of its parts."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import psutil

from deploy.launcher import state
from deploy.launcher.spark import engine_pid
from tests.benchmarks.measure import MB, Row, Sizes, cpu_seconds
from tests.support.memory import resident_bytes
from tests.support.service import REPOSITORY

_PATIENCE_S: Final = 600.0
_PAUSE_S: Final = 0.1
_LAUNCHER: Final = "launcher"
_SPARK: Final = "Spark"
_SINK: Final = {
    "connector.class": "SparkSink",
    "topics": "idle",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def platform(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Start it twice in the same folder, look at it at rest, give it a Spark sink, and look again."""
    running = _Platform(directory / "platform")
    try:
        yield running.starting("first start", "in an empty folder")
        yield running.stopping()
        yield running.starting("second start", "in the folder of the first one")
        yield from running.at_rest("without Spark", sizes.platform_idle_s)
        if sizes.platform_has_spark:
            yield running.starting_spark()
            yield from running.at_rest("with Spark, one idle sink", sizes.platform_idle_s)
    finally:
        running.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usage:
    """What some processes take."""

    processes: int
    pss_bytes: int
    rss_bytes: int
    cpu_share: float
    """Of one core."""

    def told(self) -> str:
        return (
            f"{self.pss_bytes / MB:,.0f} MB (RSS {self.rss_bytes / MB:,.0f} MB), {self.cpu_share:.1%} of a core at rest"
        )


class _Platform:
    """A platform of its own, in the background."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def starting(self, what: str, where: str) -> Row:
        """From the command to all services ready."""
        seconds = self._timed("up", "--data", str(self._folder), "--ports", "any", "--detach")
        each = ", ".join(f"{name} {item.ready_after_s or 0:.1f} s" for name, item in self._state().services.items())
        return Row(
            what=f"platform ready, {what}",
            result=f"{seconds:.1f} s",
            aim="< 5 s",
            how=f"caudal up --detach {where}, from the command to its end; each from its own start: {each}; "
            f"{self._cpu_seconds():.1f} CPU-s in all, whatever else the machine does",
        )

    def stopping(self) -> Row:
        """From the command to the end of the last process."""
        seconds = self.stop()
        return Row(what="platform stopped", result=f"{seconds:.1f} s", how="caudal down: all services, in order")

    def starting_spark(self) -> Row:
        """From the first Spark sink to its first row."""
        began, spent = time.monotonic(), self._cpu_seconds()
        self._ask("POST", "rest-proxy", "/topics/idle", '{"records": [{"value": {"id": 1}}]}', "vnd.kafka.json.v2+")
        config = ", ".join(f'"{key}": "{value}"' for key, value in _SINK.items())
        self._ask("PUT", "connect", "/connectors/idle/config", f"{{{config}}}")
        warehouse = self._folder / "spark" / "warehouse" / "idle"
        while not any(warehouse.glob("**/*.parquet")):
            assert time.monotonic() - began < _PATIENCE_S, self._ask("GET", "connect", "/connectors/idle/status").text
            time.sleep(_PAUSE_S)
        return Row(
            what="first Spark sink of the platform",
            result=f"{time.monotonic() - began:.1f} s",
            how="from the request that makes it to the file with its first row; Spark starts meanwhile: "
            f"{self._cpu_seconds() - spent:.1f} CPU-s",
        )

    def at_rest(self, how: str, seconds: float) -> Iterator[Row]:
        """What each part and all together take while nobody uses them."""
        time.sleep(seconds / 2)  # what a start leaves behind is over
        groups = self._groups()
        usage = _measured(groups, seconds)
        for name, used in usage.items():
            processes = "1 process" if used.processes == 1 else f"{used.processes} processes"
            yield Row(what=f"platform {how}: {name}", result=used.told(), how=processes)
        total = _Usage(
            processes=sum(used.processes for used in usage.values()),
            pss_bytes=sum(used.pss_bytes for used in usage.values()),
            rss_bytes=sum(used.rss_bytes for used in usage.values()),
            cpu_share=sum(used.cpu_share for used in usage.values()),
        )
        yield Row(
            what=f"platform {how}: all of it",
            result=total.told(),
            how=f"{total.processes} processes, {seconds:g} s without work; memory is PSS, in which shared pages count "
            "once; in RSS they count in each process",
        )

    def stop(self) -> float:
        """End it; nothing happens when it does not run."""
        return self._timed("down", "--data", str(self._folder))

    def _cpu_seconds(self) -> float:
        """Processor time of all that runs now, since its start."""
        return sum(spent for members in _cpu(self._groups()).values() for spent in members.values())

    def _groups(self) -> dict[str, list[psutil.Process]]:
        """Processes by the part that they belong to: whoever started them first counts, up to the next part."""
        found = self._state()
        heads = {_LAUNCHER: found.pid, **{name: item.pid for name, item in found.services.items() if item.pid}}
        if found.spark is not None and (engine := engine_pid(Path(found.spark.data_dir))):
            heads[_SPARK] = engine
        groups = {name: _family(psutil.Process(pid), set(heads.values()) - {pid}) for name, pid in heads.items()}
        spark = dict(_parts_of_spark(groups.pop(_SPARK, [])))
        return {**groups, **spark}

    def _state(self) -> state.PlatformState:
        found = state.read(self._folder)
        assert found is not None, f"no platform runs in {self._folder}"
        return found

    def _ask(self, method: str, service: str, path: str, body: str | None = None, kind: str = "") -> httpx2.Response:
        answer = httpx2.request(
            method,
            f"{self._state().services[service].endpoint}{path}",
            content=body,
            headers={"content-type": f"application/{kind}json"} if body else {},
            timeout=_PATIENCE_S,
        )
        assert answer.is_success, answer.text
        return answer

    @staticmethod
    def _timed(*words: str) -> float:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "deploy.cli", *words],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return time.monotonic() - began


def _family(head: psutil.Process, others: set[int]) -> list[psutil.Process]:
    """A process and all that it has started, without those that are parts of their own."""
    members, waiting = [], [head]
    while waiting:
        process = waiting.pop()
        members.append(process)
        with suppress(psutil.NoSuchProcess):
            waiting += [child for child in process.children() if child.pid not in others]
    return members


def _parts_of_spark(members: Sequence[psutil.Process]) -> Iterator[tuple[str, list[psutil.Process]]]:
    if not members:
        return
    java = [process for process in members if _name(process) == "java"]
    yield "Spark, its Java", java
    yield "Spark, Python beside it", [process for process in members if process not in java]


def _name(process: psutil.Process) -> str:
    """Empty when it has ended: Spark's Python workers come and go."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _measured(groups: Mapping[str, Sequence[psutil.Process]], seconds: float) -> dict[str, _Usage]:
    before = _cpu(groups)
    began = time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    after = _cpu(groups)
    return {
        name: _Usage(
            processes=len(after[name]),
            pss_bytes=sum(_proportional_bytes(process.pid) for process in members),
            rss_bytes=sum(_resident_bytes(process.pid) for process in members),
            cpu_share=sum(after[name][pid] - spent for pid, spent in before[name].items() if pid in after[name])
            / elapsed,
        )
        for name, members in groups.items()
    }


def _cpu(groups: Mapping[str, Sequence[psutil.Process]]) -> dict[str, dict[int, float]]:
    spent: dict[str, dict[int, float]] = {}
    for name, members in groups.items():
        spent[name] = {}
        for process in members:
            with suppress(OSError):  # it has ended
                spent[name][process.pid] = cpu_seconds(process.pid)
    return spent


def _proportional_bytes(pid: int) -> int:
    """Memory with a fair share of the pages that others have as well."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _resident_bytes(pid: int) -> int:
    with suppress(OSError, AssertionError):  # it has ended
        return resident_bytes(pid)
    return 0
