"""RedisStreamSourceConnector: entries of a stream become records, each acknowledged when it is safe in Kafka.

All tasks read with one group. An entry that was read and not acknowledged is read again: by the same consumer after a
restart, or by another one after a while (`redis.stream.claim.idle.ms`). Offsets are `{"stream": name}` →
`{"offset": id}`, only for people to see and change: Redis itself knows the position of the group.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import redis
from typing_extensions import override

from connect.api.config import Config
from connect.api.data import STRING, Schema, mapping, struct
from connect.api.errors import ConnectError, DataError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceContext, SourceOffset, SourcePartition, SourceTask
from connectors.redis import server
from connectors.redis.config import RedisStreamConfig

log = logging.getLogger(__name__)

VALUE: Final[Schema] = struct(
    {"id": STRING, "body": mapping(STRING, STRING), "stream": STRING}, name="com.redis.kafka.connect.stream.Value"
)
_FROM_THE_START: Final = "0-0"
_PLAUSIBLE_MS: Final = 1_000_000_000_000
"""Ids before 2001 are not times but were chosen by an application."""
_IN_FLIGHT_MAX: Final = 100_000
_ACKNOWLEDGED_AT_ONCE: Final = 1000

Entry = tuple[bytes, Mapping[bytes, bytes] | None]
"""The id and fields of an entry; None when it was deleted before it was acknowledged."""


class RedisStreamTask(SourceTask):
    """A consumer of the group."""

    config: RedisStreamConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, RedisStreamConfig)
        super().__init__(config, context)
        self._client = server.client_of(config)
        self._stream = config.redis_stream_name
        self._group = config.redis_stream_consumer_group
        self._consumer = config.redis_stream_consumer_name.replace("${task}", str(context.task))
        self._topic = config.topic.replace("${stream}", self._stream)
        self._partition = {"stream": self._stream}
        self._waits_for_kafka = config.redis_stream_delivery == "at-least-once"
        self._has_group = False
        self._backlog: str | None = _FROM_THE_START if self._waits_for_kafka else None
        """The entry after which to continue with what this consumer had read before it started; None: that is done."""
        self._claim_from = _FROM_THE_START
        self._next_claim = 0.0
        self._in_flight: set[str] = set()
        self._safe: list[str] = []

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """Entries of an earlier run, those of consumers that are gone, then new ones."""
        if len(self._in_flight) >= _IN_FLIGHT_MAX:
            self.context.wait(1.0)
            return []
        try:
            return self._records(self._next_entries())
        except redis.ResponseError as error:
            if str(error).startswith("NOGROUP"):
                self._has_group = False
                return []
            raise _map_error(error) from error
        except server.ERRORS as error:
            # A reply that was lost may have held entries, which belong to this consumer now.
            self._backlog = _FROM_THE_START if self._waits_for_kafka else None
            raise _map_error(error) from error

    @override
    def commit_record(self, record: SourceRecord) -> None:
        if self._waits_for_kafka:
            self._safe.append(str(record.source_offset["offset"]))

    @override
    def commit(self) -> None:
        """Acknowledge entries; those that cannot be acknowledged now are the next time."""
        try:
            while self._safe:
                some = self._safe[:_ACKNOWLEDGED_AT_ONCE]
                self._client.xack(self._stream, self._group, *some)
                del self._safe[:_ACKNOWLEDGED_AT_ONCE]
                self._in_flight.difference_update(some)
        except server.ERRORS as error:
            extra = {"stream": self._stream, "entries": len(self._safe), "error": str(error)}
            log.warning("entries cannot be acknowledged yet", extra=extra)

    @override
    def stop(self) -> None:
        self._client.close()

    def _next_entries(self) -> list[Entry]:
        if not self._has_group:
            self._create_group()
        if self._backlog is not None:
            entries = self._read(self._backlog)
            if entries:
                self._backlog = entries[-1][0].decode()
                return self._without_in_flight(entries)
            self._backlog = None
        return self._claim_idle() or self._read(">")

    def _create_group(self) -> None:
        try:
            self._client.xgroup_create(self._stream, self._group, id=self.config.redis_stream_offset, mkstream=True)
            log.info("group created", extra={"stream": self._stream, "group": self._group})
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._has_group = True

    def _read(self, after: str) -> list[Entry]:
        reply: Any = server.execute(
            self._client,
            *("XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", self.config.batch_size),
            *(("BLOCK", self.config.redis_stream_block) if after == ">" else ()),
            *(() if self._waits_for_kafka else ("NOACK",)),
            *("STREAMS", self._stream, after),
        )
        return _parse_entries(reply[0][1]) if reply else []

    def _claim_idle(self) -> list[Entry]:
        """Some entries that other consumers have not acknowledged for too long; looked for at intervals."""
        idle_ms = self.config.redis_stream_claim_idle_ms
        if not idle_ms or not self._waits_for_kafka or time.monotonic() < self._next_claim:
            return []
        reply: Any = server.execute(
            self._client,
            *("XAUTOCLAIM", self._stream, self._group, self._consumer, idle_ms, self._claim_from),
            *("COUNT", self.config.batch_size),
        )
        self._claim_from = reply[0].decode()
        if self._claim_from == _FROM_THE_START:
            self._next_claim = time.monotonic() + max(idle_ms / 2000, 0.1)
        return self._without_in_flight(_parse_entries(reply[1]))

    def _without_in_flight(self, entries: Sequence[Entry]) -> list[Entry]:
        """Entries without those that this task has returned and that are not committed yet."""
        return [entry for entry in entries if entry[0].decode() not in self._in_flight]

    def _records(self, entries: Sequence[Entry]) -> list[SourceRecord]:
        records = []
        for raw_id, fields in entries:
            entry = raw_id.decode()
            if self._waits_for_kafka:
                self._in_flight.add(entry)
            if fields is None:
                self._safe.append(entry)
                continue
            try:
                body = {name.decode(): item.decode() for name, item in fields.items()}
            except UnicodeDecodeError as error:
                data = b"\n".join(name + b"=" + item for name, item in fields.items())
                refusal = DataError(f"entry {entry} of {self._stream} is not text: {error}")
                self.context.report(data, refusal, partition=self._partition, offset={"offset": entry})
                if self._waits_for_kafka:
                    self._safe.append(entry)
                continue
            records.append(self._record(entry, body))
        return records

    def _record(self, entry: str, body: dict[str, str]) -> SourceRecord:
        milliseconds = int(entry.partition("-")[0])
        return SourceRecord(
            topic=self._topic,
            key_schema=STRING,
            key=entry,
            value_schema=VALUE,
            value={"id": entry, "body": body, "stream": self._stream},
            timestamp_ms=milliseconds if _PLAUSIBLE_MS < milliseconds < 1 << 62 else None,
            source_partition=self._partition,
            source_offset={"offset": entry},
        )


class RedisStreamSourceConnector(SourceConnector):
    """Reads a stream of Redis."""

    config_class = RedisStreamConfig
    task_class: ClassVar[type[SourceTask]] = RedisStreamTask
    tasks_limit = None
    aliases = (
        "com.redis.kafka.connect.RedisStreamSourceConnector",
        "RedisStreamSourceConnector",
        "RedisStreamSource",
    )

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Let the group continue after an entry; without an offset, where a new group begins."""
        config = self.config
        assert isinstance(config, RedisStreamConfig)
        wanted = [_parse_altered(config, partition, offset) for partition, offset in offsets]
        client = server.client_of(config)
        try:
            for entry in wanted:
                client.xgroup_setid(config.redis_stream_name, config.redis_stream_consumer_group, entry)
        except server.ERRORS as error:
            raise ConnectError(f"cannot change the position of the group in Redis: {error}") from error
        finally:
            client.close()
        return True


def _parse_altered(config: RedisStreamConfig, partition: SourcePartition, offset: SourceOffset | None) -> str:
    if dict(partition) != {"stream": config.redis_stream_name}:
        raise ConnectError(f'the partition must be {{"stream": "{config.redis_stream_name}"}}, not {dict(partition)}')
    if offset is None:
        return config.redis_stream_offset
    entry = offset.get("offset")
    if not isinstance(entry, str) or not all(part.isdecimal() for part in entry.split("-", 1)):
        raise ConnectError(f'the offset must be {{"offset": "the id of an entry"}}, not {dict(offset)}')
    return entry


def _map_error(error: Exception) -> ConnectError:
    mapped = server.map_error(error, doing="cannot read from Redis")
    return mapped if server.is_retriable(error) else ConnectError(str(mapped))


def _parse_entries(entries: Any) -> list[Entry]:
    return [(entry, fields or None) for entry, fields in entries if entry is not None]
