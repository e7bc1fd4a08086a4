"""How providers of values for configurations are written: `${name:path:key}` asks the provider of that name."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar


class ConfigProvider(ABC):
    """Looks up values, secrets for instance, that must not stand in a configuration. Called from any thread."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names in `config.providers.<name>.class`, Kafka's class name first."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` holds what is below `config.providers.<name>.param.`, without that prefix; raises ConfigError."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of these keys; those that do not exist are left out. ConfigError when the path cannot be read."""

    def close(self) -> None:
        """Leave nothing open."""
