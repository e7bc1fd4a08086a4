"""`/config` and `/mode`: what holds for one subject, for a context, or for all."""

from fastapi import APIRouter, Response

from core_broker.service.web.limits import BoundedRoute
from core_broker.service.web.paths import Segment
from schema_registry.models import Config, ConfigUpdate, ModeBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.answers import told


def config_router(registry: Registry) -> APIRouter:
    """The routes of `/config`, answering from a registry."""
    routes = APIRouter(prefix="/config", tags=["config"], route_class=BoundedRoute)

    @routes.get("", response_model=Config)
    def global_config(*, defaultToGlobal: bool = False) -> Response:
        """What holds for all subjects."""
        return told(registry.config(None, default_to_global=defaultToGlobal))

    @routes.put("", response_model=ConfigUpdate)
    def update_global(body: ConfigUpdate) -> Response:
        """Change what holds for all subjects."""
        return told(registry.update_config(None, body))

    @routes.delete("", response_model=Config)
    def delete_global() -> Response:
        """Go back to the server's settings."""
        return told(registry.delete_config(None))

    @routes.get("/{subject}", response_model=Config)
    def config(subject: Segment, *, defaultToGlobal: bool = False) -> Response:
        """What was set for a subject."""
        return told(registry.config(subject, default_to_global=defaultToGlobal))

    @routes.put("/{subject}", response_model=ConfigUpdate)
    def update(subject: Segment, body: ConfigUpdate) -> Response:
        """Change what holds for a subject; the subject need not exist yet."""
        return told(registry.update_config(subject, body))

    @routes.delete("/{subject}", response_model=Config)
    def delete(subject: Segment) -> Response:
        """Let a subject follow the rest again."""
        return told(registry.delete_config(subject))

    return routes


def mode_router(registry: Registry) -> APIRouter:
    """The routes of `/mode`, answering from a registry."""
    routes = APIRouter(prefix="/mode", tags=["mode"], route_class=BoundedRoute)

    @routes.get("", response_model=ModeBody)
    def global_mode(*, defaultToGlobal: bool = False) -> Response:
        """Whether schemas may be registered."""
        return told(registry.mode(None, default_to_global=defaultToGlobal))

    @routes.put("", response_model=ModeBody)
    def set_global(body: ModeBody, *, force: bool = False) -> Response:
        """Change the mode for all subjects."""
        return told(registry.set_mode(None, body, force=force))

    @routes.delete("", response_model=ModeBody)
    def delete_global(*, recursive: bool = False) -> Response:
        """Go back to READWRITE; with `recursive` for every subject too."""
        return told(registry.delete_mode(None, recursive=recursive))

    @routes.get("/{subject}", response_model=ModeBody)
    def mode(subject: Segment, *, defaultToGlobal: bool = False) -> Response:
        """The mode that was set for a subject."""
        return told(registry.mode(subject, default_to_global=defaultToGlobal))

    @routes.put("/{subject}", response_model=ModeBody)
    def set_mode(subject: Segment, body: ModeBody, *, force: bool = False) -> Response:
        """Change the mode for a subject."""
        return told(registry.set_mode(subject, body, force=force))

    @routes.delete("/{subject}", response_model=ModeBody)
    def delete(subject: Segment, *, recursive: bool = False) -> Response:
        """Let a subject follow the rest again."""
        return told(registry.delete_mode(subject, recursive=recursive))

    return routes
