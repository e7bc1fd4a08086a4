"""Everything that the query of a sink needs; goes from the worker to the engine, and from there to executors."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from connect.api.engine import EngineContext, EngineFacts, TopicChoice
from connectors.spark.config import SparkSinkConfig
from connectors.spark.naming import TableNames
from core_broker.client.admin import Admin
from core_broker.client.handshake import check_handshake
from core_broker.client.settings import ClientSettings
from streams.spark.commits.outbox import Outbox
from streams.spark.files import join_path
from streams.spark.tables.model import TableFormat, TableSpec

JOB: Final = "sink"
"""The engine's name for this kind of job."""
OFFSETS: Final = "sink-offsets"
"""The engine's operation that changes where a stopped sink continues to read."""
QUIET: Final = {"log_level": "0"}
"""The library would log what every call reports anyway."""
_STATE: Final = "_caudal"


class SinkSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A sink as the engine runs it. It holds secrets."""

    connector: str
    consumer: dict[str, str]
    """Client properties, in librdkafka's names."""
    producer: dict[str, str]
    admin: dict[str, str]
    group: str
    topics: TopicChoice
    options: dict[str, str]
    steps: str = ""
    """Converters and transforms, for `RemotePipeline.open`."""

    @override
    def __repr__(self) -> str:
        return f"SinkSpec(connector={self.connector!r})"

    @classmethod
    def of_facts(cls, facts: EngineFacts, *, options: dict[str, str]) -> Self:
        """A sink that does not run."""
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
        """A sink that is about to run."""
        return replace(cls.of_facts(context, options=options), steps=context.steps)

    @classmethod
    def of_json(cls, json: Any) -> Self:
        """Read what `as_json` wrote."""
        return msgspec.convert(json, cls)

    def as_json(self) -> Any:
        """The spec as it is sent to the engine."""
        return msgspec.to_builtins(self)

    @cached_property
    def config(self) -> SparkSinkConfig:
        """The connector's options."""
        return SparkSinkConfig.parse(self.options)

    @cached_property
    def names(self) -> TableNames:
        """The table of each topic."""
        return TableNames(self.config.table, self.config.tables_by_topic)

    def table(self, name: str) -> TableSpec:
        """A table as this sink creates it."""
        table_format: TableFormat = "delta" if self.config.table_format == "delta" else "parquet"
        return TableSpec(
            name=name, format=table_format, partition_by=tuple(part.name for part in self.config.partitions)
        )

    def open_admin(self) -> Admin:
        """An admin client of the sink's cluster."""
        return Admin(_client_settings(self.admin))

    def check_logins(self) -> None:
        """Raise NotAllowed or Untrusted if the cluster refuses one of the clients: the library would go on trying."""
        for properties in (self.admin, self.consumer, self.producer):
            check_handshake(_client_settings(properties))

    def open_outbox(self) -> Outbox:
        """What sends the sink's dead letters and commits its offsets."""
        return Outbox(
            f"sink {self.connector}",
            group=self.group,
            transactional_id=f"connect-spark-{self.connector}",
            admin=_client_settings(self.admin),
            producer=_client_settings(self.producer),
        )


class SinkFolders(msgspec.Struct, frozen=True):
    """Where a sink keeps its state: beside the tables, so that files can be moved into them."""

    root: str

    @classmethod
    def of(cls, warehouse: str, connector: str) -> "SinkFolders":
        """The folders of a connector; its name may contain any character."""
        return cls(join_path(warehouse, _STATE, "sinks", quote(connector, safe="")))

    @property
    def manifest(self) -> str:
        """The last decision."""
        return join_path(self.root, "manifest.json")

    @property
    def refused(self) -> str:
        """Schemas of rows that do not fit their tables."""
        return join_path(self.root, "refused.json")

    @property
    def staging(self) -> str:
        """Files that are not yet part of a table."""
        return join_path(self.root, "staging")


def _client_settings(properties: Mapping[str, str]) -> ClientSettings:
    others = {key: value for key, value in properties.items() if key != "bootstrap.servers"}
    return ClientSettings(bootstrap_servers=properties["bootstrap.servers"], properties={**QUIET, **others})
