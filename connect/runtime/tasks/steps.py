"""The pipeline of a sink as a text, from which another process can make it."""

from typing import Final

import msgspec

from connect.runtime.configuration.client_overrides import FAMILIES
from connect.runtime.models import TaskId
from connect.settings import ConnectSettings

_CONVERTERS: Final = ("key_converter", "value_converter", "header_converter")
_OVERRIDES: Final = tuple(f"{family}.override." for family in FAMILIES)


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """Placeholders are resolved: it contains secrets, and is never stored, shown or logged."""

    task: TaskId
    config: dict[str, str]
    """The connector's configuration, without overrides for Kafka clients."""
    settings: dict[str, str]
    """The worker's settings for converters."""
    secrets: dict[str, str]
    """Secrets and their placeholders, so that dead letters can conceal them."""

    def text(self) -> str:
        """Encode it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> "Steps":
        """Decode it; ValueError when the text is invalid."""
        return msgspec.json.decode(text, type=cls)


def steps_of(task: TaskId, settings: ConnectSettings, *, resolved: dict[str, str], secrets: dict[str, str]) -> Steps:
    """The pipeline of one task."""
    converters: dict[str, str] = {}
    for name in _CONVERTERS:
        key = name.replace("_", ".")
        converters[key] = getattr(settings, name)
        converters |= {f"{key}.{option}": text for option, text in getattr(settings, f"{name}_properties")}
    return Steps(
        task=task,
        config={key: text for key, text in resolved.items() if not key.startswith(_OVERRIDES)},
        settings=converters,
        secrets=secrets,
    )
