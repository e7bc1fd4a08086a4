"""Access rules in SQL: the registries on one database share them."""

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection, delete, insert, select, update
from typing_extensions import override

from core_broker.web_access.errors import InvalidRule
from core_broker.web_access.rules import Rule, RuleStore
from schema_registry.store.database import Database
from schema_registry.store.tables import access_rules, access_rules_state

_RULES_MAX: Final = 20_000
"""Every registry loads all rules after each change."""


class SqlRules(RuleStore):
    """The rules of the registries on a database. Thread-safe; blocks, and raises RegistryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    def version(self) -> int:
        with self._database.read() as connection:
            version: int = connection.execute(select(access_rules_state.c.version)).scalar_one()
        return version

    @override
    def read(self) -> Sequence[Rule]:
        names = Rule.__struct_fields__
        order = (
            access_rules.c.principal,
            access_rules.c.resource_type,
            access_rules.c.resource,
            access_rules.c.rule_hash,
        )
        with self._database.read() as connection:
            rows = connection.execute(select(*(access_rules.c[name] for name in names)).order_by(*order))
            return [msgspec.convert(dict(zip(names, row, strict=True)), Rule) for row in rows]

    @override
    def add(self, rules: Sequence[Rule]) -> None:
        wanted = {rule.digest: rule for rule in rules}
        if any("\0" in text for rule in rules for text in (rule.principal, rule.resource, rule.host)):
            raise InvalidRule("A rule contains a NUL character")

        def work(connection: Connection) -> None:
            _raise_version(connection)  # first: it is the lock that makes changes of others wait
            known = set(connection.execute(select(access_rules.c.rule_hash)).scalars())
            new = [{"rule_hash": key, **msgspec.structs.asdict(wanted[key])} for key in wanted.keys() - known]
            if len(known) + len(new) > _RULES_MAX:
                raise InvalidRule(f"There can be {_RULES_MAX} rules at most: use prefixes and `*`")
            if new:
                connection.execute(insert(access_rules), new)

        self._database.write(work)

    @override
    def remove(self, rules: Sequence[Rule]) -> None:
        hashes = [rule.digest for rule in rules]

        def work(connection: Connection) -> None:
            _raise_version(connection)
            for key in hashes:
                connection.execute(delete(access_rules).where(access_rules.c.rule_hash == key))

        self._database.write(work)


def _raise_version(connection: Connection) -> None:
    connection.execute(update(access_rules_state).values(version=access_rules_state.c.version + 1))
