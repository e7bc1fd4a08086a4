"""Check, normalize and merge the metadata and rules of schemas."""

from collections.abc import Iterable, Mapping

from schema_registry.errors import invalid_rules
from schema_registry.models import Metadata, Rule, RuleSet

VERSION_PROPERTY = "confluent:version"
RESERVED_PROPERTY = "confluent:reserved"

_KINDS = ("TRANSFORM", "CONDITION")
_MIGRATION_MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN_MODES = ("WRITE", "READ", "WRITEREAD")
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
    return RuleSet(
        migration_rules=[_tidy_rule(rule) for rule in rules.migration_rules or ()] or None,
        domain_rules=[_tidy_rule(rule) for rule in rules.domain_rules or ()] or None,
        encoding_rules=[_tidy_rule(rule) for rule in rules.encoding_rules or ()] or None,
        enable_at=rules.enable_at,
    )


def check_rules(rules: RuleSet | None) -> None:
    """Refuse rules that no client could run; raises 42210."""
    if rules is None:
        return
    names: set[str | None] = set()
    for rule in rules.migration_rules or ():
        _check_rule(rule, names, _MIGRATION_MODES, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
    for rule in rules.domain_rules or ():
        _check_rule(rule, names, _DOMAIN_MODES, "Domain rules can only be WRITE, READ, WRITEREAD")
    for rule in rules.encoding_rules or ():
        _check_rule(rule, names, _DOMAIN_MODES, "Encoding rules can only be WRITE, READ, WRITEREAD")


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
    return tidy_rules(
        RuleSet(
            migration_rules=_merge_by_name(old.migration_rules, new.migration_rules),
            domain_rules=_merge_by_name(old.domain_rules, new.domain_rules),
            encoding_rules=_merge_by_name(old.encoding_rules, new.encoding_rules),
            enable_at=new.enable_at or old.enable_at,
        )
    )


def without_rules(rules: RuleSet | None, names: Iterable[str]) -> RuleSet | None:
    """The rules without those of some names."""
    if rules is None:
        return None
    gone = set(names)
    return RuleSet(
        migration_rules=[rule for rule in rules.migration_rules or () if rule.name not in gone],
        domain_rules=[rule for rule in rules.domain_rules or () if rule.name not in gone],
        encoding_rules=[rule for rule in rules.encoding_rules or () if rule.name not in gone],
        enable_at=rules.enable_at,
    )


def has_rule_of_type(rules: RuleSet | None, rule_type: str) -> bool:
    """Whether one of the rules has this type."""
    if rules is None:
        return False
    groups = (rules.migration_rules, rules.domain_rules, rules.encoding_rules)
    return any(rule.type == rule_type for group in groups for rule in group or ())


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


def _merge_by_name(old: list[Rule] | None, new: list[Rule] | None) -> list[Rule]:
    replaced = {rule.name for rule in new or ()}
    return [*(rule for rule in old or () if rule.name not in replaced), *(new or ())]


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
