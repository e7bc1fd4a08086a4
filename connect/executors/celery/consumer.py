"""Lets a Celery worker reconnect to Redis quickly."""

from typing import Any, Final

from celery.worker.consumer import Consumer  # type: ignore[import-untyped]  # it ships no types
from typing_extensions import override

_LONGEST_PAUSE_S: Final = 2.0


class PromptConsumer(Consumer):  # type: ignore[misc]  # its class is untyped
    """Tries to connect every two seconds; Celery itself would wait half a minute after a longer outage."""

    @override
    def ensure_connected(self, conn: Any) -> Any:
        """Connect, however long it takes."""
        ensure = conn.ensure_connection

        def ensure_soon(*arguments: Any, **options: Any) -> Any:
            pauses = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": _LONGEST_PAUSE_S}
            return ensure(*arguments, **options, **pauses)

        conn.ensure_connection = ensure_soon
        return super().ensure_connected(conn)
