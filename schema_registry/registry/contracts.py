"""The metadata and rules of a new version: its own or its predecessor's, merged with the config's defaults and
overrides.
"""

from msgspec.structs import replace

from schema_registry.models import Config, Metadata, RuleSet
from schema_registry.registry import data_contracts
from schema_registry.registry.candidates import Draft
from schema_registry.store.schemas import StoredSchema


def has_defaults_or_overrides(config: Config) -> bool:
    """Whether the config adds metadata or rules to those that clients send."""
    return any(
        part is not None
        for part in (
            config.default_metadata,
            config.override_metadata,
            config.default_rule_set,
            config.override_rule_set,
        )
    )


def effective_contract(draft: Draft, previous: StoredSchema | None, config: Config, *, version: int | None) -> Draft:
    """The draft with its effective metadata and rules; with a `version`, the metadata may state it."""
    metadata, rules = draft.metadata, draft.rule_set
    if previous is not None and metadata is None and previous.metadata is not None:
        metadata = Metadata.model_validate_json(previous.metadata)
    if previous is not None and rules is None and previous.rule_set is not None:
        rules = RuleSet.model_validate_json(previous.rule_set)
    metadata = data_contracts.merge_metadata(config.default_metadata, metadata)
    metadata = data_contracts.merge_metadata(metadata, config.override_metadata)
    rules = data_contracts.merge_rules(config.default_rule_set, rules)
    rules = data_contracts.merge_rules(rules, config.override_rule_set)
    if version is not None and (draft.version != 0 or data_contracts.stated_version(metadata) is not None):
        metadata = data_contracts.with_version(metadata, version)
    if metadata is None and rules is None:
        return draft
    return replace(draft, metadata=metadata, rule_set=rules)
