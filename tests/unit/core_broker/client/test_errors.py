import pytest
from confluent_kafka import KafkaError, KafkaException

from core_broker.client import errors
from core_broker.client.errors import ClientError, from_kafka, from_queueing, is_passing, map_errors
from core_broker.errors import ErrorCode


@pytest.mark.parametrize(
    "code,kind",
    [
        (KafkaError._TRANSPORT, errors.Unreachable),
        (KafkaError._TIMED_OUT, errors.Unreachable),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, errors.NotFound),
        (KafkaError.GROUP_ID_NOT_FOUND, errors.NotFound),
        (KafkaError.TOPIC_ALREADY_EXISTS, errors.AlreadyExists),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, errors.NotAllowed),
        (KafkaError.INVALID_CONFIG, errors.Rejected),
        (KafkaError.NOT_LEADER_FOR_PARTITION, errors.Retriable),
        (KafkaError.NOT_ENOUGH_REPLICAS, errors.Retriable),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, errors.Retriable),
    ],
)
def test_error_is_grouped_by_what_the_caller_does(code: int, kind: type[ClientError]) -> None:
    error = from_kafka(KafkaError(code))
    assert type(error) is kind
    assert error.code == code


@pytest.mark.parametrize(
    "topic,kind",
    [
        ("orders.v1_a-b", errors.NotFound),
        ("a" * 249, errors.NotFound),
        ("...", errors.NotFound),
        ("a" * 250, errors.Rejected),
        ("a/b", errors.Rejected),
        ("", errors.Rejected),
        (".", errors.Rejected),
        ("..", errors.Rejected),
        ("é", errors.Rejected),
        ("a\n", errors.Rejected),
    ],
)
def test_an_unknown_topic_is_not_found_only_if_there_may_be_one(topic: str, kind: type[ClientError]) -> None:
    assert type(from_queueing(KafkaError(KafkaError._UNKNOWN_TOPIC), topic)) is kind


def test_fatal_and_retriable_flags_of_the_library_are_kept() -> None:
    assert type(from_kafka(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, fatal=True))) is errors.Fatal
    assert type(from_kafka(KafkaError(KafkaError.NOT_COORDINATOR, retriable=True))) is errors.Retriable


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        (KafkaError.NOT_LEADER_FOR_PARTITION, True),
        (KafkaError.FENCED_LEADER_EPOCH, True),
        (KafkaError.OFFSET_NOT_AVAILABLE, True),
        (KafkaError.NOT_COORDINATOR, True),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, True),
        (KafkaError._ALL_BROKERS_DOWN, True),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError.FENCED_INSTANCE_ID, False),
        (KafkaError._AUTO_OFFSET_RESET, False),
    ],
)
def test_consumers_sit_out_what_a_broker_that_has_died_leaves_behind(code: int, passes: bool) -> None:
    assert is_passing(KafkaError(code)) is passes


def test_every_code_of_the_protocol_becomes_one_of_ours() -> None:
    for code in ErrorCode:
        if code is not ErrorCode.NONE:
            assert type(from_kafka(KafkaError(int(code)))) is not ClientError


def test_exceptions_of_the_library_do_not_pass_the_edge() -> None:
    with pytest.raises(errors.NotFound), map_errors():
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with pytest.raises(errors.Rejected, match="odd"), map_errors():
        raise ValueError("odd")
    with pytest.raises(errors.Rejected, match="text only"), map_errors():
        raise KafkaException("text only")
