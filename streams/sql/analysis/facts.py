"""What a plan depends on beside the statement and the catalog: values that the server finds out."""

from collections.abc import Mapping

import msgspec

from streams.model.sources import Column


class Inferred(msgspec.Struct, frozen=True):
    """Columns that come from the schemas of the registry."""

    key: tuple[Column, ...] = ()
    value: tuple[Column, ...] = ()
    key_schema_id: int | None = None
    value_schema_id: int | None = None


class Facts(msgspec.Struct, frozen=True):
    """What the cluster and the registry say."""

    partitions: Mapping[str, int]
    """The topics that exist, and how many partitions they have."""
    inferred: Inferred | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How this statement is run."""

    service_id: str
    query_id: str = ""
    properties: Mapping[str, str] = {}
    """ksqlDB's properties as they hold for the statement."""
    default_partitions: int = 1
    default_replicas: int = 1
