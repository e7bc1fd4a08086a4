"""The schema registry: requests per second and waits with few and many versions stored, start, memory."""

import base64
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.http_load import Load, request, send_all
from tests.benchmarks.measure import MB, Row, Sizes, Stopwatch, percentile
from tests.support.memory import resident_bytes
from tests.support.registry import RegistryProcess
from tests.support.registry_access import ADMIN, ALICE, Administrator, GuardedRegistry, rule
from tests.support.registry_fill import fill, schema_text, subject_name

_CONNECTIONS = 16
_RULES = 900
_PEERS = "on 2 CPUs: Karapace 629, Confluent 6,088, Redpanda 7,708"


def registry(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Every size, one after the other, on SQLite."""
    for stored in sizes.registry_versions:
        folder = directory / f"registry-{stored}"
        folder.mkdir(parents=True)
        subjects = max(1, stored // 10)
        fill(f"sqlite:///{folder}/registry.db", subject_count=subjects, versions_each=stored // subjects)
        with RegistryProcess(folder) as process:
            yield from _measure(process, stored, subjects, sizes.registry_requests)
        with GuardedRegistry(folder) as guarded:
            yield from _measure_users(guarded, stored, sizes.registry_requests)


def _measure(process: RegistryProcess, stored: int, subjects: int, count: int) -> Iterator[Row]:
    yield Row(
        what=f"registry ready, {stored:,} versions",
        result=f"{process.ready_after_s:.2f} s, {resident_bytes(process.pid) / MB:.0f} MB",
        aim="< 1 s",
        how="from starting the process to its ready line, and its memory then; SQLite",
    )
    _pin(process.pid)
    chooser = random.Random(1)
    many = f"{stored:,} versions"
    ids = [chooser.randint(1, stored) for _ in range(count)]
    hot = ids[: max(1, min(1000, stored))]
    by_id = [request("GET", f"/schemas/ids/{number}") for number in ids]
    again = [request("GET", f"/schemas/ids/{chooser.choice(hot)}") for _ in range(count)]
    look_ups = [_look_up(chooser.randrange(subjects), stored // subjects) for _ in range(count // 10)]
    registrations = [_register(number, stored) for number in range(count // 10)]
    send_all(process.url, by_id[:200], connections=_CONNECTIONS)
    yield _row(process, f"get by id, {many}", again, f"> 6,000/s; {_PEERS}", "up to 1,000 ids again and again")
    yield _row(process, f"get any id, {many}", by_id[: count // 4], "", "ids at random")
    yield _row(process, f"look up, {many}", look_ups, "", "POST /subjects/…, Avro, 8 fields")
    yield _row(process, f"register, {many}", registrations, "> 300/s", "new Avro schemas, new and old subjects")
    yield Row(
        what=f"registry memory, {stored:,} versions",
        result=f"{resident_bytes(process.pid) / MB:.0f} MB",
        how="resident, after all of the above",
    )
    _unpin(process.pid)


def _measure_users(process: GuardedRegistry, stored: int, count: int) -> Iterator[Row]:
    """The same hot path for a user with a password and one rule among many."""
    chooser = random.Random(1)
    admin = Administrator(process.url, ADMIN)
    others = [rule("READ", f"other-{number}", who=f"User:user-{number}") for number in range(_RULES)]
    admin.allow(rule("READ", "*"), *others)
    admin.close()
    _pin(process.pid)
    hot = [chooser.randint(1, stored) for _ in range(1000)]
    header = b"Authorization: Basic " + base64.b64encode(":".join(ALICE).encode()) + b"\r\n\r\n"
    plain = [request("GET", f"/schemas/ids/{chooser.choice(hot)}") for _ in range(count)]
    again = [one.removesuffix(b"\r\n") + header for one in plain]
    send_all(process.url, again[:200], connections=_CONNECTIONS)
    how = f"the same with a password and {_RULES + 1} access rules"
    yield _row(process, f"get by id, {stored:,} versions, as a user", again, "", how)
    _unpin(process.pid)


def _row(process: RegistryProcess, what: str, requests: Sequence[bytes], aim: str, how: str) -> Row:
    with Stopwatch(process.pid) as watch:
        load = send_all(process.url, requests, connections=_CONNECTIONS)
    assert set(load.statuses) == {b"200"}, load.statuses
    result = f"{len(requests) / load.seconds:,.0f}/s, p99 {_p99_ms(load):.1f} ms"
    cost = watch.cpu_seconds / len(requests) * 1e6
    how = f"{how}; {_CONNECTIONS} connections, one process on one core, {cost:.0f} µs of its CPU each; {watch.note()}"
    return Row(what=what, result=result, aim=aim, how=how)


def _p99_ms(load: Load) -> float:
    return percentile(load.waits, 0.99) * 1000


def _look_up(subject: int, versions: int) -> bytes:
    body = json.dumps({"schema": schema_text(subject, random.Random(subject).randint(1, versions))}).encode()
    return request("POST", f"/subjects/{subject_name(subject)}", body)


def _register(number: int, stored: int) -> bytes:
    """Half of them the next version of a subject that is there, half the first of a new one."""
    subject = number if number % 2 == 0 else stored + number
    name = subject_name(subject)
    text = schema_text(subject, 1_000_000 + number).replace("shop.orders", "shop.bench")
    return request("POST", f"/subjects/{name}/versions", json.dumps({"schema": text}).encode())


def _pin(pid: int) -> None:
    """Registry and client on different cores; all threads of the registry on one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores[:1])
        os.sched_setaffinity(0, cores[1:])


def _unpin(pid: int) -> None:
    os.sched_setaffinity(pid, set(range(os.cpu_count() or 1)))
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
