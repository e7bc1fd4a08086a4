"""What is done to the records of a sink, as a text that another process can work by."""

from typing import Final

import msgspec

from connect.runtime.configuration.client_overrides import FAMILIES
from connect.runtime.models import TaskId
from connect.settings import ConnectSettings

_CONVERTERS: Final = ("key_converter", "value_converter", "header_converter")
_OVERRIDES: Final = tuple(f"{family}.override." for family in FAMILIES)


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """Placeholders are filled in: it holds secrets, and is never stored, shown or logged."""

    task: TaskId
    config: dict[str, str]
    """The connector's, without what is for Kafka clients."""
    settings: dict[str, str]
    """The worker's, as far as they are about converters."""
    secrets: dict[str, str]
    """What stands in the place of which placeholder, so that letters can conceal it."""

    def text(self) -> str:
        """All of it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> "Steps":
        """The same again; ValueError when it is something else."""
        return msgspec.json.decode(text, type=cls)


def steps_of(task: TaskId, settings: ConnectSettings, *, resolved: dict[str, str], secrets: dict[str, str]) -> Steps:
    """What is done to the records of one task."""
    return Steps(
        task=task,
        config={key: text for key, text in resolved.items() if not key.startswith(_OVERRIDES)},
        settings=_converter_settings(settings),
        secrets=secrets,
    )


def _converter_settings(settings: ConnectSettings) -> dict[str, str]:
    given: dict[str, str] = {}
    for name in _CONVERTERS:
        key = name.replace("_", ".")
        given[key] = getattr(settings, name)
        given |= {f"{key}.{option}": text for option, text in getattr(settings, f"{name}_properties")}
    return given
