"""CORS: lets browsers hand the proxy's responses to pages from other origins."""

from starlette.middleware.cors import CORSMiddleware

from core_broker.service.web.asgi import Application
from rest_proxy.settings import ProxySettings

_EXPOSED = ("Location", "Retry-After")
"""Response headers that such pages may read."""


def allow_origins(app: Application, settings: ProxySettings) -> Application:
    """Wrap an application so that pages from the configured origins may use it."""
    if not settings.access_control_allow_origin:
        return app
    return CORSMiddleware(
        app,
        allow_origins=settings.access_control_allow_origin,
        allow_methods=settings.access_control_allow_methods,
        allow_headers=settings.access_control_allow_headers,
        expose_headers=_EXPOSED,
    )
