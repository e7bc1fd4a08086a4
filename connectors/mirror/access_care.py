"""Who may read a topic may read its copy: ACLs of topics, carried over as MirrorMaker does."""

from dataclasses import replace

from connectors.mirror.policy import Policy
from connectors.mirror.selection import Selection
from core_broker.client.access import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from core_broker.client.admin import Admin


def sync_acls(source: Admin, target: Admin, *, selection: Selection, policy: Policy) -> int:
    """Add to the target what it lacks, and tell how many rules that were; Rejected without an authorizer."""
    topics = AclFilter(resource_type=ResourceType.TOPIC, pattern_type=PatternType.LITERAL)
    wanted = [
        copied(acl, policy) for acl in source.access.acls(topics) if acl.resource_name in selection and is_copied(acl)
    ]
    known = set(target.access.acls(topics)) if wanted else set()
    missing = [acl for acl in dict.fromkeys(wanted) if acl not in known]
    if missing:
        target.access.create(missing)
    return len(missing)


def is_copied(acl: Acl) -> bool:
    """Whether a rule makes sense for a copy: nobody but the mirror is to write it."""
    return not (acl.permission is Permission.ALLOW and acl.operation is Operation.WRITE)


def copied(acl: Acl, policy: Policy) -> Acl:
    """A rule as it is for the copy; who may do everything may read it."""
    everything = acl.permission is Permission.ALLOW and acl.operation is Operation.ALL
    operation = Operation.READ if everything else acl.operation
    return replace(acl, resource_name=policy.remote(acl.resource_name), operation=operation)
