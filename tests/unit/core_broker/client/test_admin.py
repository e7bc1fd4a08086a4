import pytest

from core_broker.client.admin import Admin
from core_broker.client.errors import Unreachable
from core_broker.client.settings import ClientSettings


def test_topics_are_listed_with_their_partitions(cluster: ClientSettings, topic: str) -> None:
    assert Admin(cluster).topic_names()[topic] == 4


def test_silent_cluster_is_unreachable(nowhere: ClientSettings) -> None:
    with pytest.raises(Unreachable):
        Admin(nowhere).ping()


def test_no_partitions_need_no_request(nowhere: ClientSettings) -> None:
    assert Admin(nowhere).offsets([], "latest") == {}
