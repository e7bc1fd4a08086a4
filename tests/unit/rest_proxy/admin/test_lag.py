import pytest

from core_broker.client.models import Group, Member
from rest_proxy.admin import lag
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.resources import Links

LINKS = Links(base="http://proxy", cluster_id="c-1")
ONE = Member(member_id="m-1", client_id="one", host="/h", instance_id="", partitions=(("t", 0), ("t", 3)))
TWO = Member(member_id="m-2", client_id="two", host="/h", instance_id="till", partitions=(("t", 1),))
GROUP = Group(group_id="g", state="stable", kind="classic", assignor="range", coordinator=None, members=(ONE, TWO))


def test_lag_is_what_lies_between_commit_and_end() -> None:
    (measured,) = lag.measure(GROUP, {("t", 0): 5}, {("t", 0): 12})
    assert (measured.committed, measured.end, measured.lag, measured.reader) == (5, 12, 7, ONE)


def test_greatest_lag_comes_first_then_names_and_numbers() -> None:
    committed = {("u", 0): 1, ("t", 10): 1, ("t", 2): 1, ("t", 1): 1}
    measured = lag.measure(GROUP, committed, {("u", 0): 9, ("t", 10): 4, ("t", 2): 4, ("t", 1): 1})
    assert [(one.topic, one.partition, one.lag) for one in measured] == [
        ("u", 0, 8),
        ("t", 2, 3),
        ("t", 10, 3),
        ("t", 1, 0),
    ]


def test_partition_that_is_gone_has_no_lag() -> None:
    assert lag.measure(GROUP, {("gone", 0): 5}, {}) == []


def test_group_is_never_ahead_of_a_partition() -> None:
    (measured,) = lag.measure(GROUP, {("t", 0): 12}, {("t", 0): 5})
    assert measured.lag == 0


def test_a_partition_without_a_reader_has_lag_all_the_same() -> None:
    measured = lag.measure(GROUP, {("t", 2): 1}, {("t", 2): 2})
    result = lag.summary_data(GROUP, measured, LINKS)
    assert (result.max_lag_consumer_id, result.max_lag_client_id, result.max_lag_instance_id) == ("", "", None)
    assert (result.max_lag, result.total_lag) == (1, 1)


def test_summary_tells_who_is_the_farthest_behind() -> None:
    committed = {("t", 0): 0, ("t", 1): 0, ("t", 3): 0}
    result = lag.summary_data(GROUP, lag.measure(GROUP, committed, {("t", 0): 3, ("t", 1): 9, ("t", 3): 5}), LINKS)
    assert (result.max_lag, result.total_lag, result.max_lag_topic_name, result.max_lag_partition_id) == (9, 17, "t", 1)
    assert (result.max_lag_consumer_id, result.max_lag_client_id, result.max_lag_instance_id) == ("m-2", "two", "till")
    assert result.max_lag_consumer.related == "http://proxy/v3/clusters/c-1/consumer-groups/g/consumers/m-2"
    assert result.metadata.resource_name == "crn:///kafka=c-1/consumer-group=g/lag-summary"


def test_partition_without_commits_is_not_found() -> None:
    measured = lag.measure(GROUP, {("t", 0): 0}, {("t", 0): 0})
    assert lag.of_partition(measured, "t", 0) is measured[0]
    for topic, partition in [("t", 1), ("u", 0)]:
        with pytest.raises(ProxyError) as missing:
            lag.of_partition(measured, topic, partition)
        assert missing.value.code == 404
