"""Bodies of requests, and what answers look like in the API's description."""

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
"""Values are text; numbers and booleans are taken for the text that they are written as."""
ConfigBody = dict[str, ConfigValue]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


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


def _scalar_text(value: object) -> object:
    return _text(value) if isinstance(value, (bool, int, float)) else value


class PartitionOffset(BaseModel):
    """How far one part of the other side, or one partition of a topic, has been read."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"partition": {"kafka_topic": "orders", "kafka_partition": 0}, "offset": {"kafka_offset": 42}},
                {"partition": {"filename": "orders.txt"}, "offset": {"position": 1024}},
            ]
        },
    )

    partition: dict[str, Any] = Field(description="Which part; of sinks: kafka_topic and kafka_partition.")
    offset: dict[str, Any] | None = Field(
        description="How far it was read; of sinks: kafka_offset. null: as if it was never read."
    )


class OffsetsBody(BaseModel):
    """How far a connector is."""

    model_config = ConfigDict(extra="forbid")

    offsets: list[PartitionOffset] | None = Field(default=None, description="One entry for each part.")


class CreateConnectorBody(BaseModel):
    """A connector to be."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "orders-to-file", "config": CONFIG}]}
    )

    name: Annotated[str | None, BeforeValidator(_scalar_text)] = Field(
        default=None, description="Its name; spaces around it are dropped."
    )
    config: ConfigBody = Field(description="Its configuration; `name` is added when it is not there.")
    initial_state: Annotated[Literal["RUNNING", "PAUSED", "STOPPED"] | None, BeforeValidator(_upper)] = Field(
        default=None, description="What it does at first; in letters of any case."
    )
    initial_offsets: list[PartitionOffset] | None = Field(
        default=None, description="Where it begins; what is known of an earlier one of that name is replaced."
    )
    tasks: list[Any] | None = Field(default=None, description="Ignored: what a worker answers may be sent to another.")
    type: str | None = Field(default=None, description="Ignored as well.")

    @property
    def target(self) -> Target:
        """What the connector is to do."""
        return _STATES[self.initial_state or "RUNNING"]


class TopicsView(BaseModel):
    """The topics that a connector has used."""

    topics: list[str] = Field(description="Their names.", examples=[["orders"]])


class MessageView(BaseModel):
    """What was done, in words."""

    message: str = Field(
        description="What was done.",
        examples=["The offsets for this connector have been altered successfully"],
    )


class ServerView(BaseModel):
    """This worker."""

    version: str = Field(description="The version of Kafka Connect whose API this is.", examples=["4.1.0"])
    commit: str = Field(description="Caudal's own version.", examples=["caudal-0.1.0"])
    kafka_cluster_id: str = Field(description="The cluster that it works with.")


class HealthView(BaseModel):
    """Whether this worker can do its work."""

    status: Literal["healthy", "starting", "unhealthy"] = Field(description="Whether it can.")
    message: str = Field(description="The same in words.")


class LevelBody(BaseModel):
    """How much a logger is to tell."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"level": "DEBUG"}]})

    level: str | None = Field(default=None, description="TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF.")


class ErrorBody(BaseModel):
    """Why a request was not carried out."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error_code": 404, "message": "Connector orders-to-file not found"}]}
    )

    error_code: int = Field(description="The HTTP status.")
    message: str = Field(description="What went wrong, in words.")


_MEANINGS = {
    400: "The request makes no sense, or the configuration in it is wrong: the message tells all that is.",
    403: "The worker's settings do not allow this.",
    404: "There is no such thing.",
    409: "Something stands in the way: one of that name, or a change of leaders; try again soon.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is no JSON by its content-type, or has an encoding that is not read.",
    429: "More is sent than is taken at a time.",
    500: "It was tried and failed, or takes too long.",
    503: "Too many requests wait, or the worker is starting.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The failures of an operation, for `responses=`."""
    return {status: {"model": ErrorBody, "description": _MEANINGS[status]} for status in sorted({400, 500, *statuses})}
