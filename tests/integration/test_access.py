"""Every right of every API, on the wire: granted alone it is enough, and without it nothing is shown.

The same requests go to Apache Kafka with its StandardAuthorizer if KAFKA_JARS names a folder with its jars, so that
the expectations are Kafka's and not ours.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing

import pytest

from core_broker.handlers.access_table import BROKER_ROWS, CONTROLLER_ROWS, Row
from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.security.operations import Operation, ResourceType
from tests.support.access_walk import (
    BROKER_CASES,
    CONTROLLER_CASES,
    EXISTING,
    MISSING,
    Case,
    Rule,
    Walk,
    named,
    refusals,
    without,
)
from tests.support.cluster import ClusterNode
from tests.support.kafka import KAFKA_JARS, SMALL_JAVA, KafkaNode

pytestmark = pytest.mark.timeout(300)

ELSEWHERE = {
    2: {(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)},  # decides what is seen: tests/unit, test_list_offsets
    11: {(Operation.DESCRIBE, ResourceType.TOPIC)},  # filters expressions of others: tests/unit, test_join_group
    19: {(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)},
    20: {(Operation.DESCRIBE, ResourceType.TOPIC)},
    # Tokens are only for clients that have logged in: tests/unit, test_create_delegation_token
    38: {(Operation.CREATE_TOKENS, ResourceType.USER)},
    41: {(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN), (Operation.DESCRIBE_TOKENS, ResourceType.USER)},
}
"""Rights that refuse nothing when they are missing; they have tests of their own."""
CASES = [pytest.param(case, id=case.title) for case in (*BROKER_CASES, *CONTROLLER_CASES)]
_SECURITY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until the administrator has made rules, so that it may make them.
    "allow.everyone.if.no.acl.found": "true",
    "group.consumer.session.timeout.ms": "60000",
}


@pytest.fixture(
    scope="module",
    params=[
        "caudal",
        pytest.param(
            "kafka", marks=pytest.mark.skipif(KAFKA_JARS is None, reason="KAFKA_JARS names no folder of jars")
        ),
    ],
)
def walk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    directory = tmp_path_factory.mktemp("access")
    node: ClusterNode | KafkaNode
    if request.param == "caudal":
        node = ClusterNode(directory, node_id=1, settings=_SECURITY)
    else:
        node = KafkaNode(directory, settings=_SECURITY, java_options=SMALL_JAVA)
    with node, closing(Walk(node)) as walk:
        walk.prepare()
        yield walk


@pytest.mark.parametrize("case", CASES)
def test_a_request_needs_each_of_its_rights_and_no_other(walk: Walk, case: Case) -> None:
    for missing in case.rules:
        others = [rule for rule in case.rules if rule is not missing]
        walk.allow(named(others, EXISTING, without(EXISTING, missing)))
        body = walk.ask(case, EXISTING)
        expected = set() if missing.refused is None else {missing.refused}
        assert refusals(case, body) == expected, f"without {missing}"
        for name in case.shows:
            assert name.encode() not in body
        if missing.refused is not None:
            # What is refused looks the same whether it exists or not.
            other = walk.ask(case, without(EXISTING, missing))
            assert walk.content(case, body) == walk.content(case, other), f"without {missing}"
    names = MISSING if case.uses_missing else EXISTING
    walk.allow(named(case.rules, names))
    body = walk.ask(case, names)
    assert refusals(case, body) == set()
    for name in case.shows:
        assert name.encode() in body


def test_a_regular_expression_finds_only_topics_that_the_client_may_describe(walk: Walk) -> None:
    in_group = Rule(Operation.READ, ResourceType.GROUP, "", None)
    on_topic = Rule(Operation.DESCRIBE, ResourceType.TOPIC, "", None)
    walk.allow([(in_group, "found"), (on_topic, "orders")])
    assert walk.topics_of_expression("found", ".*") == {"orders"}


def test_the_walk_takes_every_right_of_the_table() -> None:
    walked: defaultdict[tuple[bool, int], set[tuple[Operation, ResourceType]]] = defaultdict(set)
    for case in (*BROKER_CASES, *CONTROLLER_CASES):
        walked[case.is_for_controller, case.key] |= {(rule.operation, rule.kind) for rule in case.rules}
    for key in BROKER_BY_KEY:
        assert walked[False, key] | ELSEWHERE.get(key, set()) == _rights(BROKER_ROWS[key]), BROKER_ROWS[key].name
    for key in CONTROLLER_BY_KEY:
        if CONTROLLER_ROWS[key] is not BROKER_ROWS.get(key):
            assert walked[True, key] == _rights(CONTROLLER_ROWS[key]), CONTROLLER_ROWS[key].name


def _rights(row: Row) -> set[tuple[Operation, ResourceType]]:
    return {(check.operation, check.kind) for need in row.needs for check in need.any_of}
