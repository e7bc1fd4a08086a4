"""The topic by which dead letters come back to their sink, and what its records say of themselves."""

from typing import Final

REDRIVE_PREFIX: Final = "__connect.redrive."
COUNT, TOPIC = REDRIVE_PREFIX + "count", REDRIVE_PREFIX + "topic"


def redrive_topic(connector: str) -> str:
    """The topic of a connector; its sink reads it beside its own topics."""
    return f"connect-redrive-{connector}"
