"""`/connectors/dry-run`: what a configuration would do to records, without a connector."""

import base64
import binascii
from typing import Any, Final, Literal

import msgspec
from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from connect.api.errors import ConfigError
from connect.api.sink import SinkConnector
from connect.rest.guard import AccessDependency
from connect.rest.models import ConfigBody, errors, texts
from connect.rest.views import view
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.dry_run import DryRun, DryRunResult, Sample
from connect.runtime.errors import BadRequest, Failed

_MAX_SAMPLES: Final = 100


class SampleBody(BaseModel):
    """A sample record; the response for a dead letter can be used as it is."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"topic": "orders", "value": {"id": 5, "price": "9.90"}}]}
    )

    topic: str = Field(default="sample", min_length=1, max_length=249, description="The topic of the record.")
    key: Any = Field(default=None, description="Its key: text, or any other JSON value.")
    value: Any = Field(default=None, description="Its value: text, or any other JSON value.")
    encoding: Literal["utf-8", "base64"] = Field(
        default="utf-8", description="The encoding of key and value if they are text."
    )
    partition: int = Field(default=0, ge=0, le=2**31 - 1, description="Its partition.")
    offset: int = Field(default=0, ge=0, le=2**63 - 1, description="Its offset.")
    timestamp: int | None = Field(default=None, ge=0, le=2**62, description="Its time, in milliseconds since 1970.")
    headers: list[tuple[str, str | None]] = Field(default=[], description="Its headers: names and text.")

    def to_sample(self, *, is_read: bool) -> Sample:
        """The record for the dry run; `is_read`: keys and values are bytes for the converters, as in a sink."""
        data = self._encode if is_read else (lambda part: part)
        return Sample(
            topic=self.topic,
            key=data(self.key),
            value=data(self.value),
            partition=self.partition,
            offset=self.offset,
            timestamp=self.timestamp,
            headers=[(name, None if text is None else text.encode()) for name, text in self.headers],
        )

    def _encode(self, part: Any) -> bytes | None:
        if part is None:
            return None
        if not isinstance(part, str):
            return msgspec.json.encode(part)
        if self.encoding == "utf-8":
            return part.encode()
        try:
            return base64.b64decode(part, validate=True)
        except (binascii.Error, ValueError):
            raise BadRequest("Keys and values must be base64, because encoding is base64") from None


class DryRunBody(BaseModel):
    """A configuration, and sample records for it."""

    model_config = ConfigDict(extra="forbid")

    config: ConfigBody = Field(
        description="The configuration of a connector.",
        examples=[
            {
                "name": "orders-to-file",
                "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
                "topics": "orders",
                "file": "/tmp/orders.txt",
            }
        ],
    )
    records: list[SampleBody] = Field(
        default=[],
        max_length=_MAX_SAMPLES,
        description="Sample records; without any the configuration is only validated.",
    )


def router(dry_run: DryRun, *, route_class: type[APIRoute], plugins: Plugins) -> APIRouter:
    """The route."""
    routes = APIRouter(prefix="/connectors", tags=["connectors"], route_class=route_class)

    @routes.post("/dry-run", response_model=view(DryRunResult), responses=errors(), operation_id="dryRun")
    def dry_run_config(access: AccessDependency, body: DryRunBody) -> Response:
        """Apply the converters and transforms of a configuration to records: the results, and where they would fail."""
        given = texts(body.config)
        access.require_use(given.get("name"))
        config = {"name": "dry-run", **given}
        try:
            is_sink = issubclass(plugins.connectors.find((config.get("connector.class") or "").strip()), SinkConnector)
        except ConfigError:
            is_sink = True  # the validation reports the unknown class
        outcomes = dry_run(config, [record.to_sample(is_read=is_sink) for record in body.records])
        try:
            content = msgspec.json.encode(DryRunResult(outcomes), enc_hook=str)
        except (TypeError, ValueError, OverflowError) as error:
            raise Failed(f"The records cannot be shown as JSON: {error}") from error
        return Response(content, media_type="application/json")

    return routes
