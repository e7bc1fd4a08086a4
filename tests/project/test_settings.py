"""Settings are true: every one is read somewhere, or it says that it has no effect, and live ones are read live."""

import ast
import re
from collections.abc import Iterable
from typing import Final

import pytest

from core_broker.service.settings import Settings, SettingsError
from core_broker.settings import BrokerSettings, GroupSettings, TopicSettings
from deploy import settings_docs
from tests.project import setting_readers
from tests.project.setting_families import FAMILIES, FIXED, OURS, readers_of, unexplained, unread
from tests.project.setting_readers import Read
from tests.project.source import tree


@pytest.mark.parametrize("settings", FAMILIES)
def test_every_setting_is_read_or_says_that_it_has_no_effect(settings: type) -> None:
    assert unexplained(settings) == set()


@pytest.mark.parametrize("settings", OURS)
def test_a_setting_that_says_it_has_no_effect_is_not_read(settings: type[Settings]) -> None:
    silent = {d.name for d in settings.DEFINITIONS.values() if d.without_effect}
    assert silent <= unread(settings)


@pytest.mark.parametrize("key", FIXED)
def test_a_setting_that_nothing_reads_refuses_every_other_value(key: str) -> None:
    settings, value = FIXED[key]
    assert settings.DEFINITIONS[key].name in unread(settings)
    with pytest.raises(SettingsError, match=re.escape(f"{key}={value}: ")):
        settings.parse({key: value})


@pytest.mark.parametrize("settings", OURS)
def test_a_key_is_defined_or_ignored_or_refused(settings: type[Settings]) -> None:
    known = {alias for d in settings.DEFINITIONS.values() for alias in (d.key, *d.aliases)}
    assert known.isdisjoint(settings.IGNORED)
    assert known.isdisjoint(settings.REFUSED)


@pytest.mark.parametrize("settings", OURS)
def test_the_documentation_says_why_a_setting_has_no_effect(settings: type[Settings]) -> None:
    reasons = {d.key: d.without_effect for d in settings.DEFINITIONS.values() if d.without_effect}
    text = "\n".join(settings_docs.documents().values())
    for key, reason in {**settings.IGNORED, **settings.REFUSED, **reasons}.items():
        assert f"| `{key}` | {reason} |" in text


def test_a_name_that_is_read_from_something_else_is_not_taken_for_a_setting() -> None:
    """The REST proxy has a setting `consumer_request_timeout_ms`, and TopicSettings have a `compression_type`."""
    broker = FAMILIES[BrokerSettings]
    imagined = setting_readers.Settings(
        names=broker.names,
        fields=("consumer_request_timeout_ms", "compression_type"),
        defined_in=broker.defined_in,
        read_in=broker.read_in,
    )
    assert imagined.readers() == {"consumer_request_timeout_ms": [], "compression_type": []}


# -- settings that may change while the broker runs --------------------------------------------------------------------

_HOLDERS: Final = {
    "in_force": "core_broker/broker.py _Parts.configure",
    "self._owner.settings": "core_broker/broker.py _Parts.configure",
    "self._store.settings": "core_broker/log/store.py LogStore.configure",
    "services.current_settings": "core_broker/handlers/context.py Services.current_settings",
    "context.services.current_settings": "core_broker/handlers/context.py Services.current_settings",
    **dict.fromkeys(
        (
            "compacted.settings",
            "known.settings",
            "log.settings",
            "partition.log.settings",
            "partition_log.settings",
            "self.log.settings",
            "source.settings",
        ),
        "core_broker/log/partition_log.py PartitionLog.configure",
    ),
    "self._own_settings()": "core_broker/groups/consumer_groups.py ConsumerGroups._own_settings",
}
"""Expressions that give the settings in force, and the function that makes it so."""
_SHORT_LIVED: Final = {
    "CleanedSegment": "made anew for each compaction",
    "TopicPlanner": "made anew for each request",
    "TopicRules": "made anew for each plan",
    "Upkeep": "sets the limits of its compactor before each round",
}
"""Classes whose constructors may read live settings, and why."""


def methods(path: str) -> set[str]:
    """Functions of a module, those of classes as `Class.function`."""
    return set(_functions(tree(path), ""))


def _functions(node: ast.AST, prefix: str) -> Iterable[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}"
            yield from _functions(child, "")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{child.name}.")


def is_live(read: Read, all_reads: list[Read]) -> bool:
    """Whether a read sees changes of the settings."""
    if read.owner in _SHORT_LIVED:
        return True
    if read.function == "__init__":  # what is copied must be copied again when it changes
        return any(other.owner == read.owner and other.function == "configure" for other in all_reads)
    if read.origin in ("self.settings", "self._settings"):
        return f"{read.owner}.configure" in methods(read.path)
    return read.origin in _HOLDERS or read.annotation is not None or read.origin == "settings"


@pytest.mark.parametrize("settings", [BrokerSettings, TopicSettings, GroupSettings])
def test_every_setting_that_may_change_is_read_from_the_settings_in_force(settings: type[Settings]) -> None:
    found = readers_of(FAMILIES[settings])
    live = [found[d.name] for d in settings.DEFINITIONS.values() if d.is_dynamic and not d.without_effect]
    own = [[read for read in readers if not read.path.startswith("core_broker/settings/")] for readers in live]
    assert [str(read) for readers in own for read in readers if not is_live(read, readers)] == []


@pytest.mark.parametrize("maker", sorted(set(_HOLDERS.values())))
def test_what_keeps_the_settings_in_force_exists(maker: str) -> None:
    path, _, function = maker.partition(" ")
    assert function in methods(path)
