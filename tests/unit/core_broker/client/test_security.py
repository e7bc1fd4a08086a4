from collections.abc import Iterator

import pytest

from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from core_broker.client.admin import Admin
from core_broker.client.errors import NotAllowed, Rejected
from core_broker.client.security import Quota
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually
from tests.support.authorizing_cluster import AuthorizingCluster


@pytest.fixture
def authorizing() -> Iterator[AuthorizingCluster]:
    with AuthorizingCluster() as cluster:
        yield cluster


@pytest.fixture
def admin(authorizing: AuthorizingCluster) -> Admin:
    return Admin(ClientSettings(bootstrap_servers=authorizing.bootstrap, properties={"log_level": "0"}))


def rule(kind: ResourceType, operation: Operation, name: str = "x") -> Acl:
    return Acl(
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.PREFIXED,
        principal="User:alice",
        host="*",
        operation=operation,
        permission=Permission.ALLOW,
    )


RULES = [
    rule(ResourceType.TOPIC, Operation.READ),
    rule(ResourceType.TRANSACTIONAL_ID, Operation.TWO_PHASE_COMMIT),
    rule(ResourceType.DELEGATION_TOKEN, Operation.DESCRIBE),
    rule(ResourceType.USER, Operation.CREATE_TOKENS, "User:bob"),
]


def test_rules_of_every_kind_are_created_found_and_deleted(admin: Admin) -> None:
    admin.security.create_acls(RULES)
    assert admin.security.acls(AclFilter()) == RULES
    assert admin.security.acls(AclFilter(resource_type=ResourceType.USER)) == RULES[3:]
    admin.security.delete_acls(RULES[1:])
    assert admin.security.acls(AclFilter()) == RULES[:1]


def test_a_refusal_is_no_empty_answer(authorizing: AuthorizingCluster, admin: Admin) -> None:
    authorizing.may_describe = authorizing.may_alter = False
    with pytest.raises(NotAllowed):
        admin.security.acls(AclFilter())
    with pytest.raises(NotAllowed):
        admin.security.create_acls(RULES)
    with pytest.raises(NotAllowed):
        admin.security.delete_acls(RULES)


@pytest.mark.processes
def test_quotas_are_set_found_and_removed(cluster: ClientSettings, name: str) -> None:
    security = Admin(cluster).security
    entity = (("user", name), ("client-id", None))
    security.alter_quota(entity, put={"producer_byte_rate": 1e6}, validate_only=True)
    security.alter_quota(entity, put={"producer_byte_rate": 2e6, "request_percentage": 12.5})

    def found() -> list[Quota]:
        return [quota for quota in security.quotas() if ("user", name) in quota.entity]

    limits = {"producer_byte_rate": 2e6, "request_percentage": 12.5}
    assert eventually(found, bool) == [Quota(entity=entity, limits=limits)]
    security.alter_quota(entity, put={}, remove=limits)
    eventually(found, lambda quotas: not quotas)
    with pytest.raises(Rejected):
        security.alter_quota(entity, put={"no_such_key": 1.0})
