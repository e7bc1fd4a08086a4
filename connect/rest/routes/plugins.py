"""`/connector-plugins`: what configurations may name, what their keys mean, and whether a configuration is right."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from fastapi.routing import APIRoute

from connect.api.errors import ConfigError
from connect.rest.answers import json_response
from connect.rest.models import ConfigBody, errors, texts
from connect.rest.views import view
from connect.runtime.configuration.config_infos import ConfigInfos, KeyInfo
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import PluginInfo, Plugins
from connect.runtime.configuration.validation import plugin_keys, validate
from connect.runtime.errors import BadRequest, NotFound
from connect.settings import ConnectSettings
from core_broker.service.web.paths import Segment

PluginName = Annotated[
    Segment,
    Path(
        description="The name of the class: in full, its last part, or that without Connector.",
        examples=["FileStreamSink"],
    ),
]
ConnectorsOnly = Annotated[
    bool,
    Query(alias="connectorsOnly", description="false: transforms, predicates and converters are listed, too."),
]
Version = Annotated[str | None, Query(description="Ignored: there is one version of each plugin.")]


def router(
    plugins: Plugins, *, route_class: type[APIRoute], providers: ConfigProviders, settings: ConnectSettings
) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/connector-plugins", tags=["plugins"], route_class=route_class)

    @routes.get("", response_model=view(list[PluginInfo]), responses=errors(), operation_id="listPlugins")
    def list_plugins(connectors_only: ConnectorsOnly = True) -> Response:
        """The plugins that this worker has."""
        return json_response(plugins.listed(connectors_only=connectors_only))

    @routes.get(
        "/{plugin}/config", response_model=view(list[KeyInfo]), responses=errors(404), operation_id="getPluginConfig"
    )
    def get_plugin_config(plugin: PluginName, version: Version = None) -> Response:  # noqa: ARG001 - it is ignored
        """The keys that a plugin understands, and what they mean."""
        return json_response(plugin_keys(_found(plugins, plugin)))

    @routes.put(
        "/{plugin}/config/validate",
        response_model=view(ConfigInfos),
        responses=errors(404),
        operation_id="validateConfig",
    )
    def validate_config(plugin: PluginName, config: Annotated[ConfigBody, Body()]) -> Response:
        """Check a configuration without using it: answers with 200 what is right and wrong about every key."""
        given = texts(config)
        _require_match(plugins, plugin, given.get("connector.class"))
        return json_response(validate(given, plugins=plugins, providers=providers, settings=settings).infos)

    return routes


def _found(plugins: Plugins, name: str) -> type[Any]:
    finders: tuple[Callable[[str], type[Any]], ...] = (
        plugins.connector,
        plugins.converter,
        plugins.header_converter,
        plugins.transform,
        plugins.predicate,
    )
    for find in finders:
        try:
            return find(name)
        except ConfigError:
            continue
    raise NotFound(f"Unknown plugin {name}.")


def _require_match(plugins: Plugins, asked: str, included: str | None) -> None:
    """The class in the configuration must be the one in the path, by whatever name."""
    if included is None or _pruned(included).endswith(_pruned(asked)):
        return
    try:
        if plugins.connector(included) is plugins.connector(asked):
            return
    except ConfigError:
        pass
    raise BadRequest(f"Included connector type {included} does not match request type {asked}")


def _pruned(name: str) -> str:
    return name.removesuffix("Connector") or name
