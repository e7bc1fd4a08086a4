"""Configurations of connectors as users write them: Kafka Connect's JSON, or a properties file."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

MAX_FILE_CHARACTERS = 4 << 20
_KNOWN = {"name", "config", "initial_state", "initial_offsets", "tasks", "type"}

ConfigFileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|-",
        help="JSON of Kafka Connect, or a .properties file; - reads JSON from stdin.",
        show_default=False,
    ),
]


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a connector in a file."""

    name: str | None
    config: dict[str, Any]
    initial_state: str | None = None
    initial_offsets: list[Any] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request that creates it."""
        begin = {"initial_state": self.initial_state, "initial_offsets": self.initial_offsets}
        return {"name": self.name, "config": self.config, **{k: v for k, v in begin.items() if v is not None}}


def read_configuration(file: str, *, name: str | None = None) -> Configuration:
    """The configuration in a file, or in stdin for `-`; `name` wins over the file's. Raises BadParameter."""
    from core_broker.service.properties import parse_properties

    text = read_text(file)
    try:
        if Path(file).suffix == ".properties":
            config: dict[str, Any] = dict(parse_properties(text))
            found = Configuration(name=_name_in(config), config=config)
        else:
            found = parse_configuration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{_called(file)}: {error}", param_hint="FILE") from None
    if name is None:
        return found
    renamed = {**found.config, "name": name} if "name" in found.config else found.config
    return msgspec.structs.replace(found, name=name, config=renamed)


def parse_configuration(text: str) -> Configuration:
    """Read `{"name": …, "config": {…}}` or a flat map of the configuration; the ValueError says what is wrong."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004 - the text is wrong, not a type
            'must be an object: {"name": …, "config": {…}}, or the configuration alone'
        )
    config = value.get("config")
    if isinstance(config, dict):
        return _parse_wrapped(value, config)
    if any(isinstance(item, (dict, list)) for item in value.values()):
        nested = next(key for key, item in value.items() if isinstance(item, (dict, list)))
        raise ValueError(f"{nested}: values of a configuration are text, numbers or booleans")
    return Configuration(name=_name_in(value), config=value)


def read_text(file: str) -> str:
    """The text of a file, or of stdin for `-`; raises BadParameter."""
    try:
        if file == "-":
            text = sys.stdin.read(MAX_FILE_CHARACTERS + 1)
        else:
            with Path(file).open(encoding="utf-8") as opened:
                text = opened.read(MAX_FILE_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{_called(file)} cannot be read: {error}", param_hint="FILE") from None
    if len(text) > MAX_FILE_CHARACTERS:
        raise typer.BadParameter(f"{_called(file)} is longer than {MAX_FILE_CHARACTERS} characters", param_hint="FILE")
    if not text.strip():
        raise typer.BadParameter(f"{_called(file)} is empty", param_hint="FILE")
    return text


def _parse_wrapped(value: dict[str, Any], config: dict[str, Any]) -> Configuration:
    unknown = sorted(value.keys() - _KNOWN)
    if unknown:
        raise ValueError(
            f"{unknown[0]} does not belong beside config; there may be name, initial_state, initial_offsets"
        )
    offsets, state = value.get("initial_offsets"), value.get("initial_state")
    if offsets is not None and not isinstance(offsets, list):
        raise ValueError("initial_offsets must be a list")
    return Configuration(
        name=_name_in(value) or _name_in(config),
        config=config,
        initial_state=None if state is None else str(state),
        initial_offsets=offsets,
    )


def _name_in(value: dict[str, Any]) -> str | None:
    name = value.get("name")
    return name if isinstance(name, str) and name.strip() else None


def _called(file: str) -> str:
    return "stdin" if file == "-" else file
