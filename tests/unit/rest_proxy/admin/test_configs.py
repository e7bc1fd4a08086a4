import pytest

from rest_proxy.admin import configs
from rest_proxy.admin.cluster import KafkaCluster
from rest_proxy.admin.configs import Change, find, set_value
from rest_proxy.errors import ProxyError

pytestmark = pytest.mark.processes


def test_config_without_a_value_cannot_be_set() -> None:
    assert set_value("retention.ms", "1") == Change(name="retention.ms", value="1")
    with pytest.raises(ProxyError, match="retention.ms") as raised:
        set_value("retention.ms", None)
    assert raised.value.code == 40002


def test_an_unknown_config_is_reported_with_its_owner(cluster: KafkaCluster, topic: str) -> None:
    cluster.describe()
    expected = f"Config foobar cannot be found for TOPIC {topic} in cluster {cluster.id}."
    with pytest.raises(ProxyError) as raised:
        configs.change_topic(cluster, topic, [set_value("foobar", "1")])
    assert (raised.value.code, raised.value.message) == (404, expected)


def test_config_named_twice_is_refused(cluster: KafkaCluster, topic: str) -> None:
    changes = [set_value("retention.ms", "1"), Change(name="retention.ms", value=None)]
    with pytest.raises(ProxyError, match="duplicate") as raised:
        configs.change_topic(cluster, topic, changes)
    assert raised.value.code == 40002


def test_topics_that_fail_do_not_stop_the_others(cluster: KafkaCluster, topic: str) -> None:
    wanted = {name: [set_value("retention.ms", "4711")] for name in (topic, f"{topic}-gone")}
    failed = configs.change_topics(cluster, wanted)
    assert {name: error.code for name, error in failed.items()} == {f"{topic}-gone": 40403}
    assert find(configs.of_topic(cluster, topic), "retention.ms").value == "4711"


def test_configs_of_all_topics_have_those_of_each(cluster: KafkaCluster, topic: str) -> None:
    assert configs.of_all_topics(cluster)[topic] == configs.of_topic(cluster, topic)
