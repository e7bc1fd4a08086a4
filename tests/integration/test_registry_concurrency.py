"""Several registries, many clients, processes killed at any moment: ids and versions stay what was acknowledged."""

import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from tests.support.postgres import PostgresServer
from tests.support.registry import RegistryProcess

CLIENTS = 32
SUBJECTS = [f"subject-{number}" for number in range(8)]
SCHEMAS = 12
KILLS = 4
"""Each of four registries once, or one registry four times."""
_EACH_MIN = len(SUBJECTS) * SCHEMAS // 8
_RETRY_FOR_S = 200.0


def schema(number: int) -> str:
    fields = ",".join(f'{{"name":"f{field}","type":"int","default":{number}}}' for field in range(3))
    return f'{{"type":"record","name":"R","fields":[{fields}]}}'


@dataclass
class Acknowledged:
    """The responses that clients got: id and version of each schema under each subject."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    answers: dict[tuple[str, int], set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))

    def note(self, subject: str, number: int, answer: dict[str, int]) -> None:
        with self.lock:
            self.answers[subject, number].add((answer["id"], answer["version"]))
            self.count += 1


def register_much(
    registries: Sequence[RegistryProcess], acknowledged: Acknowledged, enough: threading.Event, seed: int
) -> None:
    """One client: some of all (subject, schema) pairs in a random order, each sent until a registry accepts it.

    It goes on, at a slower pace, until the last process was killed.
    """
    order = list(itertools.product(SUBJECTS, range(SCHEMAS)))
    chooser = random.Random(seed)
    chooser.shuffle(order)
    with httpx2.Client(timeout=30) as client:
        for done, (subject, number) in enumerate(itertools.cycle(order)):
            if done >= _EACH_MIN and enough.wait(1.0):
                return
            acknowledged.note(subject, number, register(client, registries, subject, number, chooser))


def register(
    client: httpx2.Client, registries: Sequence[RegistryProcess], subject: str, number: int, chooser: random.Random
) -> dict[str, int]:
    deadline = time.monotonic() + _RETRY_FOR_S
    while True:
        url = chooser.choice(registries).url
        try:
            answer = client.post(f"{url}/subjects/{subject}/versions", json={"schema": schema(number)})
        except httpx2.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.25)  # the process was just killed; another one may be alive
            continue
        assert answer.status_code == 200, answer.text
        body: dict[str, int] = answer.json()
        return body


def kill_now_and_then(
    registries: Sequence[RegistryProcess],
    acknowledged: Acknowledged,
    enough: threading.Event,
    is_over: threading.Event,
) -> int:
    """Kill one process after the other; how many, which is less than KILLS only if the clients have failed.

    Each kill waits for some answers since the last one: on a busy machine, a registry that is killed a moment after
    each start would never answer anything.
    """
    chooser = random.Random(7)
    try:
        for kills, victim in enumerate(itertools.islice(itertools.cycle(registries), KILLS)):
            before = acknowledged.count
            while acknowledged.count < before + CLIENTS:
                if is_over.wait(chooser.uniform(0.2, 1.0)):
                    return kills
            victim.restart(kill=True)
    finally:
        enough.set()
    return KILLS


def everything_holds(url: str, acknowledged: Acknowledged) -> None:
    """No id repeated, no schema with two ids, no version gap, nothing acknowledged lost."""
    ids_of_text: dict[str, set[int]] = defaultdict(set)
    texts_of_id: dict[int, set[str]] = defaultdict(set)
    with httpx2.Client(base_url=url, timeout=30) as client:
        for subject in SUBJECTS:
            versions = client.get(f"/subjects/{subject}/versions").json()
            assert versions == list(range(1, len(versions) + 1)), f"{subject} has gaps: {versions}"
            stored = [client.get(f"/subjects/{subject}/versions/{version}").json() for version in versions]
            assert len({one["schema"] for one in stored}) == len(stored), f"{subject} has a schema twice"
            for one in stored:
                ids_of_text[one["schema"]].add(one["id"])
                texts_of_id[one["id"]].add(one["schema"])
        assert [ids for ids in ids_of_text.values() if len(ids) > 1] == []
        assert [texts for texts in texts_of_id.values() if len(texts) > 1] == []
        for (subject, number), answers in acknowledged.answers.items():
            found = client.post(f"/subjects/{subject}", json={"schema": schema(number)}).json()
            assert answers == {(found["id"], found["version"])}, (subject, number)


def storm(registries: Sequence[RegistryProcess]) -> Acknowledged:
    acknowledged = Acknowledged()
    enough, is_over = threading.Event(), threading.Event()
    httpx2.put(f"{registries[0].url}/config", json={"compatibility": "NONE"}, timeout=30).raise_for_status()
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        killer = pool.submit(kill_now_and_then, registries, acknowledged, enough, is_over)
        clients = [pool.submit(register_much, registries, acknowledged, enough, seed) for seed in range(CLIENTS)]
        try:
            for client in clients:
                client.result()
        finally:
            is_over.set()
        assert killer.result() == KILLS
    return acknowledged


@pytest.fixture
def registries_on_postgres(tmp_path: Path, postgres: PostgresServer) -> Iterator[list[RegistryProcess]]:
    url = postgres.create_database()
    with ExitStack() as running:
        processes = [RegistryProcess(tmp_path / str(n), settings={"database.url": url}) for n in range(4)]
        with ThreadPoolExecutor() as pool:  # all at once, on an empty database
            list(pool.map(lambda process: process.start(), processes))
        for process in processes:
            running.callback(process.stop)
        yield processes


@pytest.mark.timeout(600)
def test_four_registries_on_postgresql_agree_while_they_are_killed(
    registries_on_postgres: list[RegistryProcess],
) -> None:
    acknowledged = storm(registries_on_postgres)
    for registry in registries_on_postgres:
        everything_holds(registry.url, acknowledged)


@pytest.mark.timeout(600)
def test_one_registry_on_sqlite_keeps_what_it_acknowledged_while_it_is_killed(tmp_path: Path) -> None:
    with RegistryProcess(tmp_path) as registry:
        everything_holds(registry.url, storm([registry]))
