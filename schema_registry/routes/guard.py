"""Lets a request through to its route if the caller has the rights in the access table."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final
from urllib.parse import unquote

from fastapi import Depends, FastAPI, Request, Response
from typing_extensions import override

from core_broker.service.web.limits import BoundedRoute
from core_broker.web_access.callers import Caller, caller_of
from schema_registry.errors import forbidden
from schema_registry.registry import subject_names
from schema_registry.registry.access import EVERYTHING, Access, AccessRules
from schema_registry.routes.access_table import ROWS, On, Row

OnChange = Callable[[Caller, str, str], None]
"""Is told the caller, the route, and the path of the request, which names what was changed."""

SHOWN_THROUGH: Final = "caudal.registry.shown_through"
"""A list in the scope of a request: subjects of which each lets a caller see the schema in the response."""
_ACCESS: Final = "caudal.registry.access"


class Guard:
    """The access rules of an app; without them everybody may do everything."""

    def __init__(self, rules: AccessRules, *, on_change: OnChange | None = None) -> None:
        self._rules = rules if rules.is_enforced else None
        self._on_change = on_change

    def install(self, app: FastAPI) -> None:
        """Guard all GuardedRoutes of an app."""
        app.state.guard = self

    def admit(self, request: Request, api: str) -> Access:
        """What the caller may do. Raises 40301 if that does not include this route."""
        if self._rules is None:
            return EVERYTHING
        row = ROWS.get(api)
        if row is None:
            raise forbidden(f"There are no access rights for {api}")
        access = Access(self._rules, caller_of(request), api=api, shown_through=request.scope.get(SHOWN_THROUGH))
        for operation, on in row.needs:
            if on is On.REGISTRY:
                access.require_whole(operation)
            else:
                access.require(operation, subject_names.parse(_subject(request)))
        return access

    def note(self, request: Request, api: str) -> None:
        """Tell the audit log if the request has changed something."""
        if self._on_change is not None and ROWS.get(api, Row()).is_change:
            self._on_change(caller_of(request), api, unquote(request.scope["path"]))


class GuardedRoute(BoundedRoute):
    """A route that needs what the access table says; all routes of the registry are of this class."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that handles a request."""
        handle = super().get_route_handler()
        path = self.path

        async def handle_guarded(request: Request) -> Response:
            guard: Guard = request.app.state.guard
            api = f"{request.scope['method']} {path}"
            request.scope[_ACCESS] = guard.admit(request, api)
            response = await handle(request)
            guard.note(request, api)
            return response

        return handle_guarded


async def _access(request: Request) -> Access:
    access: Access = request.scope[_ACCESS]
    return access


AccessDependency = Annotated[Access, Depends(_access)]
"""A parameter of a route: `access: AccessDependency`."""


def _subject(request: Request) -> str:
    return unquote(request.path_params["subject"])
