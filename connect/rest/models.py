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
from pydantic.config import JsonDict

from connect.runtime.models import Target

_CONFIG: JsonDict = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "tasks.max": "1",
    "topics": "orders",
    "file": "/tmp/orders.txt",
}
_INFO: JsonDict = {
    "name": "orders-to-file",
    "config": {"name": "orders-to-file", **_CONFIG},
    "tasks": [{"connector": "orders-to-file", "task": 0}],
    "type": "sink",
}
_STATUS: JsonDict = {
    "name": "orders-to-file",
    "connector": {"state": "RUNNING", "worker_id": "connect-1:8083"},
    "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "connect-1:8083"}],
    "type": "sink",
}
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
        extra="forbid", json_schema_extra={"examples": [{"name": "orders-to-file", "config": _CONFIG}]}
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


class TaskIdView(BaseModel):
    """A task."""

    connector: str = Field(description="The connector's name.", examples=["orders-to-file"])
    task: int = Field(description="Its number, from 0.", examples=[0])


class ConnectorInfoView(BaseModel):
    """A connector as it was configured."""

    model_config = ConfigDict(json_schema_extra={"examples": [_INFO]})

    name: str = Field(description="Its name.")
    config: dict[str, str] = Field(description="Its configuration, with placeholders as they were given.")
    tasks: list[TaskIdView] = Field(description="Its tasks.")
    type: Literal["source", "sink", "unknown"] = Field(description="Which way data goes.")


class StateView(BaseModel):
    """How a connector fares."""

    state: str = Field(description="UNASSIGNED, RUNNING, PAUSED, FAILED, RESTARTING or STOPPED.", examples=["RUNNING"])
    worker_id: str = Field(description="The worker that runs it.", examples=["connect-1:8083"])
    trace: str | None = Field(default=None, description="Why it failed; left out when it did not.")
    version: str | None = Field(default=None, description="The version of its class; left out when unknown.")


class TaskStateView(StateView):
    """How a task fares."""

    id: int = Field(description="Its number.", examples=[0])


class ConnectorStatusView(BaseModel):
    """How a connector and its tasks fare."""

    model_config = ConfigDict(json_schema_extra={"examples": [_STATUS]})

    name: str = Field(description="Its name.")
    connector: StateView = Field(description="The connector itself.")
    tasks: list[TaskStateView] = Field(description="Its tasks.")
    type: Literal["source", "sink", "unknown"] = Field(description="Which way data goes.")


class ExpandedConnector(BaseModel):
    """What was asked for of a connector."""

    status: ConnectorStatusView | None = Field(default=None, description="With expand=status.")
    info: ConnectorInfoView | None = Field(default=None, description="With expand=info.")


class TaskInfoView(BaseModel):
    """A task and its configuration."""

    id: TaskIdView = Field(description="Which task.")
    config: dict[str, str] = Field(description="Its configuration.")


class TopicsView(BaseModel):
    """The topics that a connector has used."""

    topics: list[str] = Field(description="Their names.", examples=[["orders"]])


class MessageView(BaseModel):
    """What was done, in words."""

    message: str = Field(
        description="What was done.",
        examples=["The offsets for this connector have been altered successfully"],
    )


class PluginView(BaseModel):
    """Something that configurations may name."""

    class_: str = Field(
        alias="class",
        description="The name of its class.",
        examples=["org.apache.kafka.connect.file.FileStreamSinkConnector"],
    )
    type: Literal["source", "sink", "converter", "header_converter", "transformation", "predicate"] = Field(
        description="What it is."
    )
    version: str = Field(description="Its version.", examples=["1.0"])


class KeyView(BaseModel):
    """What a key of a configuration means."""

    name: str = Field(description="The key.", examples=["tasks.max"])
    type: str = Field(description="BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS or PASSWORD.")
    required: bool = Field(description="Whether it must be given.")
    default_value: str | None = Field(description="What holds when it is not given.")
    importance: Literal["HIGH", "MEDIUM", "LOW"] = Field(description="How much one should care.")
    documentation: str = Field(description="What it is for.")
    group: str | None = Field(description="What it belongs to.")
    order: int = Field(description="Its place in the group.")
    width: Literal["NONE", "SHORT", "MEDIUM", "LONG"] = Field(description="How wide a field in a form should be.")
    display_name: str = Field(description="Its name in a form.")
    dependents: list[str] = Field(description="Keys that mean something else when this one changes.")


class ValueView(BaseModel):
    """What was given for a key, and what is wrong with it."""

    name: str = Field(description="The key.")
    value: str | None = Field(description="What was given, or the default; passwords are hidden.")
    recommended_values: list[str] = Field(description="Values to choose from.")
    errors: list[str] = Field(description="What is wrong.")
    visible: bool = Field(description="Whether a form should show it.")


class ConfigView(BaseModel):
    """A key and its value."""

    definition: KeyView | None = Field(description="What the key means; null when nobody knows it.")
    value: ValueView = Field(description="What was given.")


class WarningView(BaseModel):
    """What works, but probably not as it was meant."""

    name: str = Field(description="The key.")
    message: str = Field(description="What is odd.")


class ConfigsView(BaseModel):
    """A configuration, checked."""

    name: str = Field(description="The connector's class.")
    error_count: int = Field(description="How many things are wrong.")
    groups: list[str] = Field(description="The groups of keys, in their order.")
    configs: list[ConfigView] = Field(description="The keys.")
    warnings: list[WarningView] = Field(description="What is odd: unknown keys, for instance.")


class ServerView(BaseModel):
    """This worker."""

    version: str = Field(description="The version of Kafka Connect whose API this is.", examples=["4.1.0"])
    commit: str = Field(description="Caudal's own version.", examples=["caudal-0.1.0"])
    kafka_cluster_id: str = Field(description="The cluster that it works with.")


class HealthView(BaseModel):
    """Whether this worker can do its work."""

    status: Literal["healthy", "starting", "unhealthy"] = Field(description="Whether it can.")
    message: str = Field(description="The same in words.")


class LoggerView(BaseModel):
    """How much a logger tells."""

    level: str | None = Field(description="TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF.", examples=["INFO"])
    last_modified: int | None = Field(default=None, description="When it was changed, in milliseconds since 1970.")


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
