"""Errors of the parts of the service, as the API reports them."""

from collections.abc import Iterator
from contextlib import contextmanager

from core_broker.client.errors import ClientError, NotAllowed, Unreachable
from schema_registry.client.errors import ClientError as RegistryError
from streams.catalog.errors import CatalogError, TakenOver
from streams.errors import EngineError, EngineUnavailable, StatementError, StreamsError
from streams.formats.errors import FormatError
from streams.formats.errors import SchemasMissing as NoRegistry
from streams.server import errors
from streams.server.errors import ServiceError
from streams.server.script import Written


@contextmanager
def mapped(written: Written) -> Iterator[None]:
    """Turn what a statement raises inside the block into a ServiceError with its text."""
    try:
        yield
    except StatementError as error:
        raise written.located(error) from error
    except TakenOver:
        raise
    except (StreamsError, ClientError, RegistryError) as error:
        failure = service_error(error)
        if failure.statement_text is None and not isinstance(failure, errors.NotReady):
            failure.statement_text = written.text
        raise failure from error


def service_error(error: Exception) -> ServiceError:
    """The error that the API answers with."""
    message = str(error)
    match error:
        case NoRegistry():
            return errors.SchemasMissing(message)
        case FormatError():
            return errors.BadStatement(message)
        case NotAllowed():
            return errors.NotAllowed(message)
        case RegistryError():
            return errors.ServerFailed(f"The schema registry could not do it: {message}")
        case Unreachable():
            return errors.ServerFailed(f"The Kafka cluster cannot be reached: {message}")
        case EngineUnavailable():
            return errors.NotReady(message)
        case EngineError():
            return errors.BadStatement(message)
        case ClientError():
            return errors.BadStatement(message)
        case CatalogError():
            return errors.ServerFailed(message)
        case _:
            return errors.ServerFailed(message)
