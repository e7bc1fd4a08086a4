"""What a user reads when a call fails: what happened, in one line, and what to do next; commands in backticks."""

import http
from collections.abc import Iterable
from typing import Final

from core_broker.client.errors import (
    AlreadyExists,
    ClientError,
    NotAllowed,
    NotFound,
    Rejected,
    Retriable,
    Unreachable,
    Untrusted,
)
from core_broker.errors import ErrorCode
from deploy.clients import connect as connect_errors
from deploy.clients import sql as sql_errors
from schema_registry.client import errors as registry_errors
from streams.errors import EngineError, EngineUnavailable, JavaMissing, StreamsError

_CREDENTIALS: Final = (
    "security.protocol, user, password and certificates belong into a file:  `--client-config client.properties`"
    " (or set CAUDAL_CLIENT_CONFIG)"
)

_RULES: Final = "see who may do what:  `caudal acl list`"
_WHO: Final = (
    "say who you are, as at the cluster:  `--client-config client.properties`  or  `--profile NAME`",
    "a password goes only over https or to this machine; `--insecure-http` sends it to others, too",
)


def explain(
    error: ClientError
    | registry_errors.ClientError
    | connect_errors.ConnectCallError
    | sql_errors.SqlCallError
    | StreamsError,
) -> tuple[str, list[str]]:
    """The line and the next steps for an error of a client."""
    match error:
        case ClientError():
            return _explain_cluster_error(error)
        case connect_errors.ConnectCallError():
            return _explain_connect_error(error)
        case sql_errors.SqlCallError():
            return _explain_sql_error(error)
        case StreamsError():
            return _explain_spark_error(error)
        case _:
            return _explain_registry_error(error)


def refusal_among(outcomes: Iterable[ClientError | None]) -> NotAllowed | None:
    """The first outcome that says that this user may not do it."""
    return next((error for error in outcomes if isinstance(error, NotAllowed)), None)


def _explain_cluster_error(error: ClientError) -> tuple[str, list[str]]:
    match error:
        case Untrusted():
            return f"No secure connection: {error}", [_CREDENTIALS]
        case Unreachable():
            return f"No answer from the cluster: {error}", [
                "start a broker here:  `caudal broker`",
                "or say where one is:  `--bootstrap host:port` (or set CAUDAL_BOOTSTRAP)",
                "if the address is right, see whether advertised.listeners can be reached from here",
            ]
        case NotFound():
            return str(error), ["see what there is:  `caudal topic list`, `caudal group list`"]
        case AlreadyExists():
            return str(error), ["look at it:  `caudal topic describe NAME`, or add `--if-not-exists`"]
        case NotAllowed():
            return str(error), [_CREDENTIALS, "see who may do what:  `caudal acl list`"]
        case Retriable():
            return str(error), ["it is temporary: try again in a moment"]
        case Rejected() if error.code == ErrorCode.INVALID_RECORD:
            return str(error), [
                "see what the topic asks for:  `caudal topic describe NAME`",
                "a guarded topic takes only records with a registered schema id, a compacted one only those with a key",
            ]
        case _:
            return str(error), []


def _explain_registry_error(error: registry_errors.ClientError) -> tuple[str, list[str]]:
    match error:
        case registry_errors.RegistryUnreachable() if error.code == -1:
            return f"The registry cannot be reached: {error}", [
                "start a registry here:  `caudal registry`",
                "or say where one is:  `--registry http://host:8081` (or set CAUDAL_REGISTRY)",
            ]
        case registry_errors.RegistryUnreachable():
            return f"The registry failed: {error}", ["it may be temporary: try again in a moment, or see its log"]
        case registry_errors.SchemaNotFound():
            return str(error), ["see what there is:  `caudal schema list`, also `--deleted`"]
        case registry_errors.NotAllowed() if _is_forbidden(error.code):
            return str(error), [_RULES]
        case registry_errors.NotAllowed():
            return str(error), [
                *_WHO,
                "or with other credentials:  `--user name:password` (or set CAUDAL_REGISTRY_USER)",
            ]
        case _:
            return str(error), []


def _explain_connect_error(error: connect_errors.ConnectCallError) -> tuple[str, list[str]]:
    match error:
        case connect_errors.WorkerUnreachable():
            return f"The Connect worker cannot be reached: {error}", [
                "start a worker here:  `caudal connect`",
                "or say where one is:  `--connect http://host:8083` (or set CAUDAL_CONNECT)",
            ]
        case connect_errors.LoginRefused() if error.status == http.HTTPStatus.FORBIDDEN:
            return str(error), [_RULES]
        case connect_errors.LoginRefused():
            return str(error), [*_WHO]
        case connect_errors.ConnectorNotFound():
            return str(error), ["see what there is:  `caudal connector list`, `caudal connector plugins --all`"]
        case connect_errors.Conflict() if "already exists" in error.message:
            return str(error), ["give it this configuration:  `--replace`"]
        case connect_errors.Conflict():
            return str(error), ["it is temporary: try again in a moment"]
        case _ if "STOPPED state" in error.message:
            return str(error), ["stop it first:  `caudal connector stop NAME`"]
        case _ if error.status >= 500:
            return f"The Connect worker failed: {error}", ["it may be temporary: try again in a moment, or see its log"]
        case _:
            return str(error), []


def _explain_sql_error(error: sql_errors.SqlCallError) -> tuple[str, list[str]]:
    match error:
        case sql_errors.ServerUnreachable():
            return f"The service of SQL cannot be reached: {error}", [
                "start the platform:  `caudal up`, or the service alone:  `caudal streams`",
                "or say where one is:  `--server http://host:8088` (or set CAUDAL_STREAMS)",
            ]
        case sql_errors.LoginRefused() if error.status == http.HTTPStatus.FORBIDDEN:
            return str(error), [_RULES]
        case sql_errors.LoginRefused():
            return str(error), [*_WHO]
        case sql_errors.NotReady():
            return f"The service of SQL is not ready: {error}", ["try again in a moment, or see  `caudal logs streams`"]
        case _:
            return str(error), []


def _is_forbidden(code: int) -> bool:
    """Whether an error of the registry is about a right, not about the login: 403, and 40301 and its like."""
    return str(code).startswith(str(http.HTTPStatus.FORBIDDEN.value))


def _explain_spark_error(error: StreamsError) -> tuple[str, list[str]]:
    match error:
        case JavaMissing():
            return str(error), []
        case EngineUnavailable():
            return str(error), [
                "see whether it runs:  `caudal spark status`",
                "or run it here, and watch it:  `caudal spark engine`",
            ]
        case EngineError() if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
            return str(error).partition("\n")[0], [
                "see what there is:  `caudal spark tables`",
                "if it is another engine's, name its folder:  `--set spark.caudal.data.dir=...`",
                "or the properties of the Connect worker that fills it:  `--config FILE`",
            ]
        case _:
            return str(error), []
