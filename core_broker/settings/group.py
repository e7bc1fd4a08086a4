"""Settings of one group (KIP-848), changed through the GROUP config resource."""

from collections.abc import Mapping
from typing import Self

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.settings import INT, Settings, SettingsError, at_least, setting
from core_broker.settings.broker import BrokerSettings


class GroupSettings(Settings):
    """Time-outs of one group of the consumer protocol."""

    consumer_session_timeout_ms: int = setting(
        INT, default=45_000, check=at_least(1), synonyms=("group.consumer.session.timeout.ms",), dynamic=True
    )
    """A member without a heartbeat for this long is removed from the group."""
    consumer_heartbeat_interval_ms: int = setting(
        INT, default=5000, check=at_least(1), synonyms=("group.consumer.heartbeat.interval.ms",), dynamic=True
    )
    """Heartbeat interval of the members."""

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerSettings) -> Self:
        """The settings of a group with these overrides; raises BrokerError INVALID_CONFIG."""
        try:
            chosen = cls.parse(overrides)
        except SettingsError as error:
            raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None
        session = (broker.group_consumer_min_session_timeout_ms, broker.group_consumer_max_session_timeout_ms)
        _check_bounds(chosen, "consumer.session.timeout.ms", *session)
        heartbeat = (broker.group_consumer_min_heartbeat_interval_ms, broker.group_consumer_max_heartbeat_interval_ms)
        _check_bounds(chosen, "consumer.heartbeat.interval.ms", *heartbeat)
        inherited = {
            definition.name: getattr(broker, definition.synonyms[0].replace(".", "_"))
            for definition in cls.DEFINITIONS.values()
        }
        given = {cls.DEFINITIONS[key].name: getattr(chosen, cls.DEFINITIONS[key].name) for key in chosen.set}
        return cls(**{**inherited, **given})


def _check_bounds(group: GroupSettings, key: str, low: int, high: int) -> None:
    value: int = getattr(group, key.replace(".", "_"))
    if group.is_set(key) and not low <= value <= high:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"{key}={value}: must be between {low} and {high}")
