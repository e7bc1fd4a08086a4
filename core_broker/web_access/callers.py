"""Who sends a request, and the dependency by which routes learn it."""

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from fastapi import Depends, Request
from typing_extensions import override

from core_broker.protocol.principals import ANONYMOUS, Principal, parse_principal
from core_broker.service.web.asgi import Scope

_KEY: Final = "caudal.caller"


class PasswordCredentials(msgspec.Struct, frozen=True):
    """The user name and the password of a caller, which were right."""

    user: str
    password: str

    @override
    def __repr__(self) -> str:
        return f"PasswordCredentials({self.user!r})"

    @override
    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("user", self.user)]


class BearerCredentials(msgspec.Struct, frozen=True):
    """The token of a caller, which was valid."""

    token: str
    expires_at_ms: int

    @override
    def __repr__(self) -> str:
        return f"BearerCredentials(expires_at_ms={self.expires_at_ms})"

    @override
    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires_at_ms", self.expires_at_ms)]


Credentials: TypeAlias = PasswordCredentials | BearerCredentials


class Caller(msgspec.Struct, frozen=True):
    """Who sends a request, from which address, and what it has logged in with."""

    principal: Principal = ANONYMOUS
    host: str = ""
    credentials: Credentials | None = None
    """None for a certificate, and for a caller that did not have to log in."""

    @property
    def is_anonymous(self) -> bool:
        """Whether the caller did not log in."""
        return self.principal == ANONYMOUS


def caller_named(principal: str, *, host: str) -> Caller:
    """The caller that another process of the service has let in. Raises ValueError."""
    return Caller(parse_principal(principal), host)


def set_caller(scope: Scope, caller: Caller) -> None:
    """Make the caller known to the handler of a request."""
    scope[_KEY] = caller


def caller_of(request: Any) -> Caller:
    """The caller of a request, given the request or its ASGI scope; anonymous if callers need no login."""
    scope = getattr(request, "scope", request)
    found = scope.get(_KEY)
    return found if isinstance(found, Caller) else Caller(host=host_of(scope))


def host_of(scope: Scope) -> str:
    """The address that a request comes from; empty if it is not known."""
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _caller(request: Request) -> Caller:  # not on a worker thread
    return caller_of(request)


CallerDependency = Annotated[Caller, Depends(_caller)]
"""A parameter of a route: `caller: CallerDependency`."""
