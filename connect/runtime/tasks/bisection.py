"""Finds the bad records of a batch that a sink refuses, by putting smaller and smaller parts of it."""

from collections.abc import Callable, Sequence

from connect.api.record import SinkRecord


def isolate(
    records: Sequence[SinkRecord],
    error: Exception,
    *,
    put: Callable[[Sequence[SinkRecord]], None],
    bad: Callable[[SinkRecord, Exception], None],
) -> None:
    """Put all that can be put, in order, and tell of each record that cannot; `error` is why all together cannot."""
    if len(records) == 1:
        bad(records[0], error)
        return
    middle = len(records) // 2
    for part in (records[:middle], records[middle:]):
        if not part:
            continue
        try:
            put(part)
        except Exception as refusal:  # noqa: BLE001 - connectors are anybody's code
            isolate(part, refusal, put=put, bad=bad)
