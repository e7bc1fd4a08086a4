import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.client.admin import Admin, known_offset
from core_broker.client.errors import ClientError, Rejected, Retriable, Unreachable
from core_broker.client.settings import ClientSettings
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.cluster import BrokerCluster

pytestmark = pytest.mark.processes


def test_topics_are_listed_with_their_partitions(cluster: ClientSettings, topic: str) -> None:
    assert Admin(cluster).topic_names()[topic] == 4


def test_silent_cluster_is_unreachable(nowhere: ClientSettings) -> None:
    with pytest.raises(Unreachable):
        Admin(nowhere).ping()


def test_no_partitions_need_no_request(nowhere: ClientSettings) -> None:
    assert Admin(nowhere).offsets([], "latest") == {}


def test_all_topics_are_told_in_one_listing(cluster: ClientSettings, topic: str) -> None:
    admin = Admin(cluster)
    (described,) = admin.topics([topic])
    (listed,) = (found for found in admin.all_topics() if found.name == topic)
    assert listed.partitions == described.partitions
    assert not listed.is_internal


def test_replicas_of_a_new_topic_can_be_chosen(cluster: ClientSettings, name: str) -> None:
    admin = Admin(cluster)
    broker_id = admin.cluster().brokers[0].id
    admin.create_topic(name, assignment=[[broker_id], [broker_id]])
    assert [partition.replicas for partition in admin.topics([name])[0].partitions] == [(broker_id,)] * 2


def test_a_topic_has_fewer_replicas_than_wanted_where_the_cluster_has_fewer_brokers(
    cluster: ClientSettings, name: str
) -> None:
    admin = Admin(cluster)
    admin.create_replicated_topic(name, partitions=2, replicas_wanted=3, configs={"cleanup.policy": "compact"})
    broker_ids = tuple(broker.id for broker in admin.cluster().brokers)
    assert [partition.replicas for partition in admin.topics([name])[0].partitions] == [broker_ids] * 2
    assert "compact" in {config.value for config in admin.configs(name) if config.key == "cleanup.policy"}
    with pytest.raises(Rejected, match="partitions"):
        admin.create_replicated_topic(f"{name}-none", partitions=0, replicas_wanted=3)


def test_authorized_operations_are_told_when_they_are_asked_for(cluster: ClientSettings, topic: str) -> None:
    admin = Admin(cluster)
    assert admin.topics([topic])[0].authorized_operations == ()
    assert "READ" in admin.topics([topic], authorized_operations=True)[0].authorized_operations


def test_configs_of_topics_that_are_gone_are_left_out(cluster: ClientSettings, topic: str) -> None:
    admin = Admin(cluster)
    found = admin.configs_of_topics([topic, f"{topic}-gone"])
    assert found == {topic: admin.configs(topic)}
    assert admin.configs_of_topics([]) == {}


def test_dry_run_changes_no_config(cluster: ClientSettings, topic: str) -> None:
    admin = Admin(cluster)
    admin.alter_configs(topic, put={"cleanup.policy": "compact"}, validate_only=True)
    before = {config.key: config.value for config in admin.configs(topic)}
    assert before["cleanup.policy"] == "delete"
    with pytest.raises(Rejected):
        admin.alter_configs(topic, put={"cleanup.policy": "wrong"}, validate_only=True)


def test_config_of_one_broker_is_set_and_returns(cluster: ClientSettings) -> None:
    admin = Admin(cluster)
    broker_id = admin.cluster().brokers[0].id

    def there() -> tuple[str | None, str]:
        configs = {config.key: config for config in admin.configs_of_brokers([broker_id])[broker_id]}
        return configs["log.cleaner.delete.retention.ms"].value, configs["log.cleaner.delete.retention.ms"].source

    before = there()
    admin.alter_broker_configs(broker_id, put={"log.cleaner.delete.retention.ms": "4711"})
    assert there() == ("4711", "DYNAMIC_BROKER_CONFIG")
    admin.alter_broker_configs(broker_id, put={}, remove=["log.cleaner.delete.retention.ms"])
    assert there() == before


@pytest.mark.parametrize("call", [Admin.cluster, Admin.all_topics, lambda admin: admin.topics(["any"])])
def test_wait_ends_when_the_one_who_watches_says_so(call: Callable[[Admin], object]) -> None:
    def watch() -> None:
        raise Unreachable("seen by the one who watches")

    patient = ClientSettings(bootstrap_servers="127.0.0.1:1", timeout_ms=600_000, properties={"log_level": "0"})
    with pytest.raises(Unreachable, match="seen by the one who watches"):
        call(Admin(patient, watch=watch))


def test_a_cluster_that_was_asked_in_vain_answers_once_it_is_back(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as own:
        settings = ClientSettings(bootstrap_servers=own.bootstrap, timeout_ms=500, properties={"log_level": "2"})
        admin = Admin(settings)
        create_topic(own, "asked")
        place = ("asked", 0)
        calls: list[Callable[[], object]] = [
            lambda: admin.group("nobody").state,
            lambda: admin.group_offsets("nobody"),
            lambda: admin.offsets([place], "latest"),
            lambda: admin.committed_ends([place]),
        ]

        def again() -> list[object]:
            try:
                return [call() for call in calls]
            except Unreachable:  # A slow machine does not answer in time, either.
                return []

        before = eventually(again)
        own.kill()
        for call in calls:
            with pytest.raises(ClientError):
                call()
        own.start()
        assert eventually(again) == before


def test_an_offset_that_the_library_made_up_for_a_lost_broker_is_none() -> None:
    with pytest.raises(Retriable):
        known_offset(-1001)
    assert known_offset(-1) == -1, "a time after all records"


def test_questions_are_answered_while_the_controller_stands_still(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path) as brokers:
        admin = Admin(
            ClientSettings(bootstrap_servers=brokers.bootstrap, timeout_ms=30_000, properties={"log_level": "0"})
        )
        admin.create_topic("t", partitions=1)
        controller = brokers[admin.cluster().controller_id]
        os.kill(controller.pid, signal.SIGSTOP)
        try:
            assert admin.cluster().controller_id != controller.node_id
            assert "t" in admin.topic_names()
            admin.create_topic("u", partitions=1)
            assert set(admin.configs_of_topics(["t", "u"])) == {"t", "u"}
            assert admin.offsets([("t", 0)], "latest") == {("t", 0): 0}
            admin.set_group_offsets("g", {("t", 0): 0})
            assert admin.group_offsets("g") == {("t", 0): 0}
        finally:
            os.kill(controller.pid, signal.SIGCONT)
