"""`/connectors/dry-run`: what a configuration would do to records, without a connector."""

import msgspec
from fastapi import APIRouter, Response
from fastapi.routing import APIRoute

from connect.api.errors import ConfigError
from connect.api.sink import SinkConnector
from connect.rest.dry_run_models import DryRunBody
from connect.rest.models import errors, texts
from connect.rest.views import view
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.dry_run import DryRun, DryRunResult
from connect.runtime.errors import Failed


def router(dry_run: DryRun, *, route_class: type[APIRoute], plugins: Plugins) -> APIRouter:
    """The route."""
    routes = APIRouter(prefix="/connectors", tags=["connectors"], route_class=route_class)

    @routes.post("/dry-run", response_model=view(DryRunResult), responses=errors(), operation_id="dryRun")
    def dry_run_config(body: DryRunBody) -> Response:
        """Try a configuration with records: what converters and transforms make of them, and where they would fail."""
        config = {"name": "dry-run", **texts(body.config)}
        is_sink = _is_sink(plugins, config.get("connector.class"))
        outcomes = dry_run(config, [record.sample(is_read=is_sink) for record in body.records])
        try:
            content = msgspec.json.encode(DryRunResult(outcomes), enc_hook=str)
        except (TypeError, ValueError, OverflowError) as error:
            raise Failed(f"The records cannot be shown as JSON: {error}") from error
        return Response(content, media_type="application/json")

    return routes


def _is_sink(plugins: Plugins, name: str | None) -> bool:
    try:
        return issubclass(plugins.connector((name or "").strip()), SinkConnector)
    except ConfigError:
        return True  # the check that follows tells it
