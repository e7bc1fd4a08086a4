"""Whether a client may do what it asks for: the questions of dispatch and of handlers, answered by the table.

Handlers never name an operation. They ask for a kind of resource, and `access_table` says which operation their API
needs there. Without an authorizer everything is allowed, and so is what this node asks itself.
"""

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from core_broker.cluster.metadata import ResourceType as ConfigResource
from core_broker.errors import BrokerError
from core_broker.handlers.access_table import BROKER_ROWS, CONTROLLER_ROWS, DENIED, Check, Need, Purpose, Row
from core_broker.handlers.context import RequestContext
from core_broker.protocol.fields import Message
from core_broker.security.authorizer import Authorizer
from core_broker.security.operations import CLUSTER_NAME, ResourceType

Predicate: TypeAlias = Callable[[str], bool]
"""Whether the client may use the resource with this name. Each name is asked about once."""

ConfigRefusal: TypeAlias = Callable[[int, str], BrokerError | None]
"""The error with which the configs of a resource, by type and name, are refused, if they are."""

_KIND_OF_CONFIG: Final = {ConfigResource.TOPIC: ResourceType.TOPIC, ConfigResource.GROUP: ResourceType.GROUP}
"""Configs of all other kinds of resources belong to the cluster."""


def row_of(context: RequestContext) -> Row:
    """The row of the API; raises KeyError if it has none, so that what is not in the table is refused."""
    return (CONTROLLER_ROWS if context.session.is_controller_listener else BROKER_ROWS)[context.api_key]


def check_request(request: Message, context: RequestContext) -> None:
    """Raise the error of the first check of the whole request that fails; called before the handler."""
    authorizer = context.authorizer
    if authorizer is None:
        return
    row = row_of(context)
    for need in row.needs:
        if need.is_whole and need.versions[0] <= context.api_version <= need.versions[1]:
            _check_whole(need, request, context, authorizer)


def _check_whole(need: Need, request: Message, context: RequestContext, authorizer: Authorizer) -> None:
    if need.unless and getattr(request, need.unless) is not None:
        return
    name = getattr(request, need.named_by) if need.named_by else CLUSTER_NAME
    if name is not None and not _is_allowed(need, name, context, authorizer):
        raise BrokerError(need.denied)


def may_use(
    context: RequestContext, kind: ResourceType, purpose: Purpose = Purpose.USE, *, is_logged: bool = True
) -> Predicate:
    """Whether the client may use resources of this kind, by name; `is_logged` is for names it did not ask for."""
    authorizer = context.authorizer
    if authorizer is None:
        return _everything
    need, own, others = _question(context.api_key, context.session.is_controller_listener, kind, purpose)
    is_logged = is_logged and need.is_logged
    for check in others:  # an alternative on the cluster is the same for all of them
        if _ask(check, CLUSTER_NAME, context, authorizer, is_logged=False):
            return _everything
    answers: dict[str, bool] = {}

    def is_allowed(name: str) -> bool:
        answer = answers.get(name)
        if answer is None:
            answer = answers[name] = _ask(own, name, context, authorizer, is_logged=is_logged)
        return answer

    return is_allowed


def may_use_topics(context: RequestContext, purpose: Purpose = Purpose.USE, *, is_logged: bool = True) -> Predicate:
    """Whether the client may use topics, by name."""
    return may_use(context, ResourceType.TOPIC, purpose, is_logged=is_logged)


def may_use_groups(context: RequestContext) -> Predicate:
    """Whether the client may use groups, by name."""
    return may_use(context, ResourceType.GROUP)


def may_use_transactions(context: RequestContext) -> Predicate:
    """Whether the client may use transactional ids."""
    return may_use(context, ResourceType.TRANSACTIONAL_ID)


def may_use_cluster(context: RequestContext, purpose: Purpose = Purpose.USE) -> bool:
    """Whether the client may do on the cluster what its API needs for this purpose."""
    return may_use(context, ResourceType.CLUSTER, purpose)(CLUSTER_NAME)


def may_see_token(context: RequestContext, token_id: str, owner: str) -> bool:
    """Whether the client may see a delegation token of another owner, written as `User:alice`."""
    return may_use(context, ResourceType.DELEGATION_TOKEN)(token_id) or may_use(context, ResourceType.USER)(owner)


def check_group(context: RequestContext, group_id: str) -> None:
    """Raise GROUP_AUTHORIZATION_FAILED unless the client may use the group."""
    if not may_use_groups(context)(group_id):
        raise BrokerError(DENIED[ResourceType.GROUP])


def config_refusal(context: RequestContext) -> ConfigRefusal:
    """The error with which the configs of a resource are refused, if they are."""
    if context.authorizer is None:
        return lambda _type, _name: None
    predicates: dict[ResourceType, Predicate] = {}

    def refusal(resource_type: int, name: str) -> BrokerError | None:
        kind = _KIND_OF_CONFIG.get(resource_type, ResourceType.CLUSTER)  # type: ignore[call-overload]  # any number
        if kind not in predicates:
            predicates[kind] = may_use(context, kind)
        is_allowed = predicates[kind](CLUSTER_NAME if kind is ResourceType.CLUSTER else name)
        return None if is_allowed else BrokerError(DENIED[kind])

    return refusal


@cache
def _question(
    api_key: int, is_controller: bool, kind: ResourceType, purpose: Purpose
) -> tuple[Need, Check, tuple[Check, ...]]:
    """What an API needs on a kind of resource, the check of that resource itself, and the alternatives to it."""
    row = (CONTROLLER_ROWS if is_controller else BROKER_ROWS)[api_key]
    for need in row.needs:
        if not need.is_whole and need.kind is kind and need.purpose is purpose:
            (own,) = (check for check in need.any_of if check.kind is kind)
            return need, own, tuple(check for check in need.any_of if check.kind is not kind)
    raise LookupError(f"the row of {row.name} in the table of access has no check of {kind.name} {purpose}")


def _is_allowed(need: Need, name: str, context: RequestContext, authorizer: Authorizer) -> bool:
    last = len(need.any_of) - 1
    return any(
        _ask(check, name, context, authorizer, is_logged=need.is_logged and position == last)
        for position, check in enumerate(need.any_of)
    )


def _ask(check: Check, name: str, context: RequestContext, authorizer: Authorizer, *, is_logged: bool) -> bool:
    principal, host, api = context.session.principal, context.session.host, row_of(context).name
    if check.is_on_any:
        return authorizer.allows_on_any(principal, host, check.operation, check.kind, api=api, is_logged=is_logged)
    return authorizer.allows(principal, host, check.operation, check.kind, name, api=api, is_logged=is_logged)


def _everything(_name: str) -> bool:
    return True


__all__ = [
    "ConfigRefusal",
    "Predicate",
    "Purpose",
    "check_group",
    "check_request",
    "config_refusal",
    "may_see_token",
    "may_use",
    "may_use_cluster",
    "may_use_groups",
    "may_use_topics",
    "may_use_transactions",
    "row_of",
]
