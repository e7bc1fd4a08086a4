"""Who may read a topic may read its copy."""

from connectors.mirror.clusters import admin_of
from connectors.mirror.config import MirrorSourceConfig
from connectors.mirror.topic_sync import sync_acls
from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from tests.support.authorizing_cluster import AuthorizingCluster


def rule(topic: str, operation: Operation, principal: str, *, permission: Permission = Permission.ALLOW) -> Acl:
    return Acl(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        pattern_type=PatternType.LITERAL,
        principal=f"User:{principal}",
        host="*",
        operation=operation,
        permission=permission,
    )


def test_rules_are_carried_over_without_the_right_to_write() -> None:
    with AuthorizingCluster() as here, AuthorizingCluster() as there:
        config = MirrorSourceConfig.parse(
            {
                "source.cluster.alias": "us",
                "source.cluster.bootstrap.servers": here.bootstrap,
                "target.cluster.bootstrap.servers": there.bootstrap,
                "topics": "orders",
            }
        )
        source, target = admin_of(config, "source"), admin_of(config, "target")
        source.access.create(
            [
                rule("orders", Operation.READ, "ann"),
                rule("orders", Operation.WRITE, "ben"),
                rule("orders", Operation.ALL, "cem"),
                rule("orders", Operation.WRITE, "dan", permission=Permission.DENY),
                rule("another", Operation.READ, "ann"),
            ]
        )
        added = [sync_acls(source, target, selection=config.selection, policy=config.policy) for _ in range(2)]
        found = target.access.acls(AclFilter(resource_type=ResourceType.TOPIC))
    assert added == [3, 0]
    assert found == [
        rule("us.orders", Operation.READ, "ann"),
        rule("us.orders", Operation.READ, "cem"),
        rule("us.orders", Operation.WRITE, "dan", permission=Permission.DENY),
    ]
