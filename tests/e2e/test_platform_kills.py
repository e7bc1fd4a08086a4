"""The whole platform under `kill -9` of each part in turn, while events flow: it comes back, and nothing that was
acknowledged is lost on the way into the topic, a SQL table and a Spark table.

All is done once for the file; each test then looks at one side of what came of it.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from deploy.stack import BY_NAME
from tests.support.platform import SMALL_SPARK, PlatformProcess
from tests.support.platform_load import HttpSender, KafkaSender
from tests.support.platform_siege import HAS_SPARK, HTTP_IDS, TOPIC, Outcome, Siege
from tests.support.spark_java import needs_java

pytestmark = pytest.mark.timeout(900)  # Spark starts twice, which takes minutes where many others do so, too


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Everything started, loaded, killed and counted."""
    folder = tmp_path_factory.mktemp("kills")
    settings = (*SMALL_SPARK, "connect:offset.flush.interval.ms=1000")
    with PlatformProcess(folder / "platform", settings=settings) as platform:
        siege = Siege(platform, folder)
        siege.create()
        with (
            KafkaSender(platform, TOPIC, first_id=0) as kafka,
            HttpSender(platform, TOPIC, first_id=HTTP_IDS) as http,
        ):
            siege.wait_until_everything_flows(kafka, http)
            for name in BY_NAME:
                siege.kill(name)
                siege.wait_until_everything_flows(kafka, http)
            if HAS_SPARK:
                siege.kill_engine()
                siege.wait_until_everything_flows(kafka, http)
        yield siege.judged(kafka.acknowledged | http.acknowledged)


def test_the_launcher_has_brought_each_service_back_once(outcome: Outcome) -> None:
    assert outcome.restarts == dict.fromkeys(BY_NAME, 1)


def test_every_acknowledged_record_is_in_the_topic_where_it_was_acknowledged(outcome: Outcome) -> None:
    assert {number >= HTTP_IDS for number in outcome.acknowledged.values()} == {True, False}
    found = {place: outcome.in_topic.get(place) for place in outcome.acknowledged}
    assert found == outcome.acknowledged


def test_no_record_of_the_idempotent_producer_is_in_the_topic_twice(outcome: Outcome) -> None:
    numbers = Counter(number for number in outcome.in_topic.values() if number < HTTP_IDS)
    assert [number for number, count in numbers.items() if count > 1] == []


def test_every_acknowledged_record_is_in_the_sql_table(outcome: Outcome) -> None:
    assert set(outcome.acknowledged.values()) - outcome.in_sql == set()
    assert outcome.in_sql == set(outcome.in_topic.values())


@needs_java
def test_every_record_of_the_topic_is_in_the_spark_table_exactly_once(outcome: Outcome) -> None:
    assert outcome.in_spark == Counter(outcome.in_topic.keys())
    assert outcome.spark_ids == set(outcome.in_topic.values())


@needs_java
def test_another_engine_has_taken_over_from_the_one_that_was_killed(outcome: Outcome) -> None:
    assert len(set(outcome.engines)) == 2
