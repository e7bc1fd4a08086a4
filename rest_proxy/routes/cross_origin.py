"""Pages of other origins: what browsers must be told before they hand answers over to them (CORS)."""

from starlette.middleware.cors import CORSMiddleware

from core_broker.service.web.asgi import Application
from rest_proxy.settings import ProxySettings

_EXPOSED = ("Location", "Retry-After")
"""Headers of answers that pages may read, too."""


def shared(app: Application, settings: ProxySettings) -> Application:
    """The same application, also for pages of the origins that the operator allows."""
    if not settings.access_control_allow_origin:
        return app
    return CORSMiddleware(
        app,
        allow_origins=settings.access_control_allow_origin,
        allow_methods=settings.access_control_allow_methods,
        allow_headers=settings.access_control_allow_headers,
        expose_headers=_EXPOSED,
    )
