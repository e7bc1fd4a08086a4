"""The platform in containers on one machine: started, used from outside and inside, killed, made anew."""

from collections.abc import Iterator
from typing import Final

import pytest

from deploy.stack import STACK
from tests.support.admin import eventually
from tests.support.clients.confluent import ConfluentClient, read_to_end
from tests.support.clients.model import Sent
from tests.support.containers import PATIENCE_S, TOPIC, Containers, needs_docker, post_orders, put_sink, subjects

BOOTSTRAP: Final = "localhost:9092"
ORDERS: Final = [(1, "canoe"), (2, "paddle")]
NAMES: Final = [service.name for service in STACK]
_ALL_BUT_THE_FIRST_PROCESS: Final = "import os, signal; os.kill(-1, signal.SIGKILL)"

pytestmark = [needs_docker, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def containers() -> Iterator[Containers]:
    found = Containers("compose.yaml")
    with found.running():
        yield found


def test_every_service_is_well(containers: Containers) -> None:
    assert containers.do("ps", "--services").split() == sorted(NAMES)
    assert containers.sick() == {}


def test_nothing_runs_as_root(containers: Containers) -> None:
    assert {containers.do("exec", "-T", name, "id", "-u").strip() for name in NAMES} == {"10001"}


def test_a_client_on_the_machine_produces_and_consumes() -> None:
    ConfluentClient().produce(BOOTSTRAP, "clicks", [Sent(value=b"one"), Sent(value=b"two")])

    assert sorted(record.value or b"" for record in read_to_end(BOOTSTRAP, "clicks")) == [b"one", b"two"]


def test_what_is_posted_over_http_becomes_rows_of_a_spark_table(containers: Containers) -> None:
    posted, created = post_orders(ORDERS), put_sink()

    assert (posted.status_code, created.status_code) == (200, 201), (posted.text, created.text)
    eventually(containers.table, lambda rows: rows == ORDERS, timeout_s=PATIENCE_S, pause_s=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_service_that_is_killed_comes_back_with_what_it_had(containers: Containers, name: str) -> None:
    containers.try_to("exec", "-T", name, "python", "-c", _ALL_BUT_THE_FIRST_PROCESS)

    eventually(containers.sick, lambda sick: not sick, timeout_s=PATIENCE_S, pause_s=1)
    assert len(read_to_end(BOOTSTRAP, "clicks")) == 2
    assert subjects() == [f"{TOPIC}-value"]


def test_containers_that_are_made_anew_find_everything(containers: Containers) -> None:
    containers.do("down")
    containers.start()

    assert len(read_to_end(BOOTSTRAP, "clicks")) == 2
    assert subjects() == [f"{TOPIC}-value"]
    eventually(containers.table, lambda rows: rows == ORDERS, timeout_s=PATIENCE_S, pause_s=1)
