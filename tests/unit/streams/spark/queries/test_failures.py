"""What happens to a query that has failed."""

import pytest

from core_broker.client.errors import NotAllowed, Unreachable
from core_broker.client.transactional_producer import AbortNeeded
from streams.errors import DataLoss
from streams.spark.queries.checkpoints import StateLost
from streams.spark.queries.failures import is_final, may_pass, message_of
from streams.spark.queries.spec import BEGIN_ANEW

_WORKER = 'An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File "x", line 1\n'


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StateLost("gone"), ""),
        (NotAllowed("no"), ""),
        (AbortNeeded("refused", cause=NotAllowed("no")), ""),
        (RuntimeError(), f"{_WORKER}streams.errors.DataLoss: Offsets 0 to 1 cannot be read"),
        (RuntimeError(), f"{_WORKER}streams.spark.queries.input_rows.Undecodable: The value at offset 0"),
        (RuntimeError(), f"{_WORKER}streams.formats.errors.EncodeError: too large"),
    ],
)
def test_a_query_is_not_started_again_when_the_same_would_happen(error: Exception, text: str) -> None:
    assert is_final(error, text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unreachable("no broker"), ""),
        (AbortNeeded("timed out", cause=Unreachable("no broker")), ""),
        (RuntimeError(), f"{_WORKER}core_broker.client.errors.Unreachable: no record arrived"),
        (RuntimeError(), "Python worker exited unexpectedly (crashed)"),
    ],
)
def test_a_query_is_started_again_when_a_server_did_not_answer(error: Exception, text: str) -> None:
    assert not is_final(error, text)
    assert may_pass(error, text)


def test_what_is_unknown_is_neither() -> None:
    assert not is_final(RuntimeError("odd"), "odd")
    assert not may_pass(RuntimeError("odd"), "odd")


def test_lost_records_are_told_with_what_to_do() -> None:
    text = f"{_WORKER}streams.errors.DataLoss: Offsets 0 to 1 cannot be read: gone. Some data may have been lost: x"
    assert message_of(RuntimeError(), text) == (
        f"Offsets 0 to 1 cannot be read: gone: records were deleted before the query had read them; {BEGIN_ANEW}"
    )
    own = DataLoss(f"Topic t was deleted. {BEGIN_ANEW}")
    assert message_of(own, "") == str(own)
