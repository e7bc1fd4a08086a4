"""What the shell offers when Tab is pressed: names that the cluster, the registry and the worker know just now.

Asked where the options or the environment of the half-typed command say. Whatever goes wrong, or takes longer than
somebody waits for a Tab, offers nothing: a message would end up in the middle of the line that is being typed.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from core_broker.client.admin import Admin
    from core_broker.service.settings import Settings

TIMEOUT_VARIABLE: Final = "CAUDAL_COMPLETION_TIMEOUT"
_TIMEOUT_S: Final = 1.0
_INTERNAL: Final = "__"
"""How the names of topics begin that people seldom mean."""


def topics(context: typer.Context, incomplete: str) -> list[str]:
    """Topics of the cluster."""
    return within(lambda: _topics(context, incomplete))


def groups(context: typer.Context) -> list[str]:
    """Consumer groups of the cluster."""
    return within(lambda: [group.group_id for group in _admin(context).groups()])


def subjects(context: typer.Context) -> list[str]:
    """Subjects of the registry."""
    return within(lambda: _subjects(context))


def connectors(context: typer.Context) -> list[str]:
    """Connectors of the worker."""
    return within(lambda: _connectors(context))


def plugins(context: typer.Context) -> list[str]:
    """Connectors that the worker can run, by the last part of their class."""
    return within(lambda: _plugins(context))


def services() -> list[tuple[str, str]]:
    """Services of the platform, and what they are for."""
    from deploy.stack import STACK

    return [(service.name, service.purpose) for service in STACK]


def logs() -> list[tuple[str, str]]:
    """What of a platform has a log."""
    return [("launcher", "starts, deaths, restarts"), *services(), ("spark", "what fills tables from topics")]


def topic_configs(incomplete: str) -> list[str]:
    """Configs of topics, as the beginning of an assignment."""
    from core_broker.settings import TopicSettings

    return [] if "=" in incomplete else [f"{key}=" for key in _keys(TopicSettings)]


def topic_config_names() -> list[str]:
    """Configs of topics."""
    from core_broker.settings import TopicSettings

    return list(_keys(TopicSettings))


def settings(context: typer.Context, incomplete: str) -> list[str]:
    """Settings of the service whose command this is, as the beginning of an assignment."""
    if "=" in incomplete:
        return []
    return within(lambda: [f"{key}=" for key in _keys(_of_command(context.info_name or ""))])


def levels() -> list[tuple[str, str]]:
    """Compatibility levels, and what they mean."""
    from deploy.schema_judgement import MEANINGS

    return [(level, meaning.partition(";")[0]) for level, meaning in MEANINGS.items()]  # help of one line


def within(ask: Callable[[], Iterable[str]]) -> list[str]:
    """What is known in time; nothing when asking fails."""
    known: list[str] = []

    def run() -> None:
        with suppress(Exception):
            known.extend(ask())

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(_timeout_s())
    return list(known)


def _timeout_s() -> float:
    """How long somebody waits for a Tab."""
    try:
        return max(0.01, float(os.environ[TIMEOUT_VARIABLE]))
    except (KeyError, ValueError):
        return _TIMEOUT_S


def _topics(context: typer.Context, incomplete: str) -> list[str]:
    names = sorted(_admin(context).topic_names())
    return [name for name in names if incomplete.startswith("_") or not name.startswith(_INTERNAL)]


def _subjects(context: typer.Context) -> list[str]:
    from deploy.registry_options import registry_client

    given = context.params
    properties = _several(given.get("properties"))
    with registry_client(
        given["registry"], given.get("user"), properties, given.get("client_config"), _timeout_s()
    ) as client:
        return client.subjects()


def _connectors(context: typer.Context) -> list[str]:
    from deploy.connect_client import ConnectClient

    with ConnectClient(context.params["connect"], timeout_seconds=_timeout_s()) as client:
        return sorted(client.connectors())


def _plugins(context: typer.Context) -> list[str]:
    from deploy.connect_client import ConnectClient

    with ConnectClient(context.params["connect"], timeout_seconds=_timeout_s()) as client:
        found = client.plugins(connectors_only=True)
    return sorted({str(plugin["class"]).rpartition(".")[2] for plugin in found})


def _admin(context: typer.Context) -> "Admin":
    from core_broker.client.admin import Admin
    from deploy.options import client_settings

    given = context.params
    properties = _several(given.get("properties"))
    return Admin(client_settings(given["bootstrap"], properties, given.get("client_config"), _timeout_s()))


def _several(given: Iterable[str] | None) -> list[str] | None:
    return list(given) if given else None


def _of_command(command: str) -> "type[Settings]":
    from deploy.services import SERVICES, settings_type
    from streams.settings import SparkSettings

    return settings_type(command) if command in SERVICES else SparkSettings


def _keys(chosen: "type[Settings]") -> Iterator[str]:
    for key, definition in sorted(chosen.DEFINITIONS.items()):
        if not (definition.is_internal or definition.prefix):
            yield key
