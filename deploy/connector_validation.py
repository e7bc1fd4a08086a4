"""What a worker has against a configuration, key by key."""

from collections.abc import Mapping
from typing import Any

import msgspec


class KeyErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the value of one key."""

    key: str
    value: str | None
    errors: list[str]


class Problems(msgspec.Struct, frozen=True, kw_only=True):
    """All that is wrong, and what is odd."""

    connector_class: str
    error_count: int
    errors: list[KeyErrors]
    warnings: list[dict[str, str]]


def problems(infos: Mapping[str, Any], *, given: Mapping[str, object]) -> Problems:
    """What an answer to `validate` holds against the configuration that was given."""
    errors = [
        KeyErrors(key=config["value"]["name"], value=_shown(config, given), errors=config["value"]["errors"])
        for config in infos["configs"]
        if config["value"]["errors"]
    ]
    return Problems(
        connector_class=infos["name"],
        error_count=infos["error_count"],
        errors=errors,
        warnings=list(infos.get("warnings") or []),  # Kafka's own workers tell none
    )


def print_problems(found: Problems, *, called: str) -> None:
    """A table of what is wrong, and a line for what is odd."""
    from rich.markup import escape

    from deploy.output import done, err, failure, plural, table

    if found.errors:
        rows = [
            (item.key, "–" if item.value is None else item.value, text) for item in found.errors for text in item.errors
        ]
        table("", ["Key", "Value", "What is wrong"], rows)
        failure(
            f"{called} cannot be created: {plural(len(rows), 'error')}",
            [f"see all keys:  [bold]caudal connector plugins {escape(found.connector_class.rpartition('.')[2])}[/]"],
        )
    else:
        done(f"the configuration of [bold]{escape(called)}[/] is right")
    for warning in found.warnings:
        err.print(f"[yellow]![/] {escape(warning['name'])}: {escape(warning['message'])}")


def _shown(config: Mapping[str, Any], given: Mapping[str, object]) -> str | None:
    """What was given for a key; workers leave out what cannot be read, and hide passwords."""
    key, told = config["value"]["name"], config["value"]["value"]
    if key not in given or told is not None:
        return told if key in given else None
    is_secret = (config.get("definition") or {}).get("type") == "PASSWORD"
    return "[hidden]" if is_secret else str(given[key])
