import pytest

from rest_proxy.admin import topics
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.admin.topics import NewTopic
from rest_proxy.errors import ProxyError

pytestmark = pytest.mark.processes


def test_numbers_of_a_created_topic_are_those_that_it_has(cluster: KafkaCluster, name: str) -> None:
    assert topics.create(cluster, NewTopic(name=name, partitions=3)) == (3, 1)
    assert len(topics.get(cluster, name).partitions) == 3


@pytest.mark.parametrize(
    ("new", "numbers"),
    [
        ({"partitions": 3, "replication_factor": 1}, (3, 1)),
        ({"partitions": 3}, (3, 1)),
        ({"replication_factor": 1}, (1, 1)),
        ({"assignment": {0: [1], 1: [1]}}, (2, 1)),
    ],
)
def test_numbers_of_a_topic_that_could_be_created_are_those_that_it_would_have(
    cluster: KafkaCluster, name: str, new: dict[str, int], numbers: tuple[int, int]
) -> None:
    assert topics.create(cluster, NewTopic(name=name, **new), validate_only=True) == numbers  # type: ignore[arg-type]  # by name
    assert name not in [topic.name for topic in topics.list_all(cluster)]


@pytest.mark.parametrize("assignment", [{1: [1]}, {0: [1], 2: [1]}])
def test_partitions_of_an_assignment_count_from_zero(
    cluster: KafkaCluster, name: str, assignment: dict[int, list[int]]
) -> None:
    with pytest.raises(ProxyError, match="0-based") as raised:
        topics.create(cluster, NewTopic(name=name, assignment=assignment))
    assert raised.value.code == 40002


def test_topic_that_is_gone_is_not_found(cluster: KafkaCluster, topic: str) -> None:
    topics.delete(cluster, topic)
    for call in (topics.get, topics.delete):
        with pytest.raises(ProxyError) as raised:
            call(cluster, topic)
        assert raised.value.code == 40403
