"""Kill -9 of everything that a Spark sink needs, under load: every record is in table or dead letters exactly once.

`make test-all` has a short round and a long one, of KILLS kills (24 unless told), in an order that KILL_SEED decides;
`make test` kills each part once in `tests/e2e/test_platform_kills.py`.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_java import needs_java
from tests.support.spark_kills import MODES, Siege
from tests.support.spark_worker import SparkWorker

pytestmark = [needs_java, pytest.mark.slow]

_KILLS: Final = int(os.environ.get("KILLS", "24"))
_SHORT: Final = ("Python worker", "driver JVM", "broker", "Connect worker", "engine", "driver JVM")


@pytest.fixture
def siege(tmp_path: Path, registry: RegistryProcess) -> Iterator[Siege]:
    """All three modes on one engine, with a broker of their own."""
    with (
        BrokerProcess(tmp_path / "broker") as broker,
        SparkWorker(tmp_path / "connect", bootstrap=broker.bootstrap) as worker,
    ):
        begun = Siege(broker, registry, worker, folder=tmp_path)
        begun.create()
        begun.load.start()
        try:
            yield begun
        finally:
            begun.load.stop()


@pytest.mark.timeout(1200)
def test_every_record_is_written_once_though_each_part_is_killed(siege: Siege) -> None:
    chooser = random.Random(os.environ.get("KILL_SEED"))
    weapons = siege.weapons(chooser)
    for what in _SHORT:
        siege.strike(what, weapons[what], chooser=chooser)
    _judge(siege)


@pytest.mark.timeout(900 + 120 * _KILLS)
def test_every_record_is_written_once_though_all_parts_are_killed_again_and_again(siege: Siege) -> None:
    chooser = random.Random(os.environ.get("KILL_SEED"))
    weapons = siege.weapons(chooser)
    order = [what for _ in range(_KILLS // len(weapons) + 1) for what in chooser.sample(sorted(weapons), len(weapons))]
    for what in order[:_KILLS]:
        # Sometimes the next one hits while everything gets up again.
        siege.strike(what, weapons[what], chooser=chooser, wait=chooser.random() < 0.8)
    _judge(siege)


def _judge(siege: Siege) -> None:
    siege.load.stop()
    verdicts = siege.judge()
    told = siege.summary(verdicts)
    print(told)  # noqa: T201 - for long rounds
    assert {name: one.problems for name, one in verdicts.items()} == {name: [] for name in MODES}, told
    assert all(one.letters > 0 for one in verdicts.values()), told
