"""Options that depend on other options: those of transforms, predicates, converters and groups of topics."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from connect.api.config import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    REQUIRED,
    SHORT,
    STRING,
    Check,
    Importance,
    Option,
    Problem,
    Width,
)
from connect.api.errors import ConfigError
from connect.runtime.configuration.config_infos import Section, section_of
from connect.runtime.configuration.plugins import Family, Plugins, name_of
from connect.settings import ConnectSettings

_FACTOR: Final = Check(accepts=lambda value: value == -1 or value >= 1, allowed="at least 1, or -1 for the default")
_PATTERNS: Final = Check(accepts=lambda values: all(map(_is_pattern, values)), allowed="valid regular expressions")
_CONVERTERS: Final = ("header.converter", "key.converter", "value.converter")


class Part(NamedTuple):
    """One plugin that the configuration names: its options, their values, and problems with the name itself."""

    key: str
    section: Section
    values: Mapping[str, str]
    problems: list[Problem]
    build: Callable[[], Iterable[Problem]]
    """Make the plugin and discard it: raises ConnectError when it does not accept these values."""


def stage_sections(config: Mapping[str, str], plugins: Plugins) -> Iterable[Part]:
    """The transforms, then the predicates, in the order of the configuration."""
    for alias in _names_in(config, "transforms"):
        yield from _stage("transforms", alias, config, plugins.transforms)
    for alias in _names_in(config, "predicates"):
        yield from _stage("predicates", alias, config, plugins.predicates)


def converter_sections(config: Mapping[str, str], plugins: Plugins) -> Iterable[Part]:
    """The converters that the connector names; those of the worker are the operator's responsibility."""
    for key in _CONVERTERS:
        if key in config:
            name = config[key].strip()
            family: Family[Any] = plugins.header_converters if key == "header.converter" else plugins.converters
            values = _below(config, f"{key}.")
            try:
                plugin = family.find(name)
            except ConfigError as error:
                empty = Section(options={})
                yield Part(key, empty, values, [_not_found(key, name, error)], tuple)
            else:
                section = section_of(plugin.config_class, prefix=f"{key}.")
                options = {} if key == "header.converter" else {"is_key": key == "key.converter"}
                yield Part(key, section, values, [], _builder(plugin, values, **options))


def topic_creation_section(config: Mapping[str, str], settings: ConnectSettings) -> Section | None:
    """The options for topics that a source creates; None when it creates none, or when its groups are invalid."""
    uses = any(key.startswith("topic.creation.") for key in config)
    given = [part for part in config.get("topic.creation.groups", "").split(",") if part.strip()]
    if not (uses and settings.topic_creation_enable) or len(given) > len(_names_in(config, "topic.creation.groups")):
        return None
    options = dict(_numbers("default", is_required=True))
    for group in _names_in(config, "topic.creation.groups"):
        for part in ("include", "exclude"):
            key = f"topic.creation.{group}.{part}"
            options[key] = _option(key, LIST, default=(), check=_PATTERNS, group=f"Topic Creation: {group}")
        options.update(_numbers(group, is_required=False))
    return Section(options=options, help_by_key={key: _CREATION_HELP[key.rpartition(".")[2]] for key in options})


def _stage(kind: str, alias: str, config: Mapping[str, str], family: Family[Any]) -> Iterable[Part]:
    prefix = f"{kind}.{alias}."
    group = f"{kind.capitalize()}: {alias}"
    key, values = f"{prefix}type", _below(config, prefix)
    known = tuple(name_of(plugin) for plugin in family.all())
    yield Part(key, _own_section(kind, alias, group, known), values, _reference_problems(kind, prefix, config), tuple)
    name = values.get("type", "").strip()
    if not name:
        return
    try:
        plugin = family.find(name)
    except ConfigError as error:
        yield Part(key, Section(options={}), values, [_not_found(key, name, error)], tuple)
        return
    own = {key: value for key, value in values.items() if key not in ("type", "predicate", "negate")}
    section = section_of(plugin.config_class, prefix=prefix, group=group, order=3 if kind == "transforms" else 1)
    yield Part(key, section, own, [], _builder(plugin, own))


def _own_section(kind: str, alias: str, group: str, known: tuple[str, ...]) -> Section:
    noun = "transformation" if kind == "transforms" else "predicate"
    title = f"{noun.capitalize()} type for {alias}"
    options = {"type": _option("type", CLASS, group=group, recommended=known, display_name=title, width=Width.LONG)}
    helps = {"type": f"Class for the '{alias}' {noun}."}
    if kind == "transforms":
        options["predicate"] = _option("predicate", STRING, default=None, group=group)
        options["negate"] = _option("negate", BOOLEAN, default=False, group=group)
        helps["predicate"] = "The alias of a predicate used to determine whether to apply this transformation."
        helps["negate"] = "Whether the configured predicate should be negated."
    return Section(options=options, help_by_key=helps, prefix=f"{kind}.{alias}.", group=group)


def _reference_problems(kind: str, prefix: str, config: Mapping[str, str]) -> list[Problem]:
    if kind != "transforms":
        return []
    negate, predicate = f"{prefix}negate", f"{prefix}predicate"
    if predicate not in config:
        start = f"Config '{negate}' was provided but there is no config '{predicate}'"
        return [Problem(negate, f"{start} defining a predicate to be negated.")] if negate in config else []
    named, known = config[predicate].strip(), _names_in(config, "predicates")
    if named in known:
        return []
    start = f"Invalid value {named} for configuration {predicate}"
    return [Problem(predicate, f"{start}: must be one of predicates={','.join(known)}")]


def _not_found(key: str, name: str, error: ConfigError) -> Problem:
    return Problem(key, f"Invalid value {name} for configuration {key}: Class {name} could not be found. {error}")


def _builder(plugin: Any, values: Mapping[str, str], **options: bool) -> Callable[[], Iterable[Problem]]:
    def build() -> Iterable[Problem]:
        config, wrong = plugin.config_class.read(values)
        if found := wrong or list(config.problems()):
            raise ConfigError("; ".join(problem.message for problem in found))
        plugin(values, **options).close()
        return ()

    return build


def _names_in(config: Mapping[str, str], key: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in config.get(key, "").split(",") if part.strip()))


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def _numbers(group: str, *, is_required: bool) -> Iterable[tuple[str, Option]]:
    for part, kind in (("replication.factor", SHORT), ("partitions", INT)):
        key, default = f"topic.creation.{group}.{part}", REQUIRED if is_required else None
        yield key, _option(key, kind, default=default, check=_FACTOR, group=f"Topic Creation: {group}")


def _option(key: str, kind: Any, *, default: Any = REQUIRED, group: str, **more: Any) -> Option:
    importance = Importance.HIGH if default is REQUIRED else Importance.MEDIUM
    return Option(name=key, key=key, kind=kind, default=default, group=group, importance=importance, **more)


_CREATION_HELP: Final[Mapping[str, str]] = {
    "include": "Regular expressions; topics whose whole name matches one of them belong to this group.",
    "exclude": "Regular expressions; topics whose whole name matches one of them do not belong to this group.",
    "factor": "The replication factor of the topics of this group; -1 for the cluster's default.",
    "partitions": "The number of partitions of the topics of this group; -1 for the cluster's default.",
}


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
