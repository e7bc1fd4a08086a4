"""What a caller needs for each route: an operation on the connector in the path, or on Connect as a whole.

A worker does not start with a route that is not here. Routes check themselves what is not in the path, such as the name
of a new connector in a body.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import msgspec

from core_broker.web_access.rules import Operation


class On(Enum):
    """What an operation is needed on."""

    CONNECTOR = auto()
    """The connector in the path. To callers that may not see it, it does not exist."""
    CONNECT = auto()


class Row(msgspec.Struct, frozen=True):
    """What a route needs."""

    need: tuple[Operation, On] | None = None
    is_change: bool = False
    """Whether it changes something, which the audit log should have."""


ANYONE: Final = Row()
"""Every caller that has logged in: it says nothing about connectors."""
_FILTERED: Final = Row()
"""Every caller that has logged in; the response has only what the caller may see."""
_CHECKED: Final = Row()
"""The route checks the name in the body."""
_CHECKED_CHANGE: Final = Row(is_change=True)


def _reads(operation: Operation, on: On = On.CONNECTOR) -> Row:
    return Row((operation, on))


def _changes(operation: Operation, on: On = On.CONNECTOR) -> Row:
    return Row((operation, on), is_change=True)


ROWS: Final[Mapping[str, Row]] = {
    "GET /": ANYONE,
    "GET /health": ANYONE,
    "GET /metrics": _reads(Operation.DESCRIBE, On.CONNECT),
    # Connectors and their configurations.
    "GET /connectors": _FILTERED,
    "POST /connectors": _CHECKED_CHANGE,
    "POST /connectors/dry-run": _CHECKED,
    "GET /connectors/{connector}": _reads(Operation.DESCRIBE_CONFIGS),
    "DELETE /connectors/{connector}": _changes(Operation.DELETE),
    "GET /connectors/{connector}/config": _reads(Operation.DESCRIBE_CONFIGS),
    "PUT /connectors/{connector}/config": _CHECKED_CHANGE,
    "PATCH /connectors/{connector}/config": _changes(Operation.ALTER_CONFIGS),
    "GET /connectors/{connector}/tasks": _reads(Operation.DESCRIBE_CONFIGS),
    "GET /connectors/{connector}/tasks-config": _reads(Operation.DESCRIBE_CONFIGS),
    # States.
    "GET /connectors/{connector}/status": _reads(Operation.DESCRIBE),
    "GET /connectors/{connector}/tasks/{task}/status": _reads(Operation.DESCRIBE),
    "PUT /connectors/{connector}/pause": _changes(Operation.ALTER),
    "PUT /connectors/{connector}/resume": _changes(Operation.ALTER),
    "PUT /connectors/{connector}/stop": _changes(Operation.ALTER),
    "POST /connectors/{connector}/restart": _changes(Operation.ALTER),
    "POST /connectors/{connector}/tasks/{task}/restart": _changes(Operation.ALTER),
    # Offsets and topics.
    "GET /connectors/{connector}/offsets": _reads(Operation.DESCRIBE),
    "PATCH /connectors/{connector}/offsets": _changes(Operation.ALTER),
    "DELETE /connectors/{connector}/offsets": _changes(Operation.ALTER),
    "GET /connectors/{connector}/topics": _reads(Operation.DESCRIBE),
    "PUT /connectors/{connector}/topics/reset": _changes(Operation.ALTER),
    # Dead letters are data.
    "GET /connectors/{connector}/dlq": _reads(Operation.READ),
    "POST /connectors/{connector}/dlq/redrive": _changes(Operation.WRITE),
    # Plugins are the same for all; a validation resolves placeholders and may connect to the other system.
    "GET /connector-plugins": ANYONE,
    "GET /connector-plugins/{plugin}/config": ANYONE,
    "PUT /connector-plugins/{plugin}/config/validate": _CHECKED,
    # Connect as a whole.
    "GET /admin/loggers": _reads(Operation.DESCRIBE_CONFIGS, On.CONNECT),
    "GET /admin/loggers/{logger}": _reads(Operation.DESCRIBE_CONFIGS, On.CONNECT),
    "PUT /admin/loggers/{logger}": _changes(Operation.ALTER_CONFIGS, On.CONNECT),
    "GET /security/acls": _reads(Operation.DESCRIBE, On.CONNECT),
    "POST /security/acls": Row((Operation.ALTER, On.CONNECT)),
    "DELETE /security/acls": Row((Operation.ALTER, On.CONNECT)),
}
