"""The access rules of Connect: records of the config topic, which the leader writes and every worker reads."""

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from connect.runtime.leading.supervisor import Supervisor
from connect.stores.config_writer import ConfigWriter
from core_broker.web_access.errors import InvalidRule
from core_broker.web_access.rules import Rule, RuleStore

_RULES_MAX: Final = 20_000
"""Every worker loads all rules after each change."""


class TopicRules(RuleStore):
    """Thread-safe; changes block, and raise NotLeader on other workers than the leader."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    @override
    def version(self) -> int:
        return self._supervisor.configs.rules_version

    @override
    def read(self) -> Sequence[Rule]:
        return self._supervisor.configs.rules()

    @override
    def add(self, rules: Sequence[Rule]) -> None:
        def write(writer: ConfigWriter) -> None:
            known = set(self.read())
            new = [rule for rule in dict.fromkeys(rules) if rule not in known]
            if len(known) + len(new) > _RULES_MAX:
                raise InvalidRule(f"There can be {_RULES_MAX} rules at most: use prefixes and `*`")
            if new:
                writer.put_rules(new)

        self._supervisor.write(write)

    @override
    def remove(self, rules: Sequence[Rule]) -> None:
        def write(writer: ConfigWriter) -> None:
            if rules:
                writer.remove_rules(rules)

        self._supervisor.write(write)
