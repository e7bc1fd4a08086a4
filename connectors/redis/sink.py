"""RedisSinkConnector: writes records as strings, hashes, documents, or entries of streams, lists and sets.

Each put is written in pipelines, in order. A record that Redis refuses is reported. No record is to blame when Redis is
full, loading, a replica or unreachable: the same records are put again, without those that Redis has accepted.
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

_NO_JSON = "this Redis has no JSON.SET, which needs version 8 or the module RedisJSON"


class RedisSinkTask(SinkTask):
    """Writes to one Redis."""

    config: RedisSinkConfig

    def __init__(self, config: Config, context: SinkContext) -> None:
        assert isinstance(config, RedisSinkConfig)
        super().__init__(config, context)
        self._commands_of = writer_of(config)
        self._client = server.client_of(config, encoding=config.redis_charset)
        self._done: set[tuple[TopicPartition, int]] = set()
        """Records of a failed put that Redis has accepted, which are not written again when they are put again."""

    @override
    def start(self) -> None:
        """Refuse JSON where it cannot work; if Redis is unreachable, `put` will wait for it."""
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
        """Write all records; RetriableError when Redis cannot accept them now."""
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
        try:
            replies = pipeline.execute(raise_on_error=False) if written else []
        except (*server.ERRORS, UnicodeError) as error:
            raise server.map_error(error, doing="cannot write to Redis") from error
        outage = self._check_replies(written, replies, refused)
        for record, reason in refused:
            self._done.add((record.place, record.original_offset))
            self.context.report(record, reason)
        if outage is not None:
            raise server.map_error(outage, doing="cannot write to Redis") from outage

    def _check_replies(
        self,
        written: Sequence[tuple[SinkRecord, int]],
        replies: list[Any],
        refused: list[tuple[SinkRecord, Exception]],
    ) -> Exception | None:
        """Find refused records among the replies; returns an error that is about Redis itself."""
        if not any(isinstance(reply, Exception) for reply in replies):
            return None
        outage: Exception | None = None
        index = 0
        for record, count in written:
            error = next((it for it in replies[index : index + count] if isinstance(it, Exception)), None)
            index += count
            if error is None:
                self._done.add((record.place, record.original_offset))
            elif server.is_retriable(error):
                outage = error
            else:
                refused.append((record, server.map_error(error, doing="Redis refuses the record")))
        return outage

    def _wait_for_replicas(self) -> None:
        wanted = self.config.redis_wait_replicas
        try:
            reached = self._client.wait(wanted, self.config.redis_wait_timeout)
        except server.ERRORS as error:
            raise server.map_error(error, doing="cannot wait for the replicas of Redis") from error
        if int(reached) < wanted:
            raise RetriableError(f"only {reached} of {wanted} replicas of Redis have received the records")


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
            return  # A Redis that is unreachable now may have it later.
        finally:
            client.close()
