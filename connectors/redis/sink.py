"""RedisSinkConnector: records become keys, hashes, documents, or entries of streams, lists and sets.

Each put is written in pipelines, in order. What Redis refuses about one record is that record's fault and told alone;
what it refuses because it is full, loading, a replica or away is nobody's: the same records are written again, without
those that Redis has taken already.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from connect.api.config import Config, Problem
from connect.api.errors import ConfigError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkContext, SinkTask, TopicPartition
from connectors.redis import server
from connectors.redis.commands import writer_of
from connectors.redis.config import RedisSinkConfig

log = logging.getLogger(__name__)

_NO_JSON = "Redis does not know JSON.SET: it needs version 8 or the module RedisJSON"


class RedisSinkTask(SinkTask):
    """Writes to one Redis."""

    config: RedisSinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        assert isinstance(config, RedisSinkConfig)
        super().__init__(config, context)
        self.config = config
        self._commands_of = writer_of(config)
        self._client = server.client_of(config, encoding=config.redis_charset)
        self._done: set[tuple[TopicPartition, int]] = set()
        """What Redis has of a put that failed: it is not written again when it comes again."""

    @override
    def start(self) -> None:
        """Refuse JSON where it cannot work; a Redis that is away is waited for by `put`."""
        if self.config.kind == "JSON":
            try:
                has_json = server.has_json(self._client)
            except server.ERRORS as error:
                log.warning("Redis does not answer yet", extra={"error": str(error)})
                return
            if not has_json:
                raise ConfigError(f"Invalid value JSON for configuration redis.type: {_NO_JSON}")

    @override
    def open(self, places: Collection[TopicPartition]) -> None:
        self._done.clear()

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write all; RetriableError when Redis cannot take them now."""
        try:
            for start in range(0, len(records), self.config.batch_size):
                self._write(records[start : start + self.config.batch_size])
            if records and self.config.redis_wait_replicas:
                self._wait_for_replicas()
        except RetriableError:
            self.context.retry_after(self.config.retry_backoff_ms)
            raise
        if self._done:
            self._done.difference_update((record.place, record.original_offset) for record in records)

    @override
    def stop(self) -> None:
        self._client.close()

    def _write(self, records: Sequence[SinkRecord]) -> None:
        if self._done:
            records = [record for record in records if (record.place, record.original_offset) not in self._done]
        pipeline: Any = self._client.pipeline(transaction=self.config.redis_multiexec)
        written: list[tuple[SinkRecord, int]] = []
        refused: list[tuple[SinkRecord, Exception]] = []
        for record in records:
            try:
                commands = self._commands_of(record)
            except DataError as error:
                refused.append((record, error))
                continue
            for command in commands:
                pipeline.execute_command(*command)
            written.append((record, len(commands)))
        answers = self._execute(pipeline) if written else []
        outage = self._outage(written, answers, refused)
        for record, reason in refused:
            self._done.add((record.place, record.original_offset))
            self.context.report(record, reason)
        if outage is not None:
            raise server.classified(outage, doing="cannot write to Redis") from outage

    def _execute(self, pipeline: Any) -> list[Any]:
        try:
            answers: list[Any] = pipeline.execute(raise_on_error=False)
        except (*server.ERRORS, UnicodeError) as error:
            raise server.classified(error, doing="cannot write to Redis") from error
        return answers

    def _outage(
        self,
        written: Sequence[tuple[SinkRecord, int]],
        answers: list[Any],
        refused: list[tuple[SinkRecord, Exception]],
    ) -> Exception | None:
        """Sort out answers: who is refused, and whether Redis refuses for a reason of its own."""
        if not any(isinstance(answer, Exception) for answer in answers):
            return None
        outage: Exception | None = None
        place = 0
        for record, count in written:
            error = next((it for it in answers[place : place + count] if isinstance(it, Exception)), None)
            place += count
            if error is None:
                self._done.add((record.place, record.original_offset))
            elif server.is_retriable(error):
                outage = error
            else:
                refused.append((record, server.classified(error, doing="Redis refuses a record")))
        return outage

    def _wait_for_replicas(self) -> None:
        wanted = self.config.redis_wait_replicas
        try:
            reached = self._client.wait(wanted, self.config.redis_wait_timeout)
        except server.ERRORS as error:
            raise server.classified(error, doing="cannot wait for the replicas of Redis") from error
        if int(reached) < wanted:
            raise RetriableError(f"what was written has reached {reached} replicas of Redis, and {wanted} are wanted")


class RedisSinkConnector(SinkConnector):
    """Writes topics to Redis."""

    config_class = RedisSinkConfig
    task_class: ClassVar[type[SinkTask]] = RedisSinkTask
    aliases = ("com.redis.kafka.connect.RedisSinkConnector", "RedisSinkConnector", "RedisSink")

    @override
    @classmethod
    def validate(cls, config: Config) -> Iterable[Problem]:
        assert isinstance(config, RedisSinkConfig)
        if config.kind != "JSON":
            return
        client = server.client_of(config)
        try:
            if not server.has_json(client):
                yield Problem("redis.type", f"Invalid value JSON for configuration redis.type: {_NO_JSON}")
        except server.ERRORS:
            return  # a Redis that is away now may come back with it
        finally:
            client.close()
