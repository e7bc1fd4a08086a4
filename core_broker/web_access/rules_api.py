"""`/security/acls`: the access rules over HTTP, the same in every service that has some."""

import ipaddress
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from core_broker.protocol.principals import parse_principal
from core_broker.security.acls import WILDCARD
from core_broker.security.audit import AuditLog
from core_broker.service.web.limits import BoundedRoute
from core_broker.web_access.callers import Caller, CallerDependency
from core_broker.web_access.errors import Forbidden, InvalidRule
from core_broker.web_access.rules import (
    WHOLE,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    Rule,
    RuleFilter,
    Rules,
    RuleStore,
)

_RULES_MAX: Final = 1000
_REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    403: {"description": "The caller may not change access rules, or they are not enforced."}
}
_NAME_LENGTH_MAX: Final = 1024
_Name = Annotated[str, Field(max_length=_NAME_LENGTH_MAX)]


class RuleBody(BaseModel):
    """One access rule."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    principal: _Name = Field(min_length=1, examples=["User:alice"])
    """Who it is about; `User:*` is everyone."""
    resource: _Name = Field(examples=["orders-"])
    """The name of what it is about, the beginning of names, or `*`."""
    resource_type: ResourceType
    """The kind of what it is about."""
    pattern_type: PatternType = PatternType.LITERAL
    """PREFIXED: all names that begin like this."""
    host: _Name = "*"
    """The address that a request comes from; `*` is every address."""
    operation: Operation
    """What it allows or denies."""
    permission: Permission
    """ALLOW or DENY, which wins."""


class FilterBody(BaseModel):
    """Selects rules; what is not given matches everything."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    principal: _Name | None = None
    """Those of this principal."""
    resource: _Name | None = None
    """Those about exactly this name."""
    resource_type: ResourceType | None = None
    """Those about this kind."""
    pattern_type: PatternType | None = None
    """Those with this kind of name."""
    host: _Name | None = None
    """Those for this address."""
    operation: Operation | None = None
    """Those about this operation."""
    permission: Permission | None = None
    """Those that allow, or those that deny."""


def router(
    rules: Rules,
    store: RuleStore,
    *,
    resource_types: Collection[ResourceType],
    whole: ResourceType,
    audit: AuditLog | None = None,
    route_class: type[APIRoute] = BoundedRoute,
) -> APIRouter:
    """The routes of a service with these types of resources.

    Rules are shown to callers with DESCRIBE on `whole` (REGISTRY or CONNECT), and changed by those with ALTER on it.
    `audit` is that of the service's Login.
    """
    routes = APIRouter(route_class=route_class, tags=["security"])

    def note(caller: Caller, api: str, changed: Sequence[Rule]) -> None:
        rules.reload(store)
        if audit is not None and changed:
            audit.changed_over_http(caller.principal, caller.host, api, resources=list(map(str, changed)))

    def require_change(caller: Caller, api: str) -> None:
        if not rules.is_enforced:  # any client could make rules that count once they are
            raise Forbidden("Access rules are not enforced here, so they cannot be changed: set authentication.method")
        rules.require(caller, Operation.ALTER, whole, WHOLE[whole], api=api)

    @routes.get("/security/acls", operation_id="listAcls", response_model=list[RuleBody])
    def list_rules(caller: CallerDependency, wanted: Annotated[FilterBody, Query()]) -> list[RuleBody]:
        """The access rules that match the parameters."""
        rules.require(caller, Operation.DESCRIBE, whole, WHOLE[whole], api="DescribeAcls")
        return [_body(rule) for rule in _select(store.read(), [wanted])]

    @routes.post("/security/acls", operation_id="createAcls", status_code=201, responses=_REFUSED)
    def create_rules(
        caller: CallerDependency, bodies: Annotated[list[RuleBody], Field(max_length=_RULES_MAX)]
    ) -> Response:
        """Add access rules; those that exist stay as they are."""
        require_change(caller, "CreateAcls")
        added = [_rule(body, resource_types) for body in bodies]
        store.add(added)
        note(caller, "CreateAcls", added)
        return Response(status_code=201)

    @routes.delete("/security/acls", operation_id="deleteAcls", response_model=list[RuleBody], responses=_REFUSED)
    def delete_rules(
        caller: CallerDependency, bodies: Annotated[list[FilterBody], Field(max_length=_RULES_MAX)]
    ) -> list[RuleBody]:
        """Remove the access rules that match one of the filters; returns them."""
        require_change(caller, "DeleteAcls")
        removed = _select(store.read(), bodies)
        store.remove(removed)
        note(caller, "DeleteAcls", removed)
        return [_body(rule) for rule in removed]

    return routes


def _select(rules: Sequence[Rule], wanted: Sequence[FilterBody]) -> list[Rule]:
    filters = [RuleFilter(**body.model_dump()) for body in wanted]
    return [rule for rule in rules if any(each.matches(rule) for each in filters)]


def _body(rule: Rule) -> RuleBody:
    return RuleBody.model_construct(**{name: getattr(rule, name) for name in rule.__struct_fields__})


def _rule(body: RuleBody, resource_types: Collection[ResourceType]) -> Rule:
    """The rule in a body. Raises InvalidRule."""
    if body.resource_type not in resource_types:
        raise InvalidRule(f"resource_type must be one of {', '.join(resource_types)}, not {body.resource_type}")
    try:
        parse_principal(body.principal)
    except ValueError as error:
        raise InvalidRule(f"principal: {error}") from None
    if body.host != WILDCARD and not _is_address(body.host):
        raise InvalidRule(f"host must be an address, or {WILDCARD} for every address, not {body.host!r}")
    rule = Rule(**body.model_dump())
    name = WHOLE.get(rule.resource_type)
    if name is None:
        return rule
    if rule.pattern_type is not PatternType.LITERAL or rule.resource not in ("", "*", name):
        raise InvalidRule(f"the only {rule.resource_type} is called {name!r}; its rules have pattern_type LITERAL")
    return replace(rule, resource=name)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
