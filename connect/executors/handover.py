"""Settings as text, so that another process can read the very same ones."""

from core_broker.service.settings import Properties, Settings


def text_of(settings: Settings) -> dict[str, str]:
    """What was set, under the keys of a properties file; `parse` makes equal settings of it."""
    values: dict[str, str] = {}
    for key in settings.set:
        definition = settings.DEFINITIONS[key]
        if definition.prefix:
            values.update(_members(definition.prefix, getattr(settings, definition.name)))
        elif (text := settings.text_of(key)) is not None:
            values[key] = text
    return values


def _members(prefix: str, properties: Properties) -> dict[str, str]:
    return {f"{prefix}{name}": value for name, value in properties}
