"""ACLs: checks of requests, and the data of responses."""

from collections.abc import Iterable
from dataclasses import asdict
from urllib.parse import urlencode

from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.acls import AclData, CreateAclBody
from rest_proxy.models.v3.resources import Links, ResourceMetadata

_NOT_IN_RULES = {
    "resource_type": (ResourceType.ANY, ResourceType.UNKNOWN),
    "pattern_type": (PatternType.ANY, PatternType.MATCH, PatternType.UNKNOWN),
    "operation": (Operation.ANY, Operation.UNKNOWN),
    "permission": (Permission.ANY, Permission.UNKNOWN),
}


# --- requests ---


def rule(body: CreateAclBody) -> Acl:
    """The ACL to create; 400 if a field has a value that only filters may have."""
    for field, refused in _NOT_IN_RULES.items():
        if (value := getattr(body, field)) in refused:
            raise ProxyError(400, f"{field} cannot be {value}")
    return Acl(**dict(body))


def check_filter(wanted: AclFilter, *, is_deletion: bool = False) -> None:
    """400 for a filter with an unknown value.

    In a deletion that is also a field that was left out: a forgotten one must not delete all ACLs.
    """
    for field in _NOT_IN_RULES:
        if getattr(wanted, field) == "UNKNOWN":
            raise ProxyError(400, f"{field} cannot be {'unspecified or ' if is_deletion else ''}UNKNOWN")


# --- responses ---


def acl_data(acls: Iterable[Acl], links: Links) -> list[AclData]:
    """ACLs in the form of the response."""
    return [
        AclData(metadata=ResourceMetadata(self=address(acl, links)), cluster_id=links.cluster_id, **asdict(acl))
        for acl in acls
    ]


def address(about: Acl | AclFilter, links: Links) -> str:
    """The URL of an ACL, or of a search: ACLs have no ids, so the URL contains all fields."""
    query = {field: "" if value is None else str(value) for field, value in asdict(about).items()}
    return f"{links.url('acls')}?{urlencode(query, safe='*')}"
