"""`/connectors`: list, create, configure and delete connectors."""

from contextlib import suppress
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import APIRouter, Body, Query, Response
from fastapi.routing import APIRoute

from connect.rest.answers import ConnectorName, empty, json_response
from connect.rest.guard import AccessDependency
from connect.rest.models import ConfigBody, CreateConnectorBody, errors, texts
from connect.rest.views import view
from connect.runtime.errors import NotFound
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.models import ConnectorInfo, ExpandedConnector, TaskInfo
from core_broker.web_access.rules import Operation

_CREATED: Final = {
    "model": view(ConnectorInfo),
    "description": "The connector was created.",
    "headers": {"Location": {"description": "The path of the connector.", "schema": {"type": "string"}}},
}
Expand = Annotated[
    list[str],
    Query(
        description="status, info, or both (`expand=status&expand=info`); others are ignored.", examples=[["status"]]
    ),
]


def router(supervisor: Supervisor, *, route_class: type[APIRoute]) -> APIRouter:
    """The routes of one worker."""
    routes = APIRouter(prefix="/connectors", tags=["connectors"], route_class=route_class)
    _add_collection(routes, supervisor)
    _add_reads(routes, supervisor)
    _add_changes(routes, supervisor)
    return routes


def _add_collection(routes: APIRouter, supervisor: Supervisor) -> None:
    @routes.get(
        "",
        response_model=view(list[str] | dict[str, ExpandedConnector]),
        responses=errors(),
        operation_id="listConnectors",
    )
    def list_connectors(access: AccessDependency, expand: Expand = []) -> Response:  # noqa: B006 - never changed
        """The names of all connectors, or the status or info of each, as far as the caller may see them."""
        names = [name for name in supervisor.connectors() if access.sees(name)]
        if not expand:
            return json_response(list(names))
        expanded = {}
        for name in names:
            with suppress(NotFound):  # it was just deleted, or has no status yet
                shows_status = "status" in expand and access.allows(Operation.DESCRIBE, name)
                shows_info = "info" in expand and access.allows(Operation.DESCRIBE_CONFIGS, name)
                expanded[name] = ExpandedConnector(
                    status=supervisor.status(name) if shows_status else None,
                    info=supervisor.info(name) if shows_info else None,
                )
        return json_response(expanded)

    @routes.post(
        "",
        status_code=201,
        response_model=view(ConnectorInfo),
        responses={**errors(409), 201: _CREATED},
        operation_id="createConnector",
    )
    def create_connector(access: AccessDependency, body: CreateConnectorBody) -> Response:
        """Create a connector; it starts at once, unless `initial_state` says otherwise."""
        name = (body.name or "").strip()
        access.require_put(name, is_new=True)
        offsets = body.initial_offsets
        info = supervisor.create(
            name,
            texts(body.config),
            initial_state=body.target,
            initial_offsets=None if offsets is None else [offset.model_dump() for offset in offsets],
        )
        return json_response(info, status=201, headers=_location(name))


def _add_reads(routes: APIRouter, supervisor: Supervisor) -> None:
    @routes.get("/{connector}", response_model=view(ConnectorInfo), responses=errors(404), operation_id="getConnector")
    def get_connector(connector: ConnectorName) -> Response:
        """The configuration of a connector, and its tasks."""
        return json_response(supervisor.info(connector))

    @routes.get(
        "/{connector}/config", response_model=dict[str, str], responses=errors(404), operation_id="getConnectorConfig"
    )
    def get_connector_config(connector: ConnectorName) -> Response:
        """The configuration of a connector, with placeholders such as `${file:…}` unresolved."""
        return json_response(dict(supervisor.config(connector)))

    @routes.get(
        "/{connector}/tasks", response_model=view(list[TaskInfo]), responses=errors(404), operation_id="listTasks"
    )
    def list_tasks(connector: ConnectorName) -> Response:
        """The tasks of a connector and their configurations."""
        return json_response(list(supervisor.tasks(connector)))

    @routes.get(
        "/{connector}/tasks-config",
        response_model=dict[str, dict[str, str]],
        responses=errors(404),
        operation_id="getTasksConfig",
        deprecated=True,
    )
    def get_tasks_config(connector: ConnectorName) -> Response:
        """The configurations of the tasks of a connector, by task; Kafka Connect 4 only has `/tasks`."""
        return json_response({str(task.id): task.config for task in supervisor.tasks(connector)})


def _add_changes(routes: APIRouter, supervisor: Supervisor) -> None:
    @routes.put(
        "/{connector}/config",
        response_model=view(ConnectorInfo),
        responses={**errors(409), 201: _CREATED},
        operation_id="putConnectorConfig",
    )
    def put_connector_config(
        access: AccessDependency, connector: ConnectorName, config: Annotated[ConfigBody, Body()]
    ) -> Response:
        """Create a connector, or replace its configuration, which restarts its tasks."""
        access.require_use(connector)

        def check(is_new: bool) -> None:
            access.require_put(connector, is_new=is_new)

        is_new, info = supervisor.put(connector, texts(config), check=check)
        return json_response(info, status=201, headers=_location(connector)) if is_new else json_response(info)

    @routes.patch(
        "/{connector}/config",
        response_model=view(ConnectorInfo),
        responses=errors(404, 409),
        operation_id="patchConnectorConfig",
    )
    def patch_connector_config(connector: ConnectorName, changes: Annotated[ConfigBody, Body()]) -> Response:
        """Change some keys of a configuration; null removes a key."""
        return json_response(supervisor.patch(connector, texts(changes)))

    @routes.delete("/{connector}", status_code=204, responses=errors(404, 409), operation_id="deleteConnector")
    def delete_connector(connector: ConnectorName) -> Response:
        """Stop a connector and its tasks, and delete its configuration; its offsets are kept."""
        supervisor.delete(connector)
        return empty(204)


def _location(name: str) -> dict[str, str]:
    return {"location": f"/connectors/{quote(name, safe='')}"}
