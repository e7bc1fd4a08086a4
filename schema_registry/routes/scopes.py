"""`/config` and `/mode`: for one subject, for a context, or for all subjects."""

from fastapi import APIRouter, Response

from core_broker.service.web.paths import Segment
from schema_registry.models import Config, ConfigUpdate, ModeBody
from schema_registry.registry.registry import Registry
from schema_registry.routes.guard import GuardedRoute
from schema_registry.routes.responses import json_response


def config_router(registry: Registry) -> APIRouter:
    """The routes of `/config`."""
    routes = APIRouter(prefix="/config", tags=["config"], route_class=GuardedRoute)

    @routes.get("", response_model=Config)
    def global_config(*, defaultToGlobal: bool = False) -> Response:
        """The config of all subjects."""
        return json_response(registry.config(None, default_to_global=defaultToGlobal))

    @routes.put("", response_model=ConfigUpdate)
    def update_global(body: ConfigUpdate) -> Response:
        """Change the config of all subjects."""
        return json_response(registry.update_config(None, body))

    @routes.delete("", response_model=Config)
    def delete_global() -> Response:
        """Remove the global config; the server's settings apply again."""
        return json_response(registry.delete_config(None))

    @routes.get("/{subject}", response_model=Config)
    def config(subject: Segment, *, defaultToGlobal: bool = False) -> Response:
        """The config of a subject."""
        return json_response(registry.config(subject, default_to_global=defaultToGlobal))

    @routes.put("/{subject}", response_model=ConfigUpdate)
    def update(subject: Segment, body: ConfigUpdate) -> Response:
        """Change the config of a subject, which need not exist yet."""
        return json_response(registry.update_config(subject, body))

    @routes.delete("/{subject}", response_model=Config)
    def delete(subject: Segment) -> Response:
        """Remove the config of a subject, which then inherits it again."""
        return json_response(registry.delete_config(subject))

    return routes


def mode_router(registry: Registry) -> APIRouter:
    """The routes of `/mode`."""
    routes = APIRouter(prefix="/mode", tags=["mode"], route_class=GuardedRoute)

    @routes.get("", response_model=ModeBody)
    def global_mode(*, defaultToGlobal: bool = False) -> Response:
        """The mode of all subjects: whether schemas may be registered."""
        return json_response(registry.mode(None, default_to_global=defaultToGlobal))

    @routes.put("", response_model=ModeBody)
    def set_global(body: ModeBody, *, force: bool = False) -> Response:
        """Change the mode of all subjects."""
        return json_response(registry.set_mode(None, body, force=force))

    @routes.delete("", response_model=ModeBody)
    def delete_global(*, recursive: bool = False) -> Response:
        """Go back to READWRITE, with `recursive` for every subject as well."""
        return json_response(registry.delete_mode(None, recursive=recursive))

    @routes.get("/{subject}", response_model=ModeBody)
    def mode(subject: Segment, *, defaultToGlobal: bool = False) -> Response:
        """The mode of a subject."""
        return json_response(registry.mode(subject, default_to_global=defaultToGlobal))

    @routes.put("/{subject}", response_model=ModeBody)
    def set_mode(subject: Segment, body: ModeBody, *, force: bool = False) -> Response:
        """Change the mode of a subject."""
        return json_response(registry.set_mode(subject, body, force=force))

    @routes.delete("/{subject}", response_model=ModeBody)
    def delete(subject: Segment, *, recursive: bool = False) -> Response:
        """Remove the mode of a subject, which then inherits it again."""
        return json_response(registry.delete_mode(subject, recursive=recursive))

    return routes
