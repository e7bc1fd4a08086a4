"""Rules for topic names."""

import re
from collections.abc import Collection
from typing import Final

from core_broker.cluster.quorum import METADATA_TOPIC
from core_broker.errors import BrokerError, ErrorCode

_NAME_LENGTH_MAX: Final = 249
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION unless the name is valid."""
    if (reason := _name_problem(name)) is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {name[:300]!r} is invalid: {reason}")


def is_valid_topic_name(name: str) -> bool:
    """Whether the name is valid."""
    return _name_problem(name) is None


def check_collision(name: str, existing: Collection[str]) -> None:
    """Raise INVALID_TOPIC_EXCEPTION if the name differs from an existing one only in `.` and `_`.

    Metric names replace periods with underscores, so such topics would share their metrics.
    """
    if "." not in name and "_" not in name:
        return
    flat = name.replace(".", "_")
    other = next((topic for topic in existing if topic != name and topic.replace(".", "_") == flat), None)
    if other is not None:
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic {name!r} collides with existing topic {other!r}: names must differ in more than '.' and '_'",
        )


def _name_problem(name: str) -> str | None:
    if not name:
        return "it must not be empty"
    if name in (".", ".."):
        return "it must not be '.' or '..'"
    if len(name) > _NAME_LENGTH_MAX:
        return f"it has {len(name)} characters, at most {_NAME_LENGTH_MAX} are allowed"
    if not _LEGAL_NAME.fullmatch(name):
        return "only ASCII letters, digits, '.', '_' and '-' are allowed"
    if name == METADATA_TOPIC:
        return "it is reserved for the cluster's own metadata"
    return None
