"""Access rules in the database: what is added is read, each once, by every registry."""

from contextlib import closing

import pytest

from core_broker.web_access.errors import InvalidRule
from core_broker.web_access.rules import Operation, PatternType, Permission, ResourceType, Rule
from schema_registry.store import access_rules
from schema_registry.store.access_rules import SqlRules
from schema_registry.store.database import Database


def rule(resource: str, *, operation: Operation = Operation.READ) -> Rule:
    return Rule(
        principal="User:alice",
        resource=resource,
        resource_type=ResourceType.SUBJECT,
        pattern_type=PatternType.PREFIXED,
        operation=operation,
        permission=Permission.ALLOW,
    )


def test_rules_are_read_as_they_were_added_each_once(database: Database) -> None:
    store = SqlRules(database)
    rules = [rule("a"), rule("b"), rule("b", operation=Operation.WRITE), rule("é:/%" + "x" * 2000)]
    store.add(rules)
    store.add(rules[:2])
    assert sorted(map(str, store.read())) == sorted(map(str, rules))
    assert set(store.read()) == set(rules)


def test_removed_rules_are_gone_and_unknown_ones_are_ignored(database: Database) -> None:
    store = SqlRules(database)
    store.add([rule("a"), rule("b")])
    store.remove([rule("a"), rule("never")])
    assert store.read() == [rule("b")]


def test_every_change_is_noticed_by_the_version(database: Database, url: str) -> None:
    with closing(Database(url)) as same:
        store, other = SqlRules(database), SqlRules(same)
        seen = [store.version()]
        other.add([rule("a")])
        seen.append(store.version())
        other.remove([rule("a")])
        assert store.version() not in seen
        assert seen[0] != seen[1]


def test_there_are_not_more_rules_than_every_registry_can_load(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_rules, "_RULES_MAX", 3)
    store = SqlRules(database)
    store.add([rule("a"), rule("b"), rule("c")])
    store.add([rule("a")])
    with pytest.raises(InvalidRule, match="3 rules at most"):
        store.add([rule("d")])
    assert len(store.read()) == 3


def test_a_text_that_cannot_be_stored_is_refused(database: Database) -> None:
    with pytest.raises(InvalidRule, match="NUL"):
        SqlRules(database).add([rule("a\0b")])
