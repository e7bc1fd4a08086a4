"""`/connector-plugins`: the available plugins, their keys, and the validation of configurations."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from fastapi.routing import APIRoute

from connect.api.errors import ConfigError
from connect.rest.answers import json_response
from connect.rest.guard import AccessDependency
from connect.rest.models import ConfigBody, errors, texts
from connect.rest.views import view
from connect.runtime.configuration.config_infos import ConfigInfos, KeyInfo
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Family, PluginInfo, Plugins
from connect.runtime.configuration.validation import plugin_keys, validate
from connect.runtime.errors import BadRequest, NotFound
from connect.settings import ConnectSettings
from core_broker.service.web.paths import Segment

PluginName = Annotated[
    Segment,
    Path(
        description="The name of the class: the full name, its last part, or that without Connector.",
        examples=["FileStreamSink"],
    ),
]
ConnectorsOnly = Annotated[
    bool,
    Query(alias="connectorsOnly", description="false: list transforms, predicates and converters, too."),
]
Version = Annotated[str | None, Query(description="Ignored: there is one version of each plugin.")]


def router(
    plugins: Plugins, *, route_class: type[APIRoute], providers: ConfigProviders, settings: ConnectSettings
) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/connector-plugins", tags=["plugins"], route_class=route_class)

    @routes.get("", response_model=view(list[PluginInfo]), responses=errors(), operation_id="listPlugins")
    def list_plugins(connectors_only: ConnectorsOnly = True) -> Response:
        """The plugins of this worker."""
        return json_response(plugins.infos(connectors_only=connectors_only))

    @routes.get(
        "/{plugin}/config", response_model=view(list[KeyInfo]), responses=errors(404), operation_id="getPluginConfig"
    )
    def get_plugin_config(plugin: PluginName, version: Version = None) -> Response:  # noqa: ARG001 - it is ignored
        """The definitions of a plugin's keys."""
        families: tuple[Family[Any], ...] = (
            plugins.connectors,
            plugins.converters,
            plugins.header_converters,
            plugins.transforms,
            plugins.predicates,
        )
        for family in families:
            with suppress(ConfigError):
                return json_response(plugin_keys(family.find(plugin)))
        raise NotFound(f"Unknown plugin {plugin}.")

    @routes.put(
        "/{plugin}/config/validate",
        response_model=view(ConfigInfos),
        responses=errors(404),
        operation_id="validateConfig",
    )
    def validate_config(
        access: AccessDependency, plugin: PluginName, config: Annotated[ConfigBody, Body()]
    ) -> Response:
        """Validate a configuration without using it; the response lists the errors of every key with status 200."""
        given = texts(config)
        access.require_use(given.get("name"))
        _require_match(plugins, plugin, given.get("connector.class"))
        return json_response(validate(given, plugins=plugins, providers=providers, settings=settings).infos)

    return routes


def _require_match(plugins: Plugins, asked: str, included: str | None) -> None:
    """The class in the configuration must be the one in the path, under any of its names."""
    if included is None or _short_name(included).endswith(_short_name(asked)):
        return
    with suppress(ConfigError):
        if plugins.connectors.find(included) is plugins.connectors.find(asked):
            return
    raise BadRequest(f"Included connector type {included} does not match request type {asked}")


def _short_name(name: str) -> str:
    return name.removesuffix("Connector") or name
