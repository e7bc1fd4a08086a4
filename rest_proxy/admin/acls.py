"""ACLs: which may be made, and how they are told."""

from collections.abc import Iterable
from dataclasses import asdict
from urllib.parse import urlencode

from core_broker.client.access import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.acls import AclData, CreateAclBody
from rest_proxy.models.v3.resources import CollectionMetadata, Links, ResourceMetadata

_NOT_IN_RULES = {
    "resource_type": (ResourceType.ANY, ResourceType.UNKNOWN),
    "pattern_type": (PatternType.ANY, PatternType.MATCH, PatternType.UNKNOWN),
    "operation": (Operation.ANY, Operation.UNKNOWN),
    "permission": (Permission.ANY, Permission.UNKNOWN),
}
_WORDS = tuple(_NOT_IN_RULES)


# --- asked ---


def rule(body: CreateAclBody) -> Acl:
    """A rule to be added; 400 when it is none."""
    for field, refused in _NOT_IN_RULES.items():
        if (value := getattr(body, field)) in refused:
            raise ProxyError(400, f"{field} cannot be {value}")
    return Acl(**dict(body))


def check_search(wanted: AclFilter) -> None:
    """400 for a filter that cannot be meant."""
    for field in _WORDS:
        if getattr(wanted, field) == "UNKNOWN":
            raise ProxyError(400, f"{field} cannot be UNKNOWN")


def check_deletion(wanted: AclFilter) -> None:
    """The same for rules to be removed: what is not said is UNKNOWN, so that nobody removes all by forgetting it."""
    for field in _WORDS:
        if getattr(wanted, field) == "UNKNOWN":
            raise ProxyError(400, f"{field} cannot be unspecified or UNKNOWN")


# --- told ---


def acl_data(acls: Iterable[Acl], links: Links) -> list[AclData]:
    """Rules as they are answered."""
    return [
        AclData(metadata=ResourceMetadata(self=address(acl, links)), cluster_id=links.cluster_id, **asdict(acl))
        for acl in acls
    ]


def metadata(wanted: AclFilter, links: Links) -> CollectionMetadata:
    """Where what a filter finds is found again."""
    return CollectionMetadata(self=address(wanted, links))


def address(about: Acl | AclFilter, links: Links) -> str:
    """Where a rule, or what a filter finds, is found: rules have no names, so that all their fields are in it."""
    query = {field: "" if value is None else str(value) for field, value in asdict(about).items()}
    return f"{links.url('acls')}?{urlencode(query, safe='*')}"
