"""Tables to keep copies of."""

from typing import Final

from streams.formats.registry import RegistrySettings, Schemas
from streams.model.sources import Column, Format, Source, WindowInfo

NO_REGISTRY: Final = Schemas(RegistrySettings())


def table(
    topic: str = "counts",
    *,
    name: str = "COUNTS",
    key: tuple[Column, ...] = (Column("WORD", "STRING"),),
    value: tuple[Column, ...] = (Column("N", "BIGINT"),),
    window: WindowInfo | None = None,
) -> Source:
    """A table of JSON values; keys are KAFKA's, or JSON's where there are several columns."""
    return Source(
        name=name,
        kind="TABLE",
        topic=topic,
        key_format=Format(name="KAFKA" if len(key) == 1 else "JSON"),
        value_format=Format(name="JSON"),
        key=key,
        value=value,
        window=window,
        is_materialized=True,
    )


TUMBLING: Final = WindowInfo(kind="TUMBLING", size_ms=1000)
SESSION: Final = WindowInfo(kind="SESSION")
