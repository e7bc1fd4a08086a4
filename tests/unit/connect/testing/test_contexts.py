"""The workers in memory that tests of connectors use."""

from connect.api.engine import EngineContext
from connect.testing.contexts import FakeEngineContext


def test_an_engine_task_is_told_what_the_test_says_and_what_it_tells_is_kept() -> None:
    fake = FakeEngineContext(clients={"bootstrap.servers": "k:9092"}, dead_letter_topic="dead", connector="lake")
    context: EngineContext = fake
    assert (context.connector, context.group, context.dead_letter_topic) == ("lake", "connect-lake", "dead")
    assert context.topics.chosen(["connect-redrive-lake"]) == ["lake", "connect-redrive-lake"]
    assert context.consumer_properties == context.admin_properties == {"bootstrap.servers": "k:9092"}
    for _ in range(2):
        context.count({"sink_record_send": 2})
        context.used(["a"])
    assert (fake.counted, fake.used_topics) == ({"sink_record_send": 4}, {"a"})


def test_an_engine_task_is_told_to_stop_or_that_it_has_lost_its_work() -> None:
    context = FakeEngineContext()
    assert (context.wait(5), context.is_stopping, context.is_cancelled) == (False, False, False)
    context.cancel()
    assert (context.wait(5), context.is_stopping, context.is_cancelled) == (True, True, True)
    assert context.waited_seconds == 10
