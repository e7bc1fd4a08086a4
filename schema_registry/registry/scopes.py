"""Configs and modes: those set for a scope, and those in effect for a subject.

A subject inherits each key from its context, a context from the global one, and that from the settings. A config or
mode that is set without a subject belongs to the default context.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from schema_registry.compatibility.policy import Level, Policy
from schema_registry.errors import (
    RegistryError,
    invalid_level,
    invalid_mode,
    invalid_policy,
    invalid_schema,
    level_not_configured,
    mode_not_configured,
    not_permitted,
    subject_not_found,
)
from schema_registry.models import Config, ConfigUpdate, Metadata, ModeBody, RuleSet
from schema_registry.registry import data_contracts
from schema_registry.registry.guid import to_json
from schema_registry.registry.subject_names import GLOBAL, SubjectName, parse_beside
from schema_registry.store import scopes
from schema_registry.store.contexts import DEFAULT
from schema_registry.store.subjects import SubjectKey

TOP = SubjectName(DEFAULT, "")
"""The scope of a config or mode that is set without a subject."""
GLOBAL_SCOPE: SubjectKey = (GLOBAL, "")
_METADATA = ("default_metadata", "override_metadata")
_RULES = ("default_rule_set", "override_rule_set")
_TEXTS = ("alias", "alias_for_deks", "compatibility_group")


class Mode(StrEnum):
    """The mode of a scope: which writes are allowed."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """The same as READONLY, for clients that still set it."""
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        """Whether nothing may change."""
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def is_import(self) -> bool:
        """Whether schemas are imported with their ids and are not checked."""
        return self in (Mode.IMPORT, Mode.FORWARD)


def effective_config(connection: Connection, subject: SubjectName, *, default_level: str) -> Config:
    """The config in effect for a subject or context; an alias is never inherited."""
    found = scopes.read_configs(connection, subject.key, above=GLOBAL)
    merged: dict[str, Any] = {}
    for scope in reversed(_chain(subject)):
        merged |= {key: value for key, value in found.get(scope, {}).items() if value is not None}
    merged["alias"] = found.get(subject.key, {}).get("alias")
    return _config(merged, default_level)


def own_config(connection: Connection, subject: SubjectName, *, default_level: str) -> Config:
    """The config set for exactly this subject or context; raises 40408 if there is none."""
    found = scopes.read_configs(connection, subject.key, above=GLOBAL).get(subject.key)
    if found is None and subject != TOP:
        raise level_not_configured(subject.qualified)
    return _config(found or {}, default_level)


def follow_alias(connection: Connection, subject: SubjectName) -> SubjectName:
    """The subject that this one is an alias of, or itself."""
    found = scopes.read_configs(connection, subject.key, above=GLOBAL).get(subject.key, {}).get("alias")
    return parse_beside(subject, found) if found else subject


def update_config(connection: Connection, subject: SubjectName, update: ConfigUpdate) -> ConfigUpdate:
    """Change the keys that the update has; returns the whole config that is set afterwards."""
    refuse_read_only(connection, subject)
    scopes.write_config(connection, subject.key, _to_columns(update))
    found = _from_columns(scopes.read_configs(connection, subject.key, above=GLOBAL).get(subject.key, {}))
    return ConfigUpdate(compatibility=found.pop("compatibility_level", None), **found)


def delete_config(connection: Connection, subject: SubjectName, *, default_level: str) -> Config:
    """Remove the config; returns the one that was set, or raises 40401."""
    try:
        before = own_config(connection, subject, default_level=default_level)
    except RegistryError:
        raise subject_not_found(subject.qualified) from None
    refuse_read_only(connection, subject)
    scopes.remove_config(connection, subject.key)
    return before


def effective_mode(connection: Connection, subject: SubjectName) -> Mode:
    """The mode in effect for a subject or context: the nearest one that is set."""
    found = scopes.read_modes(connection, subject.key, above=GLOBAL)
    return Mode(next((found[scope] for scope in _chain(subject) if scope in found), Mode.READWRITE))


def own_mode(connection: Connection, subject: SubjectName) -> Mode:
    """The mode set for exactly this subject or context; raises 40409 if there is none."""
    found = scopes.read_modes(connection, subject.key, above=GLOBAL).get(subject.key)
    if found is None and subject != TOP:
        raise mode_not_configured(subject.qualified)
    return Mode(found or Mode.READWRITE)


def delete_mode(connection: Connection, subject: SubjectName, *, recursive: bool) -> ModeBody:
    """Remove the mode, with `recursive` also of all subjects in a context; returns the one that was set, or 40401."""
    with_subjects = recursive and not subject.name
    found = scopes.read_modes(connection, subject.key, above=GLOBAL).get(subject.key)
    if found is None and subject != TOP and not with_subjects:
        raise subject_not_found(subject.qualified)
    scopes.remove_mode(connection, subject.key, with_subjects=with_subjects)
    return ModeBody(mode=found or (Mode.READWRITE if subject == TOP else None))


def parse_mode(text: str, subject: SubjectName) -> Mode:
    """The mode that a client names; some modes can only be set globally."""
    try:
        mode = Mode(text.strip().upper())
    except ValueError:
        raise invalid_mode() from None
    if mode in (Mode.FORWARD, Mode.READONLY_OVERRIDE) and subject.key not in (TOP.key, GLOBAL_SCOPE):
        raise not_permitted(f"{mode.capitalize()} mode only supported on global level")
    return mode


def refuse_read_only(connection: Connection, subject: SubjectName) -> None:
    """Raise 42205 if the mode forbids all changes."""
    if effective_mode(connection, subject).is_read_only:
        raise not_permitted(f"Subject {subject.qualified} in context {subject.context} is in read-only mode")


def _chain(subject: SubjectName) -> list[SubjectKey]:
    """The scope of a subject and those that it inherits from, nearest first."""
    return list(dict.fromkeys([subject.key, (subject.context, ""), GLOBAL_SCOPE]))


def _config(values: Mapping[str, Any], default_level: str) -> Config:
    read = _from_columns(values)
    read["compatibility_level"] = read.get("compatibility_level") or default_level
    return Config(**read)


def _from_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a config from the columns of its row."""
    read = dict(values)
    for key in _METADATA:
        read[key] = Metadata.model_validate_json(read[key]) if read.get(key) else None
    for key in _RULES:
        read[key] = RuleSet.model_validate_json(read[key]) if read.get(key) else None
    return read


def _to_columns(update: ConfigUpdate) -> dict[str, Any]:
    """The columns that an update changes, with valid values."""
    given = {key: getattr(update, key) for key in update.model_fields_set}
    if "compatibility" in given:
        level = given.pop("compatibility")
        given["compatibility_level"] = None if level is None else _parse(Level, level, invalid_level())
    if given.get("compatibility_policy") is not None:
        given["compatibility_policy"] = _parse(Policy, given["compatibility_policy"], invalid_policy())
    for key in _METADATA:
        if given.get(key) is not None:
            given[key] = to_json(data_contracts.tidy_metadata(given[key]))
    for key in _RULES:
        if given.get(key) is not None:
            data_contracts.check_rules(given[key])
            given[key] = to_json(data_contracts.tidy_rules(given[key]))
    for key in _TEXTS:
        if "\x00" in (given.get(key) or ""):
            raise invalid_schema(f"{key} contains a NUL character")
    return given


def _parse(kind: type[Level | Policy], text: str, invalid: RegistryError) -> str:
    try:
        return kind.parse(text)
    except ValueError:
        raise invalid from None
