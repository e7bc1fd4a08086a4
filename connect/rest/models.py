"""Bodies of requests, and the responses in the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from connect.rest.views import CONFIG
from connect.runtime.models import Target

_STATES = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}

ConfigValue = StrictStr | StrictBool | StrictInt | Annotated[StrictFloat, AllowInfNan(False)] | None
"""Values are text; numbers and booleans are converted to it."""
ConfigBody = dict[str, ConfigValue]


def texts(config: ConfigBody) -> dict[str, str | None]:
    """A configuration as text alone; null stays null."""
    return {key: _text(value) for key, value in config.items()}


def _text(value: ConfigValue) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case None | str():
            return value
        case _:
            return str(value)


class PartitionOffset(BaseModel):
    """The offset of one source partition, or of one partition of a topic."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"partition": {"kafka_topic": "orders", "kafka_partition": 0}, "offset": {"kafka_offset": 42}},
                {"partition": {"filename": "orders.txt"}, "offset": {"position": 1024}},
            ]
        },
    )

    partition: dict[str, Any] = Field(description="The partition; for sinks: kafka_topic and kafka_partition.")
    offset: dict[str, Any] | None = Field(description="Its offset; for sinks: kafka_offset. null resets it.")


class OffsetsBody(BaseModel):
    """The offsets of a connector."""

    model_config = ConfigDict(extra="forbid")

    offsets: list[PartitionOffset] | None = Field(default=None, description="One entry for each partition.")


class CreateConnectorBody(BaseModel):
    """A connector to create."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "orders-to-file", "config": CONFIG}]}
    )

    name: Annotated[
        str | None, BeforeValidator(lambda value: _text(value) if isinstance(value, (bool, int, float)) else value)
    ] = Field(default=None, description="Its name; surrounding spaces are removed.")
    config: ConfigBody = Field(description="Its configuration; `name` is added if it is missing.")
    initial_state: Annotated[
        Literal["RUNNING", "PAUSED", "STOPPED"] | None,
        BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
    ] = Field(default=None, description="Its first state, in letters of any case.")
    initial_offsets: list[PartitionOffset] | None = Field(
        default=None, description="Its first offsets; they replace those of an earlier connector of that name."
    )
    tasks: list[Any] | None = Field(
        default=None, description="Ignored, so that the response of one worker can be sent to another."
    )
    type: str | None = Field(default=None, description="Ignored as well.")

    @property
    def target(self) -> Target:
        """The target state of the connector."""
        return _STATES[self.initial_state or "RUNNING"]


class TopicsView(BaseModel):
    """The topics that a connector has used."""

    topics: list[str] = Field(description="Their names.", examples=[["orders"]])


class MessageView(BaseModel):
    """A message about what was done."""

    message: str = Field(
        description="What was done.",
        examples=["The offsets for this connector have been altered successfully"],
    )


class ServerView(BaseModel):
    """This worker."""

    version: str = Field(description="The version of Kafka Connect whose API this is.", examples=["4.1.0"])
    commit: str = Field(description="Caudal's own version.", examples=["caudal-0.1.0"])
    kafka_cluster_id: str = Field(description="The id of its Kafka cluster.")


class HealthView(BaseModel):
    """The health of this worker."""

    status: Literal["healthy", "starting", "unhealthy"] = Field(description="The state.")
    message: str = Field(description="The state in words.")


class LevelBody(BaseModel):
    """The level for a logger."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"level": "DEBUG"}]})

    level: str | None = Field(default=None, description="TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF.")


class ErrorBody(BaseModel):
    """Why a request failed."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error_code": 404, "message": "Connector orders-to-file not found"}]}
    )

    error_code: int = Field(description="The HTTP status.")
    message: str = Field(description="What went wrong, in words.")


_MEANINGS = {
    400: "The request is invalid, or the configuration in it is: the message lists all errors.",
    403: "The worker's settings do not allow this.",
    404: "Not found.",
    409: "A conflict: a connector of that name exists, or the leader is changing; try again soon.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The content-type of the body is not JSON, or its encoding is not supported.",
    429: "Too many bytes are being received at the moment.",
    500: "The request failed, or takes too long.",
    503: "Too many requests are waiting, or the worker is starting.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of an operation, for `responses=`."""
    return {status: {"model": ErrorBody, "description": _MEANINGS[status]} for status in sorted({400, 500, *statuses})}
