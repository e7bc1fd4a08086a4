"""Kill -9 of everything that queries need, under load: a filter, counts, windows and two joins come out exactly once.

`make test-all` has a long round of KILLS kills (30 by default) too, in an order that KILL_SEED decides.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.broker import BrokerProcess
from tests.support.spark_java import needs_java
from tests.support.streams_kills import SINKS, Siege
from tests.support.streams_service import StreamsService

pytestmark = needs_java

_KILLS: Final = int(os.environ.get("KILLS", "30"))
_SHORT: Final = ("server", "driver JVM", "broker")


@pytest.fixture
def siege(tmp_path: Path) -> Iterator[Siege]:
    """Five queries on one engine, with a broker of their own."""
    with (
        BrokerProcess(tmp_path / "broker", settings={"log.retention.ms": "-1"}) as broker,
        StreamsService(tmp_path / "streams", bootstrap=broker.bootstrap) as server,
    ):
        begun = Siege(broker, server)
        begun.create()
        begun.load.start()
        yield begun


@pytest.mark.timeout(900)
def test_queries_go_on_exactly_where_they_were_when_a_part_is_killed(siege: Siege) -> None:
    chooser = random.Random(os.environ.get("KILL_SEED"))
    weapons = siege.weapons(chooser)
    for what in _SHORT:
        siege.strike(what, weapons[what], chooser=chooser)
    _judge(siege)


@pytest.mark.slow
@pytest.mark.timeout(900 + 120 * _KILLS)
def test_queries_go_on_exactly_where_they_were_when_all_parts_are_killed_again_and_again(siege: Siege) -> None:
    chooser = random.Random(os.environ.get("KILL_SEED"))
    weapons = siege.weapons(chooser)
    order = [what for _ in range(_KILLS // len(weapons) + 1) for what in chooser.sample(sorted(weapons), len(weapons))]
    for what in order[:_KILLS]:
        # Sometimes the next one hits while everything gets up again.
        siege.strike(what, weapons[what], chooser=chooser, wait=chooser.random() < 0.8)
    _judge(siege)


def _judge(siege: Siege) -> None:
    problems = siege.judge()
    told = siege.summary()
    print(told)  # noqa: T201 - for long rounds
    assert problems == {name: [] for name in SINKS}, told
