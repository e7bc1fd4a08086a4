"""SparkSinkConnector: topics become tables of Spark; every record once, be it a row or a dead letter."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.engine import EngineFacts, EngineSinkConnector
from connect.api.errors import ConnectError
from connect.api.sink import TopicPartition
from connectors.spark.config import SparkSinkConfig
from connectors.spark.sink_task import SparkSinkTask, engine_settings
from connectors.spark.spec import OFFSETS, SinkSpec
from streams.errors import JavaMissing, StreamsError
from streams.spark.engine.client import Engine
from streams.spark.java import find_java


class SparkSinkConnector(EngineSinkConnector):
    """Lets the engine stream topics into tables. One task: what it does is shared out by Spark."""

    config_class = SparkSinkConfig
    task_class = SparkSinkTask
    aliases: ClassVar[tuple[str, ...]] = ("io.caudal.connect.spark.SparkSinkConnector",)

    @classmethod
    @override
    def validate(cls, config: Config) -> Iterable[Problem]:
        try:
            find_java(os.environ)
        except JavaMissing as error:
            yield Problem("connector.class", str(error))

    @override
    def alter_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """The sink reads on from these offsets, and from the beginning where there is none."""
        changes = [[topic, partition, offset] for (topic, partition), offset in offsets.items()]
        return self._asked(facts, offsets=changes, forget=False)

    @override
    def reset_engine_offsets(self, facts: EngineFacts, offsets: Mapping[TopicPartition, int]) -> bool:
        """The sink begins anew."""
        return self._asked(facts, offsets=[], forget=True)

    def _asked(self, facts: EngineFacts, **arguments: Any) -> bool:
        spec = SinkSpec.of_facts(facts, options=dict(self.config.given))
        try:
            with Engine.connect(engine_settings(facts)) as engine:
                engine.call(OFFSETS, spec=spec.as_json(), **arguments)
        except StreamsError as error:
            raise ConnectError(str(error)) from error
        return True
