"""Plans config changes: checks a request against the current configs and returns the records that carry it out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from core_broker.cluster.controller.topic_rules import check_topic_name
from core_broker.cluster.controller.transitions import MIN_ISR
from core_broker.cluster.effective_settings import EVERY_BROKER, broker_settings
from core_broker.cluster.features import ELR_FEATURE
from core_broker.cluster.metadata import ConfigResource, MetadataImage, ResourceType
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.stored.metadata import ConfigRecord
from core_broker.service.settings import LIST, Settings, SettingsError
from core_broker.settings import BrokerConfig, BrokerSettings, GroupSettings, TopicSettings

_SETTINGS_OF: Final[dict[int, type[Settings]]] = {
    ResourceType.TOPIC: TopicSettings,
    ResourceType.BROKER: BrokerSettings,
    ResourceType.GROUP: GroupSettings,
}


class ConfigOperation(IntEnum):
    """The operations of IncrementalAlterConfigs (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """A change of one key."""

    key: str
    operation: int = ConfigOperation.SET
    value: str | None = None


def plan_replacement(
    resource: ConfigResource, configs: Mapping[str, str | None], image: MetadataImage, settings: BrokerSettings
) -> list[ConfigRecord]:
    """The records of an AlterConfigs, which replaces all configs of a resource. Raises BrokerError."""
    _check_resource(resource, image)
    new: dict[str, str] = {}
    for key, value in configs.items():
        if value is None:
            raise _invalid(f"{key}: the value must not be null; leave out the key to reset it to its default")
        new[key] = value
    return _records(resource, new, image, settings)


def plan_increment(
    resource: ConfigResource, changes: Sequence[ConfigChange], image: MetadataImage, settings: BrokerSettings
) -> list[ConfigRecord]:
    """The records of an IncrementalAlterConfigs. Raises BrokerError."""
    _check_resource(resource, image)
    keys = [change.key for change in changes]
    if len(set(keys)) != len(keys):
        repeated = ", ".join(sorted({key for key in keys if keys.count(key) > 1}))
        raise _invalid(f"the request changes the same key twice: {repeated}")
    new = dict(image.config_of(*resource))
    for change in changes:
        _apply(new, change, resource, broker_settings(image, settings))
    return _records(resource, new, image, settings)


def _check_resource(resource: ConfigResource, image: MetadataImage) -> None:
    """Raise BrokerError unless the resource exists and can be configured."""
    kind, name = resource
    match kind:
        case ResourceType.TOPIC:
            check_topic_name(name)
            if name not in image.topics:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
        case ResourceType.BROKER:
            if name != EVERY_BROKER and not (name.isdecimal() and int(name) in image.brokers):
                known = ", ".join(map(str, sorted(image.brokers)))
                raise _invalid(f"broker {name!r} is unknown; use one of {known}, or the empty name for all brokers")
        case ResourceType.BROKER_LOGGER:
            raise _invalid(f"broker logger {name!r}: levels of individual loggers cannot be set; use logging.level")
        case ResourceType.GROUP:
            if not name:
                raise _invalid("the name of a group must not be empty")
        case _:
            raise _invalid(f"resource type {kind} is unknown; use topics (2), brokers (4) or groups (32)")


def _records(
    resource: ConfigResource, new: Mapping[str, str], image: MetadataImage, settings: BrokerSettings
) -> list[ConfigRecord]:
    """Check the new configs, and return the records for what differs from the old ones."""
    _check_configs(resource, new, image, settings)
    old = image.config_of(*resource)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    removed = dict.fromkeys(key for key in old if key not in new)
    if resource[0] == ResourceType.BROKER and image.features.get(ELR_FEATURE, 0):
        _check_min_isr(resource[1], {**changed, **removed})
    return [
        ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=key, value=value)
        for key, value in {**changed, **removed}.items()
    ]


def _check_min_isr(broker: str, changes: Mapping[str, str | None]) -> None:
    """Eligible leader replicas need one `min.insync.replicas` for the whole cluster, on record (KIP-966)."""
    if MIN_ISR not in changes:
        return
    if broker != EVERY_BROKER:
        raise _invalid(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
    if changes[MIN_ISR] is None:
        raise _invalid(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")


def _apply(new: dict[str, str], change: ConfigChange, resource: ConfigResource, broker: BrokerSettings) -> None:
    key, value = change.key, change.value
    if change.operation == ConfigOperation.DELETE:
        new.pop(key, None)
        return
    if value is None:
        raise _invalid(f"{key}: the value must not be null; use the operation DELETE to reset it to its default")
    match change.operation:
        case ConfigOperation.SET:
            new[key] = value
        case ConfigOperation.APPEND:
            old = _list_value(new, change, resource, broker)
            new[key] = ",".join([*old, *(part for part in _split_list(value) if part not in old)])
        case ConfigOperation.SUBTRACT:
            old = _list_value(new, change, resource, broker)
            removed = _split_list(value)
            new[key] = ",".join(part for part in old if part not in removed)
        case operation:
            raise _invalid(f"{key}: operation {operation} is unknown; use 0 to 3 (set, delete, append, subtract)")


def _list_value(
    configs: Mapping[str, str], change: ConfigChange, resource: ConfigResource, broker: BrokerSettings
) -> list[str]:
    """The current elements of a list: those that were set, or its default."""
    kind = resource[0]
    is_broker = kind == ResourceType.BROKER
    definition = BrokerConfig.definition(change.key) if is_broker else _SETTINGS_OF[kind].DEFINITIONS.get(change.key)
    if definition is None or definition.kind.wire != LIST.wire:
        operation = ConfigOperation(change.operation).name
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f"{change.key}={change.value}: can't {operation}, the key is not a list"
        )
    if change.key in configs:
        return _split_list(configs[change.key])
    if kind == ResourceType.TOPIC:
        return _split_list(definition.text(TopicSettings.inherited_value(definition, broker)) or "")
    if definition.without_effect:
        return _split_list(definition.text(definition.default) or "")
    return _split_list(broker.text_of(change.key) or "")


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _check_configs(
    resource: ConfigResource, new: Mapping[str, str], image: MetadataImage, settings: BrokerSettings
) -> None:
    """Raise a BrokerError that names the key, its value and what is allowed, unless the new configs are valid.

    As in Kafka, it is INVALID_REQUEST for brokers and INVALID_CONFIG for everything else (KAFKA-13609).
    """
    kind, name = resource
    if kind == ResourceType.TOPIC:
        TopicSettings.resolve_change(new, broker_settings(image, settings))
    elif kind == ResourceType.GROUP:
        GroupSettings.resolve(new, broker_settings(image, settings))
    elif kind == ResourceType.BROKER:
        old = image.config_of(kind, name)
        for key, value in new.items():
            if old.get(key) != value:
                BrokerConfig.check_dynamic(key, value, cluster_wide=name == EVERY_BROKER)
        # The settings of the broker as a whole, and the defaults that its topics inherit.
        cluster_wide = new if name == EVERY_BROKER else image.config_of(ResourceType.BROKER, EVERY_BROKER)
        own = image.config_of(ResourceType.BROKER, str(settings.node_id)) if name == EVERY_BROKER else new
        try:
            TopicSettings.resolve({}, BrokerConfig(static=settings, cluster_wide=cluster_wide, own=own).effective)
        except SettingsError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from None
        except BrokerError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, error.message) from None


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
