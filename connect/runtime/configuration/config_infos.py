"""Options as the REST API shows them: the definition of each key, its value, and the errors in it.

The messages are Kafka's to the letter, because scripts and user interfaces look for them.
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
    """The definition of a key."""

    name: Annotated[str, Meta(description="The key.", examples=["tasks.max"])]
    type: Annotated[str, Meta(description="BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS or PASSWORD.")]
    required: Annotated[bool, Meta(description="Whether it must be set.")]
    default_value: Annotated[str | None, Meta(description="The value if it is not set.")]
    importance: Annotated[str, Meta(description="HIGH, MEDIUM or LOW.")]
    documentation: Annotated[str, Meta(description="What it is for.")]
    group: Annotated[str | None, Meta(description="The group it belongs to.")]
    order: Annotated[int, Meta(description="Its position in the group.")]
    width: Annotated[str, Meta(description="How wide a field in a form should be: NONE, SHORT, MEDIUM or LONG.")]
    display_name: Annotated[str, Meta(description="Its name in a form.")]
    dependents: Annotated[tuple[str, ...], Meta(description="Keys whose meaning depends on this one.")] = ()


class ValueInfo(msgspec.Struct, kw_only=True):
    """The value of a key, or its default, and the errors in it."""

    name: Annotated[str, Meta(description="The key.")]
    value: Annotated[str | None, Meta(description="The value, or the default; passwords are hidden.")] = None
    recommended_values: Annotated[list[str], Meta(description="Values to choose from.")] = []
    errors: Annotated[list[str], Meta(description="The errors.")] = []
    visible: Annotated[bool, Meta(description="Whether a form should show it.")] = True


class ConfigInfo(msgspec.Struct, kw_only=True):
    """A key; without a definition when it is unknown."""

    definition: Annotated[KeyInfo | None, Meta(description="Its definition; null when the key is unknown.")] = None
    value: Annotated[ValueInfo, Meta(description="Its value.")]


class ConfigWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something that works, but probably not as intended."""

    name: Annotated[str, Meta(description="The key.")]
    message: Annotated[str, Meta(description="The reason for the warning.")]


class ConfigInfos(msgspec.Struct, frozen=True, kw_only=True):
    """The result of validating a configuration."""

    name: Annotated[str, Meta(description="The connector's class.")]
    error_count: Annotated[int, Meta(description="The number of errors.")]
    groups: Annotated[list[str], Meta(description="The groups of keys, in order.")]
    configs: Annotated[list[ConfigInfo], Meta(description="The keys.")]
    warnings: Annotated[list[ConfigWarning], Meta(description="Warnings, about unknown keys for instance.")] = []


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one owner: the framework, the connector, a transform, ..."""

    options: Mapping[str, Option]
    help_by_key: Mapping[str, str] = {}
    prefix: str = ""
    group: str | None = None
    """Replaces the groups of the options."""
    order: int = 0
    """The number of keys of that group in earlier sections."""


def section_of(config_class: type[Config], *, prefix: str = "", group: str | None = None, order: int = 0) -> Section:
    """The options of a class."""
    helps = {key: config_class.help_of(key) for key in config_class.OPTIONS}
    return Section(options=config_class.OPTIONS, help_by_key=helps, prefix=prefix, group=group, order=order)


def definitions(section: Section) -> list[KeyInfo]:
    """The definitions of a section's keys."""
    orders: dict[str, int] = {section.group: section.order} if section.group else {}
    found = []
    for key, option in section.options.items():
        group = section.group or option.group or None
        if group:
            orders[group] = orders.get(group, 0) + 1
        info = KeyInfo(
            name=section.prefix + key,
            type=option.kind.name.upper(),
            required=option.is_required,
            default_value=_default_text(option),
            importance=option.importance.value,
            documentation=section.help_by_key.get(key, ""),
            group=group,
            order=orders[group] if group else -1,
            width=option.width.value,
            display_name=option.display_name or key,
            dependents=tuple(section.prefix + dependent for dependent in option.dependents),
        )
        found.append(info)
    return found


def check_section(section: Section, values: Mapping[str, str]) -> list[ConfigInfo]:
    """The keys of a section with their values and errors; `values` are without the section's prefix."""
    infos = []
    for definition, option in zip(definitions(section), section.options.values(), strict=True):
        text = next((values[key] for key in (option.key, *option.aliases) if values.get(key) is not None), None)
        value = ValueInfo(name=definition.name, recommended_values=list(option.recommended))
        if text is not None:
            parsed, value.errors = _read(option, text, name=definition.name)
            if parsed is not None:
                value.value = HIDDEN if option.is_secret else option.kind.write(parsed)
        else:
            value.value = _default_text(option)
            if option.is_required:
                value.errors = [f'Missing required configuration "{definition.name}" which has no default value.']
        infos.append(ConfigInfo(definition=definition, value=value))
    return infos


def groups_of(infos: Iterable[ConfigInfo]) -> list[str]:
    """The groups in order of appearance."""
    groups = (info.definition.group for info in infos if info.definition)
    return list(dict.fromkeys(group for group in groups if group))


def _default_text(option: Option) -> str | None:
    return HIDDEN if option.is_secret and option.default_text else option.default_text


def _read(option: Option, text: str, *, name: str) -> tuple[Any, list[str]]:
    shown = HIDDEN if option.is_secret else text
    start = f"Invalid value {shown} for configuration {name}: "
    try:
        value = option.kind.read(text.strip())
    except ValueError as error:
        reason = str(error) or f"must be {option.kind.allowed}"
        if option.kind.name == "boolean":
            reason = "Expected value to be either true or false"
        elif option.kind.name in _NUMBERS:
            reason = f"Not a number of type {option.kind.name.upper()}"
        errors = [start + reason]
        if option.check and option.kind.name in _NUMBERS:
            # Kafka also checks the range of a value that it could not read; scripts expect this pair of lines.
            errors.append(f"Invalid value null for configuration {name}: Value must be non-null")
        return None, errors
    if value is not None and option.check and not option.check.accepts(value):
        return value, [start + _refusal(option, value)]
    return value, []


def _refusal(option: Option, value: Any) -> str:
    allowed = option.check.allowed if option.check else ""
    if option.kind.name in _NUMBERS:
        if limits := _RANGE.fullmatch(allowed):
            is_low = value < float(limits[1])
            return f"Value must be at least {limits[1]}" if is_low else f"Value must be no more than {limits[2]}"
        return f"Value must be {allowed}"
    if allowed.startswith("one of "):
        return f"String must be one of: {allowed.removeprefix('one of ')}"
    if allowed == "not empty":
        return "String may not be empty" if option.key == "name" else "String must be non-empty"
    return f"Value must be {allowed}"
