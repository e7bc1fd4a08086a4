"""All that a sink's query needs, wherever it runs; goes from the worker to the engine, and from there to executors."""

from functools import cached_property
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from connect.api.engine import EngineContext, EngineFacts, TopicChoice
from connectors.spark.config import SparkSinkConfig
from connectors.spark.naming import TableNames
from streams.spark.files import join_path
from streams.spark.tables.model import TableFormat, TableSpec

JOB: Final = "sink"
"""What the engine calls this kind of job."""
OFFSETS: Final = "sink-offsets"
"""The engine's operation by which a sink that does not run is told where to read on."""
_STATE: Final = "_caudal"


class SinkSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A sink as the engine runs it. It holds secrets."""

    connector: str
    consumer: dict[str, str]
    """How to reach the cluster, in librdkafka's names."""
    producer: dict[str, str]
    admin: dict[str, str]
    group: str
    topics: TopicChoice
    options: dict[str, str]
    steps: str = ""
    """What is done to records, for `RemotePipeline.open`."""
    dead_letter_topic: str | None = None

    @classmethod
    def of_facts(cls, facts: EngineFacts, *, options: dict[str, str]) -> Self:
        """What is known of a sink that does not run."""
        return cls(
            connector=facts.connector,
            consumer=dict(facts.consumer_properties),
            producer=dict(facts.producer_properties),
            admin=dict(facts.admin_properties),
            group=facts.group,
            topics=facts.topics,
            options=options,
        )

    @classmethod
    def of_context(cls, context: EngineContext, *, options: dict[str, str]) -> Self:
        """What is known of a sink that is about to run."""
        known = cls.of_facts(context, options=options)
        return replace(known, steps=context.steps, dead_letter_topic=context.dead_letter_topic)

    @classmethod
    def of_json(cls, json: Any) -> Self:
        """As the engine gets it."""
        return msgspec.convert(json, cls)

    def as_json(self) -> Any:
        """As the engine gets it."""
        return msgspec.to_builtins(self)

    @cached_property
    def config(self) -> SparkSinkConfig:
        """The connector's options."""
        return SparkSinkConfig.parse(self.options)

    @cached_property
    def names(self) -> TableNames:
        """Which table a topic's records go to."""
        return TableNames(self.config.table, self.config.tables_by_topic)

    def table(self, name: str) -> TableSpec:
        """A table as this sink wants it."""
        table_format: TableFormat = "delta" if self.config.table_format == "delta" else "parquet"
        return TableSpec(
            name=name, format=table_format, partition_by=tuple(part.name for part in self.config.partitions)
        )


class SinkFolders(msgspec.Struct, frozen=True):
    """Where a sink keeps what it must remember, beside the tables, so that files can be moved into them."""

    root: str

    @classmethod
    def of(cls, warehouse: str, connector: str) -> "SinkFolders":
        """Those of a connector; its name may hold anything."""
        return cls(join_path(warehouse, _STATE, "sinks", quote(connector, safe="")))

    @property
    def manifest(self) -> str:
        """What was decided last."""
        return join_path(self.root, "manifest.json")

    @property
    def refused(self) -> str:
        """Shapes of rows that do not fit into their tables."""
        return join_path(self.root, "refused.json")

    @property
    def staging(self) -> str:
        """Files that wait to become part of tables."""
        return join_path(self.root, "staging")
