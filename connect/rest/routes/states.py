"""The states of connectors and tasks: status, pause, resume, stop, restart."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute

from connect.rest.answers import ConnectorName, TaskNumber, empty, json_response
from connect.rest.models import errors
from connect.rest.views import view
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.models import ConnectorStatus, Target, TaskState

IncludeTasks = Annotated[bool, Query(alias="includeTasks", description="Whether to restart its tasks, too.")]
OnlyFailed = Annotated[bool, Query(alias="onlyFailed", description="Whether to restart only what has failed.")]


def router(supervisor: Supervisor, *, route_class: type[APIRoute]) -> APIRouter:
    """The routes of one worker."""
    routes = APIRouter(prefix="/connectors/{connector}", tags=["states"], route_class=route_class)

    @routes.get(
        "/status", response_model=view(ConnectorStatus), responses=errors(404), operation_id="getConnectorStatus"
    )
    def get_connector_status(connector: ConnectorName) -> Response:
        """The states of a connector and its tasks, with the stack trace of a failure."""
        return json_response(supervisor.status(connector))

    @routes.get(
        "/tasks/{task}/status", response_model=view(TaskState), responses=errors(404), operation_id="getTaskStatus"
    )
    def get_task_status(connector: ConnectorName, task: TaskNumber) -> Response:
        """The state of a task."""
        return json_response(supervisor.task_status(connector, task))

    @routes.put(
        "/pause", status_code=202, response_class=Response, responses=errors(404), operation_id="pauseConnector"
    )
    def pause_connector(connector: ConnectorName) -> Response:
        """Pause a connector: its tasks keep their resources."""
        supervisor.set_target(connector, Target.PAUSED)
        return empty(202)

    @routes.put(
        "/resume", status_code=202, response_class=Response, responses=errors(404), operation_id="resumeConnector"
    )
    def resume_connector(connector: ConnectorName) -> Response:
        """Resume a connector that was paused or stopped."""
        supervisor.set_target(connector, Target.STARTED)
        return empty(202)

    @routes.put("/stop", status_code=204, responses=errors(404, 409), operation_id="stopConnector")
    def stop_connector(connector: ConnectorName) -> Response:
        """Stop a connector: its tasks end, its configuration stays, and its offsets can be changed."""
        supervisor.set_target(connector, Target.STOPPED)
        return empty(204)

    @routes.post(
        "/restart",
        status_code=202,
        response_model=view(ConnectorStatus),
        responses={**errors(404, 409), 204: {"description": "Only the connector is restarted."}},
        operation_id="restartConnector",
    )
    def restart_connector(
        connector: ConnectorName, include_tasks: IncludeTasks = False, only_failed: OnlyFailed = False
    ) -> Response:
        """Restart a connector, and its tasks if requested; the response shows which ones."""
        status = supervisor.restart(connector, include_tasks=include_tasks, only_failed=only_failed)
        return empty(204) if status is None else json_response(status, status=202)

    @routes.post("/tasks/{task}/restart", status_code=204, responses=errors(404, 409), operation_id="restartTask")
    def restart_task(connector: ConnectorName, task: TaskNumber) -> Response:
        """Restart a task."""
        supervisor.restart_task(connector, task)
        return empty(204)

    return routes
