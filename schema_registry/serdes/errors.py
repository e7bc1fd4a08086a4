"""Errors of reading and writing records by their schemas, grouped by what the caller does about them.

SerdeError
├── NotFramed        these bytes do not name a schema: they were not written with a registry
├── UnknownSchema    they name a schema that the registry does not have
├── InvalidData      bytes or a value do not fit their schema
└── UnusableSchema   no data can be read or written with this schema; the message says why

Errors of the registry itself are `schema_registry.client.errors`.
"""


class SerdeError(ValueError):
    """Root of the errors of reading and writing records."""


class NotFramed(SerdeError):
    """These bytes do not name a schema."""


class UnknownSchema(SerdeError):
    """These bytes name a schema that the registry does not have."""


class InvalidData(SerdeError):
    """Bytes or a value do not fit their schema."""


class UnusableSchema(SerdeError):
    """No data can be read or written with this schema."""
