"""Metadata and rules: merged, checked, in one form."""

from typing import Any

import pytest

from schema_registry.errors import RegistryError
from schema_registry.models import Metadata, RuleSet
from schema_registry.registry import data_contracts


def rules(*names: str, expr: str = "") -> RuleSet:
    return RuleSet.model_validate({"domainRules": [{"name": name, "type": "CEL", "expr": expr} for name in names]})


def names(rule_set: RuleSet | None) -> list[str | None]:
    assert rule_set is not None
    return [rule.name for rule in rule_set.domain_rules or ()]


def test_merging_keeps_both_and_prefers_the_new_one() -> None:
    old = Metadata(tags={"a": ["X"]}, properties={"p": "1", "q": "1"}, sensitive=["q"])
    new = Metadata(tags={"a": ["Y"], "b": ["Z"]}, properties={"q": "2"}, sensitive=["p"])
    assert data_contracts.merge_metadata(old, new) == Metadata(
        tags={"a": ["Y"], "b": ["Z"]}, properties={"p": "1", "q": "2"}, sensitive=["p", "q"]
    )
    assert data_contracts.merge_metadata(None, None) is None
    assert data_contracts.merge_metadata(old, None) == old


def test_a_new_rule_replaces_the_old_one_of_its_name() -> None:
    merged = data_contracts.merge_rules(rules("a", "b", expr="old"), rules("b", "c", expr="new"))
    assert names(merged) == ["a", "b", "c"]
    assert merged is not None
    assert merged.domain_rules is not None
    assert [rule.expr for rule in merged.domain_rules] == ["old", "new", "new"]
    assert names(data_contracts.without_rules(merged, ["a", "c"])) == ["b"]


def test_kind_and_mode_have_defaults() -> None:
    tidy = data_contracts.tidy_rules(rules("a"))
    assert tidy is not None
    assert tidy.domain_rules is not None
    assert (tidy.domain_rules[0].kind, tidy.domain_rules[0].mode) == ("TRANSFORM", "WRITEREAD")


@pytest.mark.parametrize(
    ("group", "rule", "message"),
    [
        ("domainRules", {"type": "CEL"}, "Missing rule name"),
        ("domainRules", {"name": "", "type": "CEL"}, "Empty rule name"),
        ("domainRules", {"name": "x" * 257, "type": "CEL"}, "Rule name too long"),
        ("domainRules", {"name": "9", "type": "CEL"}, "Illegal initial character"),
        ("domainRules", {"name": "a b", "type": "CEL"}, "Illegal character"),
        ("domainRules", {"name": "a"}, "Missing rule type"),
        ("domainRules", {"name": "a", "type": "CEL", "kind": "WISH"}, "WISH"),
        ("domainRules", {"name": "a", "type": "CEL", "mode": "UPGRADE"}, "Domain rules can only be"),
        ("encodingRules", {"name": "a", "type": "CEL", "mode": "UPGRADE"}, "Encoding rules can only be"),
        ("migrationRules", {"name": "a", "type": "CEL"}, "Migration rules can only be"),
        ("domainRules", {"name": "a", "type": "CEL", "mode": "WRITE", "onSuccess": "NONE,ERROR"}, "Multiple actions"),
        ("domainRules", {"name": "a", "type": "CEL", "mode": "read", "onFailure": "DLQ,NONE"}, "Multiple actions"),
        ("encodingRules", {"name": "a", "type": "CEL", "mode": "READ", "onFailure": ","}, "Multiple actions"),
        ("migrationRules", {"name": "a", "type": "CEL", "mode": "UPGRADE", "onFailure": "a,b"}, "Multiple actions"),
    ],
)
def test_rules_that_no_client_could_run_are_refused(group: str, rule: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistryError, match=message) as refused:
        data_contracts.check_rules(RuleSet.model_validate({group: [rule]}))
    assert refused.value.code == 42210


@pytest.mark.parametrize(
    ("group", "rule"),
    [
        ("domainRules", {"name": "x" * 256}),
        ("domainRules", {"name": "a", "onSuccess": "NONE,ERROR"}),
        ("domainRules", {"name": "a", "mode": "WRITEREAD", "onFailure": "DLQ,NONE"}),
        ("domainRules", {"name": "a", "mode": "WRITE", "onSuccess": "NONE", "onFailure": "DLQ"}),
        ("migrationRules", {"name": "a", "mode": "UPDOWN", "onFailure": "DLQ,NONE"}),
    ],
)
def test_rules_of_two_directions_may_have_an_action_for_each(group: str, rule: dict[str, Any]) -> None:
    data_contracts.check_rules(RuleSet.model_validate({group: [{"type": "CEL", **rule}]}))


def test_the_version_in_the_metadata() -> None:
    versioned = data_contracts.with_version(Metadata(properties={"a": "b"}), 3)
    assert data_contracts.stated_version(versioned) == "3"
    assert data_contracts.without_version(versioned) == Metadata(properties={"a": "b"})
    assert data_contracts.without_version(None) == Metadata()


def test_reserved_fields_are_a_list_with_commas() -> None:
    metadata = Metadata(properties={"confluent:reserved": "b, a,,b "})
    assert data_contracts.reserved_fields(metadata) == ["a", "b"]
    assert data_contracts.reserved_fields(None) == []
