"""Errors of connectors, grouped by what the worker does about them.

ConnectError          stop the task; a person has to look at it
├── ConfigError       the operator must change something; the connector fails
├── RetriableError    try the same call again after a pause
│   └── Unavailable   a server is down: no record is to blame, so records are retried for as long as it takes
└── DataError         this record is bad: skip it or send it to the dead-letter topic, if the operator allows
"""

from typing import ClassVar


class ConnectError(Exception):
    """The root of the errors that connectors, converters and transforms raise deliberately."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"
    """Kafka Connect's name of the class, which tools look for in the headers of dead letters."""


class ConfigError(ConnectError):
    """A configuration is invalid; the message names the key, the value and what is allowed."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class RetriableError(ConnectError):
    """The other system does not answer now, and the same call may succeed later. Never a dead letter."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class Unavailable(RetriableError):
    """A server that every record needs, such as the schema registry, does not answer."""


class DataError(ConnectError):
    """This record cannot be read, transformed or written as it is."""

    java_name = "org.apache.kafka.connect.errors.DataException"


def java_name_of(error: BaseException) -> str:
    """The class name of an error as Kafka Connect's tools expect it; our own if Kafka Connect has no such class."""
    return getattr(error, "java_name", f"{type(error).__module__}.{type(error).__qualname__}")
