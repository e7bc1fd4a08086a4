"""What becomes of a record whose step failed."""

import math

import pytest

from connect.api.errors import DataError, RetriableError, Unavailable
from connect.runtime.configuration.connector_config import SinkConnectorConfig
from connect.runtime.counters import TaskCounters
from connect.runtime.failures.error_policy import Decision, ErrorPolicy, Failure, Retry, Stage
from connect.runtime.stopping import Stopping

_FAILURE = Failure(stage=Stage.TASK_PUT, class_name="x.Sink", error=DataError("bad"))


def _policy(*, patience_seconds: float = math.inf, **config: str) -> tuple[ErrorPolicy, TaskCounters]:
    given = {"name": "c", "connector.class": "Sink", "topics": "t"}
    given |= {key.replace("_", "."): text for key, text in config.items()}
    counters = TaskCounters()
    policy = ErrorPolicy(
        SinkConnectorConfig.parse(given),
        task="c-0",
        counters=counters,
        stopping=Stopping(),
        patience_seconds=patience_seconds,
    )
    return policy, counters


@pytest.mark.parametrize("tolerance, decision", [("none", Decision.STOP), ("all", Decision.SKIP)])
@pytest.mark.parametrize("error", [DataError("bad"), ValueError("bad"), RetriableError("no time for retries")])
def test_a_record_that_will_not_pass_is_skipped_where_that_is_tolerated(
    tolerance: str, decision: Decision, error: Exception
) -> None:
    policy, _ = _policy(errors_tolerance=tolerance)
    assert policy.decide(error, attempts=1, elapsed_seconds=0) is decision


def test_what_may_pass_is_tried_again_while_there_is_time() -> None:
    policy, _ = _policy(errors_retry_timeout="1000")
    error = RetriableError("not now")
    assert policy.decide(error, attempts=1, elapsed_seconds=0) == Retry(0.3)
    assert policy.decide(error, attempts=2, elapsed_seconds=0.1) == Retry(0.6)
    assert policy.decide(error, attempts=3, elapsed_seconds=0.75) == Retry(0.25)
    assert policy.decide(error, attempts=4, elapsed_seconds=1.0) is Decision.STOP


def test_a_server_that_is_away_is_waited_for_whatever_the_timeout() -> None:
    policy, _ = _policy()
    assert policy.decide(Unavailable("away"), attempts=100, elapsed_seconds=10_000) == Retry(5.0)


def test_patience_ends_what_is_tried_without_end() -> None:
    policy, _ = _policy(patience_seconds=60, errors_retry_timeout="-1")
    assert policy.decide(Unavailable("away"), attempts=10, elapsed_seconds=58) == Retry(2.0)
    for error in (Unavailable("away"), RetriableError("not now")):
        with pytest.raises(RetriableError, match="It still fails after 60 s"):
            policy.decide(error, attempts=10, elapsed_seconds=60)


def test_only_records_that_are_skipped_count_as_skipped() -> None:
    for tolerance, decision, skipped in (("none", Decision.STOP, 0), ("all", Decision.SKIP, 1)):
        policy, counters = _policy(errors_tolerance=tolerance)
        assert policy.give_up(_FAILURE, "a record") is decision
        assert counters.total_records_skipped == skipped
        assert counters.last_error_timestamp > 0


def test_the_error_that_stops_a_task_names_its_cause() -> None:
    assert _FAILURE.exceeds_tolerance().__cause__ is _FAILURE.error
