"""Errors of connectors, grouped by what the worker does about them.

ConnectError          stop the task; a human looks
├── ConfigError       the operator must change something; the connector fails
├── RetriableError    try the same call again after a pause
│   └── Unavailable   a server does not answer: no record is to blame, so none is ever given up for it
└── DataError         this record is bad: skip it or send it to the dead-letter topic, if the operator allows
"""

from typing import ClassVar


class ConnectError(Exception):
    """Root of what connectors, converters and transforms raise on purpose."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"
    """What Kafka Connect calls it, as tools match on it in the headers of dead letters."""


class ConfigError(ConnectError):
    """A configuration cannot work; the message names key, value and what is allowed."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class RetriableError(ConnectError):
    """The other side does not answer, or not now: the same call may succeed later. Never a dead letter."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class Unavailable(RetriableError):
    """A server that every record needs does not answer, the schema registry for instance."""


class DataError(ConnectError):
    """This record cannot be read, changed or written as it is."""

    java_name = "org.apache.kafka.connect.errors.DataException"


def java_name_of(error: BaseException) -> str:
    """The class name of an error as Kafka Connect's tools expect it; our own where there is no such class."""
    return getattr(error, "java_name", f"{type(error).__module__}.{type(error).__qualname__}")
