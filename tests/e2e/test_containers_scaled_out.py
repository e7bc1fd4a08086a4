"""The platform in containers on engines that grow: Kafka, PostgreSQL, Celery, a Spark cluster; each is killed once."""

from collections.abc import Iterator
from itertools import count
from typing import Final

import httpx2
import pytest

from tests.support.admin import eventually
from tests.support.clients.confluent import read_to_end
from tests.support.containers import PATIENCE_S, TOPIC, Containers, needs_docker, post_orders, put_sink, subjects

BOOTSTRAP: Final = "localhost:9092,localhost:9192,localhost:9292"
VICTIMS: Final = [
    "kafka-1",
    "postgres",
    "redis",
    "registry",
    "rest-proxy",
    "connect",
    "connect-worker",
    "spark-worker",
    "spark-engine",
    "spark-master",
    "gateway",
]
_numbers = count(1)

pytestmark = [needs_docker, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def containers() -> Iterator[Containers]:
    found = Containers("scale-out.yaml")
    with found.running():
        yield found


def _order(containers: Containers) -> None:
    """One more order, which must become a row; the table must then have every record of the topic, and each once."""
    number = next(_numbers)
    eventually(lambda: _is_taken(number), timeout_s=PATIENCE_S, pause_s=1)
    rows = eventually(
        containers.table, lambda rows: number in [id_ for id_, _ in rows], timeout_s=PATIENCE_S, pause_s=1
    )
    assert len(rows) == len(read_to_end(BOOTSTRAP, TOPIC))
    assert {id_ for id_, _ in rows} == set(range(1, number + 1))


def _is_taken(number: int) -> bool:
    try:
        return post_orders([(number, "canoe")]).status_code == 200
    except httpx2.HTTPError:
        return False


def test_every_container_is_well(containers: Containers) -> None:
    assert containers.sick() == {}


def test_an_order_becomes_a_row(containers: Containers) -> None:
    created = put_sink()
    assert created.status_code == 201, created.text

    _order(containers)
    assert subjects() == [f"{TOPIC}-value"]


@pytest.mark.parametrize("name", VICTIMS)
def test_after_a_kill_orders_become_rows_again_and_each_once(containers: Containers, name: str) -> None:
    containers.do("kill", name)
    containers.do("start", name)

    _order(containers)
