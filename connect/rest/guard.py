"""Lets a request through to its route if the caller has the right in the access table."""

from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute

from connect.rest.access_table import ANYONE, ROWS, On
from connect.runtime.errors import connector_not_found
from core_broker.web_access.callers import Caller, caller_of
from core_broker.web_access.errors import Forbidden, Unavailable
from core_broker.web_access.rules import WHOLE, Operation, ResourceType, Rules

OnChange = Callable[[Caller, str, str], None]
"""Is told the caller, the route, and the path of the request, which names what was changed."""

_ACCESS: Final = "caudal.connect.access"
_SEEING: Final = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
_USING: Final = (Operation.CREATE, Operation.ALTER_CONFIGS)


class Access:
    """What the caller of one request may do. Thread-safe."""

    def __init__(self, rules: Rules | None, caller: Caller, *, api: str = "") -> None:
        """Without rules, everything."""
        self._rules = rules
        self._caller = caller
        self._api = api

    def allows(self, operation: Operation, connector: str) -> bool:
        """Whether the caller may do something to a connector; nothing is logged."""
        return self._rules is None or self._rules.allows(self._caller, operation, ResourceType.CONNECTOR, connector)

    def sees(self, connector: str) -> bool:
        """Whether the caller may know that a connector exists."""
        return any(self.allows(operation, connector) for operation in _SEEING)

    def require(self, operation: Operation, connector: str) -> None:
        """Raise Forbidden unless the caller may do something to a connector; NotFound if it may not see it, either."""
        try:
            self._require(operation, ResourceType.CONNECTOR, connector)
        except Forbidden:
            if self.sees(connector):  # whether it exists makes no difference
                raise
            raise connector_not_found(connector) from None

    def require_put(self, connector: str, *, is_new: bool) -> None:
        """Raise Forbidden unless the caller may create a connector, or change the configuration of one that exists."""
        operation = Operation.CREATE if is_new else Operation.ALTER_CONFIGS
        self._require(operation, ResourceType.CONNECTOR, connector)

    def require_use(self, connector: str | None) -> None:
        """Raise Forbidden unless the caller may give a connector of this name, or any, a configuration."""
        if self._rules is None:
            return
        if connector is None:
            kind = ResourceType.CONNECTOR
            if not any(self._rules.allows_on_any(self._caller, operation, kind) for operation in _USING):
                self._require(Operation.CREATE, kind, "*")
        elif not any(self.allows(operation, connector) for operation in _USING):
            missing = Operation.ALTER_CONFIGS if self.sees(connector) else Operation.CREATE
            self._require(missing, ResourceType.CONNECTOR, connector)

    def require_whole(self, operation: Operation) -> None:
        """Raise Forbidden unless the caller may do something to Connect as a whole."""
        self._require(operation, ResourceType.CONNECT, WHOLE[ResourceType.CONNECT])

    def _require(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        if self._rules is not None:
            self._rules.require(self._caller, operation, resource_type, name, api=self._api)


class Guard:
    """The access rules of an app; without them everybody may do everything."""

    def __init__(self, rules: Rules, *, on_change: OnChange | None = None, open_paths: Collection[bytes] = ()) -> None:
        """`open_paths` need no login, and no right on Connect."""
        self._rules = rules if rules.is_enforced else None
        self._on_change = on_change
        self._open_paths = open_paths

    def admit(self, request: Request, api: str) -> None:
        """Let a request through. Raises Forbidden or NotFound; Unavailable until the rules are known."""
        access = Access(self._rules, caller_of(request), api=api)
        request.scope[_ACCESS] = access
        row = ROWS[api]
        if self._rules is None or row is ANYONE:
            return
        if not self._rules.is_known:
            raise Unavailable("This worker is starting: it does not know the access rules yet")
        if row.need is None:
            return
        operation, on = row.need
        if on is On.CONNECTOR:
            access.require(operation, unquote(request.path_params["connector"]))
        elif request.scope["raw_path"] not in self._open_paths:
            access.require_whole(operation)

    def note(self, request: Request, api: str) -> None:
        """Tell the audit log if the request has changed something."""
        if self._on_change is not None and ROWS[api].is_change:
            self._on_change(caller_of(request), api, unquote(request.scope["path"]))


async def _access(request: Request) -> Access:  # not on a worker thread
    access: Access = request.scope[_ACCESS]
    return access


AccessDependency = Annotated[Access, Depends(_access)]
"""A parameter of a route: `access: AccessDependency`."""


def require_rows(routers: Iterable[APIRouter], route_class: type[APIRoute]) -> None:
    """Raise LookupError if there is a route that is not guarded, or that is not in the access table."""
    for route in (route for router in routers for route in router.routes):
        if isinstance(route, APIRoute):
            for api in (f"{method} {route.path}" for method in sorted(route.methods or ())):
                if api not in ROWS or not isinstance(route, route_class):
                    raise LookupError(f"There are no access rights for {api}")
