"""What a user reads when a tool fails: what happened, in one line, and what to do next."""

from core_broker.client.errors import (
    AlreadyExists,
    ClientError,
    Fatal,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
)
from core_broker.errors import ErrorCode
from deploy import connect_errors
from schema_registry.client import errors as registry_errors
from streams.errors import EngineError, EngineUnavailable, JavaMissing, StreamsError


def explain(
    error: ClientError | registry_errors.ClientError | connect_errors.ConnectCallError | StreamsError,
) -> tuple[str, list[str]]:
    """The line and the next steps for an error of a client."""
    match error:
        case ClientError():
            return _of_cluster(error)
        case connect_errors.ConnectCallError():
            return _of_connect(error)
        case StreamsError():
            return _of_spark(error)
        case _:
            return _of_registry(error)


def _of_cluster(error: ClientError) -> tuple[str, list[str]]:
    match error:
        case Unreachable():
            return f"No answer from the cluster: {error}", [
                "start a broker here:  [bold]caudal broker[/]",
                "or say where one is:  [bold]--bootstrap host:port[/] (or set CAUDAL_BOOTSTRAP)",
                "if the address is right, see whether advertised.listeners can be reached from here",
            ]
        case NotFound():
            return str(error), ["see what there is:  [bold]caudal topic list[/], [bold]caudal group list[/]"]
        case AlreadyExists():
            return str(error), ["look at it:  [bold]caudal topic describe NAME[/], or add [bold]--if-not-exists[/]"]
        case NotAllowed():
            return str(error), ["give credentials:  [bold]-X sasl.username=... -X sasl.password=...[/]"]
        case Retriable():
            return str(error), ["this passes: try again in a moment"]
        case Rejected() if error.code == ErrorCode.INVALID_RECORD:
            return str(error), [
                "see what the topic asks for:  [bold]caudal topic describe NAME[/]",
                "a guarded topic takes only records with a registered schema id, a compacted one only those with a key",
            ]
        case Fatal() | Rejected():
            return str(error), []
        case _:
            return str(error), []


def _of_registry(error: registry_errors.ClientError) -> tuple[str, list[str]]:
    match error:
        case registry_errors.RegistryUnreachable() if error.code == -1:
            return f"The registry cannot be reached: {error}", [
                "start a registry here:  [bold]caudal registry[/]",
                "or say where one is:  [bold]--registry http://host:8081[/] (or set CAUDAL_REGISTRY)",
            ]
        case registry_errors.RegistryUnreachable():
            return f"The registry is in trouble: {error}", ["this may pass: try again in a moment, or see its log"]
        case registry_errors.SchemaNotFound():
            return str(error), ["see what there is:  [bold]caudal schema list[/], also [bold]--deleted[/]"]
        case registry_errors.NotAllowed():
            return str(error), ["say who you are:  [bold]--user name:password[/] (or set CAUDAL_REGISTRY_USER)"]
        case _:
            return str(error), []


def _of_connect(error: connect_errors.ConnectCallError) -> tuple[str, list[str]]:
    match error:
        case connect_errors.WorkerUnreachable():
            return f"The Connect worker cannot be reached: {error}", [
                "start a worker here:  [bold]caudal connect[/]",
                "or say where one is:  [bold]--connect http://host:8083[/] (or set CAUDAL_CONNECT)",
            ]
        case connect_errors.ConnectorNotFound():
            return str(error), [
                "see what there is:  [bold]caudal connector list[/], [bold]caudal connector plugins --all[/]"
            ]
        case connect_errors.NotNow() if "already exists" in error.message:
            return str(error), ["give it this configuration:  [bold]--replace[/]"]
        case connect_errors.NotNow():
            return str(error), ["this passes: try again in a moment"]
        case _ if "STOPPED state" in error.message:
            return str(error), ["stop it first:  [bold]caudal connector stop NAME[/]"]
        case _ if error.status >= 500:
            return f"The Connect worker is in trouble: {error}", [
                "this may pass: try again in a moment, or see its log"
            ]
        case _:
            return str(error), []


def _of_spark(error: StreamsError) -> tuple[str, list[str]]:
    match error:
        case JavaMissing():
            return str(error), []
        case EngineUnavailable():
            return str(error), [
                "see whether it runs:  [bold]caudal spark status[/]",
                "or run it here, and watch it:  [bold]caudal spark engine[/]",
            ]
        case EngineError() if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
            return _first_line(error), [
                "see what there is:  [bold]caudal spark tables[/]",
                "if it is another engine's, name its folder:  [bold]--set spark.caudal.data.dir=...[/]",
                "or the properties of the Connect worker that fills it:  [bold]--config FILE[/]",
            ]
        case _:
            return str(error), []


def _first_line(error: StreamsError) -> str:
    return str(error).partition("\n")[0]
