import pytest

from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, Rejected
from core_broker.client.settings import ClientSettings

SETTINGS = ClientSettings(timeout_ms=5000)


@pytest.mark.processes
def test_configs_of_the_whole_cluster_are_set_and_forgotten(cluster: ClientSettings) -> None:
    admin = Admin(cluster)
    admin.alter_cluster_configs(put={"log.cleaner.backoff.ms": "16000"}, validate_only=True)
    assert "log.cleaner.backoff.ms" not in [config.key for config in admin.cluster_configs()]
    admin.alter_cluster_configs(put={"log.cleaner.backoff.ms": "16000"})
    found = {config.key: (config.value, config.source) for config in admin.cluster_configs()}
    assert found["log.cleaner.backoff.ms"] == ("16000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    admin.alter_cluster_configs(put={}, remove=["log.cleaner.backoff.ms"])
    assert "log.cleaner.backoff.ms" not in [config.key for config in admin.cluster_configs()]


@pytest.mark.processes
@pytest.mark.parametrize(
    "put", [{"no.such.config": "1"}, {"log.retention.ms": "x"}, {"log.retention.ms": "9" * 40_000}]
)
def test_wrong_config_of_the_whole_cluster_is_refused(cluster: ClientSettings, put: dict[str, str]) -> None:
    with pytest.raises(Rejected):
        Admin(cluster).alter_cluster_configs(put=put)


@pytest.mark.processes
def test_configs_of_a_new_topic_are_those_that_it_gets(cluster: ClientSettings, name: str) -> None:
    admin = Admin(cluster)
    expected = {config.key: config.value for config in admin.new_topic_configs(name)}
    admin.create_topic(name)
    assert {config.key: config.value for config in admin.configs(name)} == expected
    with pytest.raises(AlreadyExists):
        admin.new_topic_configs(name)
