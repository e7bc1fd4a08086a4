"""What logins and access rules add to the app of a service: error responses, and security schemes in its document."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response

from core_broker.service.web.errors import envelope
from core_broker.web_access.errors import FORBIDDEN, AccessError, Forbidden
from core_broker.web_access.settings import BASIC, BEARER, CERTIFICATE, AccessSettings

_SCHEMES = {
    BASIC: ("basic", {"type": "http", "scheme": "basic", "description": "A user of the Kafka cluster."}),
    BEARER: ("bearer", {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}),
    CERTIFICATE: ("certificate", {"type": "mutualTLS"}),
}
_REFUSALS = {
    "401": "The request has no login, or a wrong one.",
    "403": "The caller may not do that.",
    "429": "Too many failed logins.",
}


def add_access(app: FastAPI, settings: AccessSettings, *, forbidden_code: int = FORBIDDEN) -> None:
    """Let an app answer AccessErrors with the common error responses, and say in its document how to log in.

    `forbidden_code` is the error code beside status 403. Call it when the app is complete.
    """

    async def answer(_: Request, error: Exception) -> Response:
        assert isinstance(error, AccessError)
        code = forbidden_code if isinstance(error, Forbidden) else error.code
        return envelope(error.status, code, error.message, retry_after_seconds=error.retry_after_seconds)

    app.add_exception_handler(AccessError, answer)
    schemes = dict(_SCHEMES[method] for method in sorted(settings.methods))
    if schemes:
        app.openapi = _with_schemes(app.openapi, schemes, settings.authentication_skip_paths)  # type: ignore[method-assign]  # FastAPI's way to extend it


def _with_schemes(
    original: Callable[[], dict[str, Any]], schemes: dict[str, Any], open_paths: Sequence[str]
) -> Callable[[], dict[str, Any]]:
    def openapi() -> dict[str, Any]:
        document = original()
        for operation in (found for methods in document["paths"].values() for found in methods.values()):
            for status, description in _REFUSALS.items():
                operation["responses"].setdefault(status, {"description": description})
        for operation in (found for path in open_paths for found in document["paths"].get(path, {}).values()):
            operation["security"] = []
        document.setdefault("components", {})["securitySchemes"] = schemes
        document["security"] = [{name: []} for name in schemes]
        return document

    return openapi
