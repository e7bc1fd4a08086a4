"""Options as the REST API shows them: what a key means, what was given for it, and what is wrong with that.

The words are Kafka's, because scripts and user interfaces look for them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from connect.api.config import HIDDEN, Config, Option

_NUMBERS: Final = ("int", "short", "long", "double")
_RANGE: Final = re.compile(r"between (\S+) and (\S+)")


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a key means."""

    name: Annotated[str, Meta(description="The key.", examples=["tasks.max"])]
    type: Annotated[str, Meta(description="BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS or PASSWORD.")]
    required: Annotated[bool, Meta(description="Whether it must be given.")]
    default_value: Annotated[str | None, Meta(description="What holds when it is not given.")]
    importance: Annotated[str, Meta(description="HIGH, MEDIUM or LOW.")]
    documentation: Annotated[str, Meta(description="What it is for.")]
    group: Annotated[str | None, Meta(description="What it belongs to.")]
    order: Annotated[int, Meta(description="Its place in the group.")]
    width: Annotated[str, Meta(description="How wide a field in a form should be: NONE, SHORT, MEDIUM or LONG.")]
    display_name: Annotated[str, Meta(description="Its name in a form.")]
    dependents: Annotated[
        tuple[str, ...], Meta(description="Keys that mean something else when this one changes.")
    ] = ()


class ValueInfo(msgspec.Struct, kw_only=True):
    """What was given for a key, or its default, and what is wrong with it."""

    name: Annotated[str, Meta(description="The key.")]
    value: Annotated[str | None, Meta(description="What was given, or the default; passwords are hidden.")] = None
    recommended_values: Annotated[list[str], Meta(description="Values to choose from.")] = []
    errors: Annotated[list[str], Meta(description="What is wrong.")] = []
    visible: Annotated[bool, Meta(description="Whether a form should show it.")] = True


class ConfigInfo(msgspec.Struct, kw_only=True):
    """A key; without a definition when nobody knows it."""

    definition: Annotated[KeyInfo | None, Meta(description="What the key means; null when it is unknown.")] = None
    value: Annotated[ValueInfo, Meta(description="What was given.")]


class ConfigWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something that works, but probably not as it was meant."""

    name: Annotated[str, Meta(description="The key.")]
    message: Annotated[str, Meta(description="What is odd.")]


class ConfigInfos(msgspec.Struct, frozen=True, kw_only=True):
    """A whole configuration, checked."""

    name: Annotated[str, Meta(description="The connector's class.")]
    error_count: Annotated[int, Meta(description="How many things are wrong.")]
    groups: Annotated[list[str], Meta(description="The groups of keys, in their order.")]
    configs: Annotated[list[ConfigInfo], Meta(description="The keys.")]
    warnings: Annotated[list[ConfigWarning], Meta(description="What is odd: unknown keys, for instance.")] = []


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Options that belong together: those of the framework, of the connector, of one transform, ..."""

    options: Mapping[str, Option]
    help_by_key: Mapping[str, str] = {}
    prefix: str = ""
    group: str | None = None
    """Instead of the options' own groups."""
    order: int = 0
    """How many keys of that group come before."""


def section_of(config_class: type[Config], *, prefix: str = "", group: str | None = None, order: int = 0) -> Section:
    """The options of a class."""
    helps = {key: config_class.help_of(key) for key in config_class.OPTIONS}
    return Section(options=config_class.OPTIONS, help_by_key=helps, prefix=prefix, group=group, order=order)


def definitions(section: Section) -> list[KeyInfo]:
    """What the keys of a section mean."""
    orders: dict[str, int] = {section.group: section.order} if section.group else {}
    found = []
    for key, option in section.options.items():
        group = section.group or option.group or None
        if group:
            orders[group] = orders.get(group, 0) + 1
        found.append(_definition(option, section, key, group=group, order=orders[group] if group else -1))
    return found


def checked(section: Section, values: Mapping[str, str]) -> list[ConfigInfo]:
    """The keys of a section with what was given for them; `values` are without the section's prefix."""
    return [
        ConfigInfo(definition=definition, value=_value(option, values, name=definition.name))
        for definition, option in zip(definitions(section), section.options.values(), strict=True)
    ]


def groups_of(infos: Iterable[ConfigInfo]) -> list[str]:
    """The groups in the order in which they are met."""
    groups = (info.definition.group for info in infos if info.definition)
    return list(dict.fromkeys(group for group in groups if group))


def given_text(option: Option, values: Mapping[str, str]) -> str | None:
    """What was given for an option, under its key or another name of it."""
    return next((values[name] for name in (option.key, *option.aliases) if values.get(name) is not None), None)


def _definition(option: Option, section: Section, key: str, *, group: str | None, order: int) -> KeyInfo:
    return KeyInfo(
        name=section.prefix + key,
        type=option.kind.name.upper(),
        required=option.is_required,
        default_value=HIDDEN if option.is_secret and option.default_text else option.default_text,
        importance=option.importance.value,
        documentation=section.help_by_key.get(key, ""),
        group=group,
        order=order,
        width=option.width.value,
        display_name=option.display_name or key,
        dependents=tuple(section.prefix + dependent for dependent in option.dependents),
    )


def _value(option: Option, values: Mapping[str, str], *, name: str) -> ValueInfo:
    text = given_text(option, values)
    info = ValueInfo(name=name, recommended_values=list(option.recommended))
    if text is None:
        info.value = HIDDEN if option.is_secret and option.default_text else option.default_text
        if option.is_required:
            info.errors = [f'Missing required configuration "{name}" which has no default value.']
        return info
    parsed, info.errors = _read(option, text, name=name)
    if parsed is not None:
        info.value = HIDDEN if option.is_secret else option.kind.write(parsed)
    return info


def _read(option: Option, text: str, *, name: str) -> tuple[Any, list[str]]:
    shown = HIDDEN if option.is_secret else text
    start = f"Invalid value {shown} for configuration {name}: "
    try:
        value = option.kind.read(text.strip())
    except ValueError as error:
        told = [start + _unreadable(option, str(error))]
        if option.check and option.kind.name in _NUMBERS:
            # Kafka checks the range of what could not be read, too; scripts know this pair of lines.
            told.append(f"Invalid value null for configuration {name}: Value must be non-null")
        return None, told
    if value is not None and option.check and not option.check.accepts(value):
        return value, [start + _refusal(option, value)]
    return value, []


def _unreadable(option: Option, reason: str) -> str:
    if option.kind.name == "boolean":
        return "Expected value to be either true or false"
    if option.kind.name in _NUMBERS:
        return f"Not a number of type {option.kind.name.upper()}"
    return reason or f"must be {option.kind.allowed}"


def _refusal(option: Option, value: Any) -> str:
    allowed = option.check.allowed if option.check else ""
    if option.kind.name in _NUMBERS:
        if limits := _RANGE.fullmatch(allowed):
            return f"Value must be at least {limits[1]}" if value < float(limits[1]) else _at_most(limits[2])
        return f"Value must be {allowed}"
    if allowed.startswith("one of "):
        return f"String must be one of: {allowed.removeprefix('one of ')}"
    if allowed == "not empty":
        return "String may not be empty" if option.key == "name" else "String must be non-empty"
    return f"Value must be {allowed}"


def _at_most(limit: str) -> str:
    return f"Value must be no more than {limit}"
