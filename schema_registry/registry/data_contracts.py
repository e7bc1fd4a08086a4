"""Check, normalize and merge the metadata and rules of schemas."""

from collections.abc import Iterable, Mapping, Sequence

from schema_registry.errors import invalid_rules
from schema_registry.models import Metadata, Rule, RuleSet

VERSION_PROPERTY = "confluent:version"
RESERVED_PROPERTY = "confluent:reserved"

_KINDS = ("TRANSFORM", "CONDITION")
_MODES = {
    "migration_rules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "domain_rules": ("WRITE", "READ", "WRITEREAD"),
    "encoding_rules": ("WRITE", "READ", "WRITEREAD"),
}
"""The modes of each group of rules."""
_MODES_OF_BOTH_DIRECTIONS = ("UPDOWN", "WRITEREAD")
"""A rule in one of these modes may have an action for each direction, separated by a comma."""
_NAME_CHARACTERS_MAX = 256


def tidy_metadata(metadata: Metadata | None) -> Metadata | None:
    """The metadata in the order in which it is stored."""
    if metadata is None:
        return None
    return Metadata(
        tags={path: sorted(set(tags)) for path, tags in sorted((metadata.tags or {}).items())} or None,
        properties=dict(sorted((metadata.properties or {}).items())) or None,
        sensitive=sorted(set(metadata.sensitive or ())) or None,
    )


def tidy_rules(rules: RuleSet | None) -> RuleSet | None:
    """The rules with their defaults, in the order in which they are stored."""
    if rules is None:
        return None
    return rules.model_copy(
        update={name: [_tidy_rule(rule) for rule in group] or None for name, group in _groups(rules).items()}
    )


def check_rules(rules: RuleSet | None) -> None:
    """Refuse rules that no client could run; raises 42210."""
    if rules is None:
        return
    names: set[str | None] = set()
    for name, group in _groups(rules).items():
        wrong_mode = f"{name.replace('_', ' ').capitalize()} can only be {', '.join(_MODES[name])}"
        for rule in group:
            _check_rule(rule, names, _MODES[name], wrong_mode)


def merge_metadata(old: Metadata | None, new: Metadata | None) -> Metadata | None:
    """Merge two metadata; values of the new one win."""
    if old is None or new is None:
        return tidy_metadata(new or old)
    return tidy_metadata(
        Metadata(
            tags={**(old.tags or {}), **(new.tags or {})},
            properties={**(old.properties or {}), **(new.properties or {})},
            sensitive=[*(old.sensitive or ()), *(new.sensitive or ())],
        )
    )


def merge_rules(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """Merge two rule sets; a new rule replaces the old one of the same name."""
    if old is None or new is None:
        return tidy_rules(new or old)
    before = _groups(old)
    merged: dict[str, object] = {"enable_at": new.enable_at or old.enable_at}
    for name, group in _groups(new).items():
        replaced = {rule.name for rule in group}
        merged[name] = [*(rule for rule in before[name] if rule.name not in replaced), *group]
    return tidy_rules(new.model_copy(update=merged))


def without_rules(rules: RuleSet | None, names: Iterable[str]) -> RuleSet | None:
    """The rules without those of some names."""
    if rules is None:
        return None
    gone = set(names)
    kept = {name: [rule for rule in group if rule.name not in gone] or None for name, group in _groups(rules).items()}
    return rules.model_copy(update=kept)


def has_rule_of_type(rules: RuleSet | None, rule_type: str) -> bool:
    """Whether one of the rules has this type."""
    return rules is not None and any(rule.type == rule_type for group in _groups(rules).values() for rule in group)


def properties(metadata: Metadata | None) -> Mapping[str, str]:
    """The properties of the metadata; empty without metadata."""
    return (metadata.properties if metadata is not None else None) or {}


def stated_version(metadata: Metadata | None) -> str | None:
    """The version that the metadata states."""
    return properties(metadata).get(VERSION_PROPERTY)


def with_version(metadata: Metadata | None, version: int) -> Metadata | None:
    """The metadata, stating a version."""
    return merge_metadata(metadata, Metadata(properties={VERSION_PROPERTY: str(version)}))


def without_version(metadata: Metadata | None) -> Metadata:
    """The metadata without a stated version; None becomes empty metadata."""
    kept = {key: value for key, value in properties(metadata).items() if key != VERSION_PROPERTY}
    tidy = tidy_metadata(metadata) or Metadata()
    return Metadata(tags=tidy.tags, properties=kept or None, sensitive=tidy.sensitive)


def reserved_fields(metadata: Metadata | None) -> list[str]:
    """The names of reserved fields, which the schema must not have."""
    names = (name.strip() for name in properties(metadata).get(RESERVED_PROPERTY, "").split(","))
    return sorted({name for name in names if name})


def _tidy_rule(rule: Rule) -> Rule:
    return Rule(
        name=rule.name,
        doc=rule.doc,
        kind=(rule.kind or "TRANSFORM").upper(),
        mode=(rule.mode or "WRITEREAD").upper(),
        type=rule.type,
        tags=sorted(set(rule.tags or ())) or None,
        params=dict(sorted((rule.params or {}).items())) or None,
        expr=rule.expr,
        on_success=rule.on_success,
        on_failure=rule.on_failure,
        disabled=rule.disabled,
    )


def _groups(rules: RuleSet) -> dict[str, Sequence[Rule]]:
    """The rules by the name of their group."""
    return {name: getattr(rules, name) or () for name in _MODES}


def _check_rule(rule: Rule, names: set[str | None], modes: tuple[str, ...], wrong_mode: str) -> None:
    if rule.name in names:
        raise invalid_rules(f"Found rule with duplicate name '{rule.name}'")
    names.add(rule.name)
    _check_name(rule.name)
    if not rule.type:
        raise invalid_rules("Missing rule type")
    if (rule.kind or "TRANSFORM").upper() not in _KINDS:
        raise invalid_rules(f"Rule '{rule.name}' has the kind {rule.kind}: allowed are {' and '.join(_KINDS)}")
    mode = (rule.mode or "WRITEREAD").upper()
    actions = (rule.on_success or "", rule.on_failure or "")
    if mode not in _MODES_OF_BOTH_DIRECTIONS and any("," in action for action in actions):
        raise invalid_rules("Multiple actions only valid with WRITEREAD and UPDOWN")
    if mode not in modes:
        raise invalid_rules(wrong_mode)


def _check_name(name: str | None) -> None:
    if name is None:
        raise invalid_rules("Missing rule name")
    if not name:
        raise invalid_rules("Empty rule name")
    if len(name) > _NAME_CHARACTERS_MAX:
        raise invalid_rules("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise invalid_rules(f"Illegal initial character in rule name: {name}")
    if not all(character.isalnum() or character in "_-" for character in name):
        raise invalid_rules(f"Illegal character in rule name: {name}")
