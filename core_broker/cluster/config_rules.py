"""How configs change: from what is set and what is asked to what will be set, checked, without doing it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from core_broker.cluster.effective_settings import EVERY_BROKER, broker_settings
from core_broker.cluster.metadata import ConfigResource, MetadataImage, ResourceType
from core_broker.cluster.topic_rules import check_topic_name
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
    """What IncrementalAlterConfigs may do to a key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One change of one key."""

    key: str
    operation: int = ConfigOperation.SET
    value: str | None = None


def plan_replacement(
    resource: ConfigResource, configs: Mapping[str, str | None], image: MetadataImage, settings: BrokerSettings
) -> list[ConfigRecord]:
    """The records of an AlterConfigs, which sets exactly what it names. Raises BrokerError."""
    _check_resource(resource, image)
    new: dict[str, str] = {}
    for key, value in configs.items():
        if value is None:
            raise _invalid(f"{key}: null is no value; leave the key out to go back to its default")
        new[key] = value
    return _records(resource, new, image, settings)


def plan_increment(
    resource: ConfigResource, changes: Sequence[ConfigChange], image: MetadataImage, settings: BrokerSettings
) -> list[ConfigRecord]:
    """The records of an IncrementalAlterConfigs. Raises BrokerError."""
    _check_resource(resource, image)
    keys = [change.key for change in changes]
    if len(set(keys)) != len(keys):
        raise _invalid(f"the same key is changed twice: {', '.join(sorted({k for k in keys if keys.count(k) > 1}))}")
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
            _check_broker(name, image)
        case ResourceType.BROKER_LOGGER:
            raise _invalid(f"broker logger {name!r}: levels of single loggers cannot be changed; set logging.level")
        case ResourceType.GROUP:
            if not name:
                raise _invalid("the name of a group must not be empty")
        case _:
            raise _invalid(f"resource type {kind} is not known; known are topics (2), brokers (4) and groups (32)")


def _check_broker(name: str, image: MetadataImage) -> None:
    if name == EVERY_BROKER or (name.isdecimal() and int(name) in image.brokers):
        return
    known = ", ".join(map(str, sorted(image.brokers)))
    raise _invalid(f"broker {name!r} is not known; known are {known}, and the empty name for all of them")


def _records(
    resource: ConfigResource, new: Mapping[str, str], image: MetadataImage, settings: BrokerSettings
) -> list[ConfigRecord]:
    """Check the new configs, and tell what differs from the old ones."""
    _check_configs(resource, new, image, settings)
    old = image.config_of(*resource)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    gone = dict.fromkeys(key for key in old if key not in new)
    return [
        ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=key, value=value)
        for key, value in {**changed, **gone}.items()
    ]


def _apply(new: dict[str, str], change: ConfigChange, resource: ConfigResource, broker: BrokerSettings) -> None:
    key, value = change.key, change.value
    if change.operation == ConfigOperation.DELETE:
        new.pop(key, None)
        return
    if value is None:
        raise _invalid(f"{key}: null is no value; use the operation DELETE to go back to the default")
    match change.operation:
        case ConfigOperation.SET:
            new[key] = value
        case ConfigOperation.APPEND:
            old = _list_value(new, change, resource, broker)
            new[key] = ",".join([*old, *(part for part in _split(value) if part not in old)])
        case ConfigOperation.SUBTRACT:
            old = _list_value(new, change, resource, broker)
            removed = _split(value)
            new[key] = ",".join(part for part in old if part not in removed)
        case operation:
            raise _invalid(
                f"{key}: operation {operation} is not known; known are 0 to 3 (set, delete, append, subtract)"
            )


def _list_value(
    configs: Mapping[str, str], change: ConfigChange, resource: ConfigResource, broker: BrokerSettings
) -> list[str]:
    """What a list holds now: what was set, or else its default."""
    kind = resource[0]
    is_broker = kind == ResourceType.BROKER
    definition = BrokerConfig.definition(change.key) if is_broker else _SETTINGS_OF[kind].DEFINITIONS.get(change.key)
    if definition is None or definition.kind.wire != LIST.wire:
        operation = ConfigOperation(change.operation).name
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f"{change.key}={change.value}: can't {operation}, the key is not a list"
        )
    if change.key in configs:
        return _split(configs[change.key])
    if kind == ResourceType.TOPIC:
        return _split(definition.text(TopicSettings.inherited(definition, broker)) or "")
    if definition.without_effect:
        return _split(definition.text(definition.default) or "")
    return _split(broker.text_of(change.key) or "")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _check_configs(
    resource: ConfigResource, new: Mapping[str, str], image: MetadataImage, settings: BrokerSettings
) -> None:
    """Raise BrokerError, naming key, value and what is allowed, unless the resource may be configured like this.

    As in Kafka, that is INVALID_REQUEST for brokers and INVALID_CONFIG for everything else (KAFKA-13609).
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
        _check_together(new, name, image, settings)


def _check_together(new: Mapping[str, str], name: str, image: MetadataImage, settings: BrokerSettings) -> None:
    """The settings of the broker as a whole, and what its topics inherit from it, must still make sense."""
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
