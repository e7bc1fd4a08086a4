"""The whole platform on three brokers, each of them killed in turn while events flow from HTTP into SQL and Spark
tables: users of HTTP see a pause and no error, and nothing is lost or written twice.

All is done once for the file; each test then looks at one side of what came of it.
"""

import logging
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.client.settings import ClientSettings
from deploy.stack import brokers_of
from deploy.views.cluster import describe_cluster
from tests.support.admin import eventually
from tests.support.platform import PATIENCE_S, SMALL_SPARK, PlatformProcess
from tests.support.platform_load import GarbledSender, HttpSender, KafkaSender
from tests.support.platform_siege import HTTP_IDS, TOPIC, Outcome, Siege
from tests.support.spark_java import needs_java

log = logging.getLogger(__name__)

pytestmark = pytest.mark.timeout(900)  # Spark's start takes minutes where many others start one, too

BROKERS: Final = [service.name for service in brokers_of(3)]
NOTICED_SOON: Final = ("broker:broker.session.timeout.ms=3000", "broker:broker.heartbeat.interval.ms=500")
GARBLED_IDS: Final = 2 * HTTP_IDS
FAULTS: Final = int(os.environ.get("PLATFORM_FAULTS", "12"))
SEED: Final = int(os.environ.get("PLATFORM_SEED", "15"))
"""Of the long version."""


class ClusterSiege(Siege):
    """A platform on three brokers, with senders that never stop."""

    def __init__(self, platform: PlatformProcess, folder: Path) -> None:
        super().__init__(platform, folder)
        self.platform = platform
        self.create()
        self.senders = (
            KafkaSender(platform, TOPIC, first_id=0),
            HttpSender(platform, TOPIC, first_id=HTTP_IDS),
            GarbledSender(platform, TOPIC, first_id=GARBLED_IDS),
        )
        self.outcome = Outcome()

    @property
    def http(self) -> HttpSender:
        """The client of the REST proxy."""
        return self.senders[1]

    def wait_until_whole(self) -> None:
        """Wait until every broker votes, and every replica is in sync."""
        admin = Admin(ClientSettings(bootstrap_servers=self.platform.bootstrap, properties={"log_level": "0"}))

        def is_whole() -> bool:
            try:
                found = describe_cluster(admin)
            except ClientError:
                return False
            voters = [] if found.quorum is None else found.quorum.voters
            return len(voters) == len(BROKERS) and not (found.offline or found.under_replicated)

        eventually(is_whole, timeout_s=PATIENCE_S, pause_s=0.2)

    def wait_until_all_flows(self) -> None:
        """Wait until each sender is acknowledged again, and each sink has written more than it has now."""
        self.wait_until_everything_flows(*self.senders)


@contextmanager
def besieged(folder: Path, *brokers: str) -> Iterator[ClusterSiege]:
    """A platform, with settings of its brokers, while everything flows; after the block, the outcome is judged."""
    settings = (*SMALL_SPARK, "connect:offset.flush.interval.ms=1000", *brokers)
    with PlatformProcess(folder / "platform", "--brokers", "3", settings=settings) as platform:
        siege = ClusterSiege(platform, folder)
        kafka, http, garbled = siege.senders
        with kafka, http, garbled:
            siege.wait_until_all_flows()
            siege.wait_until_whole()
            yield siege
        siege.outcome = siege.judged(kafka.acknowledged | http.acknowledged)


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> ClusterSiege:
    """Every broker killed, one after the other, and all counted."""
    with besieged(tmp_path_factory.mktemp("kills"), *NOTICED_SOON) as siege:
        for name in BROKERS:
            siege.kill(name)
            siege.wait_until_all_flows()
            siege.wait_until_whole()
        assert {name: replicas for name, replicas in siege.replicas().items() if replicas != {3}} == {}
    return siege


def test_users_of_http_see_no_error(siege: ClusterSiege) -> None:
    log.info("%d requests, the slowest %.1f s", siege.http.requests, siege.http.slowest_s)
    assert siege.http.refusals == []


def test_every_broker_was_killed_once_and_no_other_service_died(siege: ClusterSiege) -> None:
    expected = {name: int(name in BROKERS) for name in siege.outcome.restarts}
    assert siege.outcome.restarts == expected


def test_every_acknowledged_record_is_in_the_topic_where_it_was_acknowledged(siege: ClusterSiege) -> None:
    outcome = siege.outcome
    assert {number >= HTTP_IDS for number in outcome.acknowledged.values()} == {True, False}
    assert {place: outcome.in_topic.get(place) for place in outcome.acknowledged} == outcome.acknowledged


def test_no_record_is_in_the_topic_twice(siege: ClusterSiege) -> None:
    check_written_once(siege.outcome)


def test_every_record_of_the_topic_is_in_the_sql_table(siege: ClusterSiege) -> None:
    assert siege.outcome.in_sql == set(siege.outcome.in_topic.values())


@needs_java
def test_every_record_of_the_topic_is_in_the_spark_table_or_a_dead_letter_exactly_once(siege: ClusterSiege) -> None:
    check_spark(siege.outcome)


def test_no_connector_and_no_task_has_failed(siege: ClusterSiege) -> None:
    check_connectors(siege.outcome)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_same_for_brokers_that_are_killed_paused_and_restarted_many_times(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with besieged(tmp_path) as siege:
        for number in range(FAULTS):
            name = chance.choice(BROKERS)
            fault = chance.choice((kill, pause, restart))
            log.info("fault %d of %d: %s of %s", number + 1, FAULTS, fault.__name__, name)
            fault(siege, name)
            siege.wait_until_all_flows()
            if chance.random() < 0.7:  # otherwise the next fault comes while replicas still catch up
                siege.wait_until_whole()
        siege.wait_until_whole()
    outcome = siege.outcome
    log.info("%d requests, the slowest %.1f s", siege.http.requests, siege.http.slowest_s)
    assert siege.http.refusals == []
    assert {place: outcome.in_topic.get(place) for place in outcome.acknowledged} == outcome.acknowledged
    check_written_once(outcome)
    assert outcome.in_sql == set(outcome.in_topic.values())
    check_spark(outcome)
    check_connectors(outcome)


def kill(siege: ClusterSiege, name: str) -> None:
    """As a crash ends it."""
    siege.kill(name)


def restart(siege: ClusterSiege, name: str) -> None:
    """As an operator ends it."""
    siege.signal(name, signal.SIGTERM)


def pause(siege: ClusterSiege, name: str) -> None:
    """As a frozen machine, until the others go on without it."""
    pid = siege.platform.service(name).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        siege.wait_until_all_flows()
    finally:
        os.kill(pid, signal.SIGCONT)


def check_written_once(outcome: Outcome) -> None:
    """No sender sends an order twice, so none may be in the topic twice."""
    assert [number for number, count in Counter(outcome.in_topic.values()).items() if count > 1] == []


def check_spark(outcome: Outcome) -> None:
    """Each record of the topic is a row, or a dead letter."""
    assert outcome.in_spark == Counter(outcome.in_topic.keys())
    assert outcome.spark_ids == set(outcome.in_topic.values())
    assert outcome.garbled
    assert outcome.letters == Counter(outcome.garbled)


def check_connectors(outcome: Outcome) -> None:
    """None failed, not even for a while."""
    assert outcome.states == {"RUNNING"}
    assert outcome.failures == []
