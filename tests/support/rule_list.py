"""Access rules in memory."""

import asyncio
from collections.abc import Iterable, Sequence
from threading import Event

from typing_extensions import override

from core_broker.web_access.rules import Rule, RuleStore
from tests.support.patience import PATIENCE_S


class RuleList(RuleStore):
    """A list of rules, which may fail for a while."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = list(rules)
        self.is_broken = False
        self._version = 0
        self._has_failed = Event()

    @override
    def version(self) -> int:
        if self.is_broken:
            self._has_failed.set()
            raise RuntimeError("the store is broken")
        return self._version

    @override
    def read(self) -> Sequence[Rule]:
        return tuple(self.rules)

    @override
    def add(self, rules: Sequence[Rule]) -> None:
        self.rules += [rule for rule in dict.fromkeys(rules) if rule not in self.rules]
        self._version += 1

    @override
    def remove(self, rules: Sequence[Rule]) -> None:
        self.rules = [rule for rule in self.rules if rule not in rules]
        self._version += 1

    async def has_failed(self) -> None:
        """Return when the store has failed again."""
        self._has_failed.clear()
        assert await asyncio.to_thread(self._has_failed.wait, PATIENCE_S)
