"""Errors of reading and writing records by their schemas, grouped by what the caller does about them.

SerdeError
├── NotFramed        these bytes name no schema: they were not written through a registry
├── UnknownSchema    they name one that the registry does not have
├── InvalidData      bytes or a value do not fit their schema
└── UnusableSchema   no data can be read or written by this schema; the message tells why

A registry that does not answer is none of these: `schema_registry.client.errors` come through as they are.
"""


class SerdeError(ValueError):
    """Root of what reading and writing records raises."""


class NotFramed(SerdeError):
    """These bytes name no schema."""


class UnknownSchema(SerdeError):
    """These bytes name a schema that the registry does not have."""


class InvalidData(SerdeError):
    """Bytes or a value do not fit their schema."""


class UnusableSchema(SerdeError):
    """No data can be read or written by this schema."""
