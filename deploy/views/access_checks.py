"""Whether someone may do something, as a sentence with the rule that decides."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from core_broker.client.acls import Acl, Operation, ServiceAcl
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError
from core_broker.security.judgement import Judge, Judgement
from deploy.views.acls import Resource, describe_resource, sentence, spoken

EVERYONE_SETTING: Final = "allow.everyone.if.no.acl.found"
SUPER_USERS_SETTING: Final = "super.users"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What decides beside the rules; None is what the cluster does not show."""

    super_users: tuple[str, ...] | None
    allows_everyone: bool | None
    """Whether everyone may use what no rule is about."""


class AccessCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    principal: str
    operation: str
    resource: str
    allowed: bool
    rule: Acl | ServiceAcl | None
    reason: str

    @property
    def text(self) -> str:
        """`User:alice may write topic orders: ...`."""
        may = "may" if self.allowed else "may not"
        why = f"{self.reason}: {sentence(self.rule)}" if self.rule else self.reason
        return f"{self.principal} {may} {self.operation} {self.resource}; {why}"


def read_policy(admin: Admin) -> Policy:
    """The policy of a cluster, as far as it shows its settings."""
    try:
        broker = admin.cluster().brokers[0].id
        found = {config.key: config.value for config in admin.configs_of_brokers([broker])[broker]}
    except ClientError:
        found = dict.fromkeys((EVERYONE_SETTING, SUPER_USERS_SETTING))
    return policy_of(found)


def policy_of(settings: Mapping[str, str | None]) -> Policy:
    """The policy in the settings of a broker; None is a value that the broker hides."""
    everyone, super_users = settings.get(EVERYONE_SETTING, "false"), settings.get(SUPER_USERS_SETTING, "")
    return Policy(
        super_users=None if super_users is None else tuple(filter(None, map(str.strip, super_users.split(";")))),
        allows_everyone=None if everyone is None else everyone.strip().lower() == "true",
    )


def check_access(
    judge: Judge, principal: str, operations: Iterable[Operation], resources: Iterable[Resource], *, host: str
) -> list[AccessCheck]:
    """An answer for each operation on each resource."""
    wanted = tuple(operations)
    return [
        _answer(judge.decide(principal, host, operation, resource.kind, resource.name), principal, operation, resource)
        for resource in resources
        for operation in wanted
    ]


def _answer(found: Judgement, principal: str, operation: Operation, resource: Resource) -> AccessCheck:
    return AccessCheck(
        principal=principal,
        operation=spoken(operation),
        resource=describe_resource(resource),
        allowed=found.is_allowed,
        rule=found.rule,
        reason=found.reason,
    )
