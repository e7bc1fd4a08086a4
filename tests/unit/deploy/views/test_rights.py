from typing import Any

import pytest

from core_broker.errors import ErrorCode
from deploy.views.rights import missing_right

TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("command", "code", "given", "text", "grant"),
    [
        ("topic create", TOPIC, {"name": "a b"}, "create topic a b", "create --topic 'a b'"),
        ("topic delete", TOPIC, {"names": ["a", "b"]}, "delete topic a b", "delete --topic a --topic b"),
        ("topic consume", GROUP, {"topic": "t", "group": "g"}, "read group g", "read --group g"),
        ("topic describe", TOPIC, {"name": "t"}, "describe or describe-configs topic t", "--topic t"),
        ("group describe", GROUP, {"group_id": "g"}, "describe group g", "describe --group g"),
        ("cluster elect", CLUSTER, {}, "alter the cluster", "alter --cluster"),
        ("quota list", CLUSTER, {}, "describe-configs the cluster", "describe-configs --cluster"),
    ],
)
def test_the_missing_right_is_named_with_the_command_that_grants_it(
    command: str, code: int, given: dict[str, Any], text: str, grant: str
) -> None:
    right = missing_right(command, code, given)
    assert right is not None
    assert str(right) == text
    step = right.how_to_grant("User:alice")
    assert "`caudal acl allow User:alice " in step
    assert grant in step


def test_a_right_that_is_not_known_is_not_guessed() -> None:
    assert missing_right("topic list", TOPIC, {}) is None
    assert missing_right("topic list", ErrorCode.SASL_AUTHENTICATION_FAILED, {}) is None


def test_a_principal_that_is_not_known_is_left_to_the_reader() -> None:
    right = missing_right("topic create", TOPIC, {"name": "t"})
    assert right is not None
    assert "User:NAME" in right.how_to_grant(None)
