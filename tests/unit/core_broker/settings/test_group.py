import pytest

from core_broker.errors import BrokerError
from core_broker.settings import BrokerSettings, GroupSettings


def test_group_inherits_the_brokers_time_outs() -> None:
    broker = BrokerSettings(group_consumer_session_timeout_ms=50_000)
    settings = GroupSettings.resolve({"consumer.heartbeat.interval.ms": "6000"}, broker)
    assert (settings.consumer_session_timeout_ms, settings.consumer_heartbeat_interval_ms) == (50_000, 6000)


def test_group_override_outside_the_brokers_limits_is_refused() -> None:
    with pytest.raises(BrokerError, match="consumer.session.timeout.ms=1000: must be between 45000 and 60000"):
        GroupSettings.resolve({"consumer.session.timeout.ms": "1000"}, BrokerSettings())
