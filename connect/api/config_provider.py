"""The base class of config providers: `${name:path:key}` asks the provider of that name for a value."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar


class ConfigProvider(ABC):
    """Looks up values, such as secrets, that do not belong in a configuration. Called from any thread."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in `config.providers.<name>.class`, Kafka's class name first."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds the keys below `config.providers.<name>.param.`, without that prefix; raises ConfigError."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of these keys, without those that do not exist; ConfigError when the path cannot be read."""

    def close(self) -> None:
        """Release everything; called once."""
