"""RedisStreamSourceConnector: entries of a stream become records, each acknowledged when it is safe in Kafka.

All tasks read with one group. An entry that was read and not acknowledged is read again: by the same consumer when it
comes back, by another one when it stays away (`redis.stream.claim.idle.ms`). Offsets are `{"stream": name}` →
`{"offset": id}`, for people to look at and to change; where the group goes on is known by Redis.
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
"""Ids before 2001 are no times: somebody has chosen them."""
_IN_FLIGHT_MAX: Final = 100_000
_ACKNOWLEDGED_AT_ONCE: Final = 1000

Entry = tuple[bytes, Mapping[bytes, bytes] | None]
"""Its id and fields; None when it was deleted before it was acknowledged."""


class RedisStreamTask(SourceTask):
    """One consumer of the group."""

    config: RedisStreamConfig

    def __init__(self, config: Config, context: SourceContext) -> None:
        assert isinstance(config, RedisStreamConfig)
        super().__init__(config, context)
        self.config = config
        self._client = server.client_of(config)
        self._stream = config.redis_stream_name
        self._group = config.redis_stream_consumer_group
        self._consumer = config.redis_stream_consumer_name.replace("${task}", str(context.task))
        self._topic = config.topic.replace("${stream}", self._stream)
        self._partition = {"stream": self._stream}
        self._waits_for_kafka = config.redis_stream_delivery == "at-least-once"
        self._has_group = False
        self._backlog: str | None = _FROM_THE_START if self._waits_for_kafka else None
        """Behind which entry to go on with what this consumer had before it was started; None: that is done."""
        self._claim_from = _FROM_THE_START
        self._next_claim = 0.0
        self._in_flight: set[str] = set()
        self._safe: list[str] = []

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """Entries that are left from before, those of consumers that are gone, then new ones."""
        if len(self._in_flight) >= _IN_FLIGHT_MAX:
            self.context.wait(1.0)
            return []
        try:
            return self._records(self._entries())
        except redis.ResponseError as error:
            if str(error).startswith("NOGROUP"):
                self._has_group = False
                return []
            raise _failed(error) from error
        except server.ERRORS as error:
            # An answer that was lost may have held entries: they are this consumer's now.
            self._backlog = _FROM_THE_START if self._waits_for_kafka else None
            raise _failed(error) from error

    @override
    def commit_record(self, record: SourceRecord) -> None:
        if self._waits_for_kafka:
            self._safe.append(str(record.source_offset["offset"]))

    @override
    def commit(self) -> None:
        """Acknowledge; what cannot be told to Redis now is told the next time."""
        try:
            while self._safe:
                some = self._safe[:_ACKNOWLEDGED_AT_ONCE]
                self._client.xack(self._stream, self._group, *some)
                del self._safe[:_ACKNOWLEDGED_AT_ONCE]
                self._in_flight.difference_update(some)
        except server.ERRORS as error:
            extra = {"stream": self._stream, "entries": len(self._safe), "error": str(error)}
            log.warning("entries are not acknowledged: they are with the next ones", extra=extra)

    @override
    def stop(self) -> None:
        self._client.close()

    def _entries(self) -> list[Entry]:
        if not self._has_group:
            self._create_group()
        if self._backlog is not None:
            entries = self._read(self._backlog)
            if entries:
                self._backlog = entries[-1][0].decode()
                return self._not_under_way(entries)
            self._backlog = None
        return self._claimed() or self._read(">")

    def _create_group(self) -> None:
        try:
            self._client.xgroup_create(self._stream, self._group, id=self.config.redis_stream_offset, mkstream=True)
            log.info("group created", extra={"stream": self._stream, "group": self._group})
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._has_group = True

    def _read(self, behind: str) -> list[Entry]:
        answer: Any = server.ask(
            self._client,
            *("XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", self.config.batch_size),
            *(("BLOCK", self.config.redis_stream_block) if behind == ">" else ()),
            *(() if self._waits_for_kafka else ("NOACK",)),
            *("STREAMS", self._stream, behind),
        )
        return _entries_of(answer)

    def _claimed(self) -> list[Entry]:
        """Some of what other consumers have not acknowledged for too long; looked for now and then."""
        idle_ms = self.config.redis_stream_claim_idle_ms
        if not idle_ms or not self._waits_for_kafka or time.monotonic() < self._next_claim:
            return []
        answer: Any = server.ask(
            self._client,
            *("XAUTOCLAIM", self._stream, self._group, self._consumer, idle_ms, self._claim_from),
            *("COUNT", self.config.batch_size),
        )
        self._claim_from = answer[0].decode()
        if self._claim_from == _FROM_THE_START:
            self._next_claim = time.monotonic() + max(idle_ms / 2000, 0.1)
        return self._not_under_way(_pairs(answer[1]))

    def _not_under_way(self, entries: Sequence[Entry]) -> list[Entry]:
        """Without those that this task has sent to Kafka and waits for."""
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
                self._report(entry, fields, error)
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

    def _report(self, entry: str, fields: Mapping[bytes, bytes], error: UnicodeDecodeError) -> None:
        data = b"\n".join(name + b"=" + item for name, item in fields.items())
        refusal = DataError(f"entry {entry} of {self._stream} is no text: {error}")
        self.context.report(data, refusal, partition=self._partition, offset={"offset": entry})
        if self._waits_for_kafka:
            self._safe.append(entry)


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
        """Let the group go on behind an entry; without an offset where a new group would."""
        config = self.config
        assert isinstance(config, RedisStreamConfig)
        wanted = [_altered(config, partition, offset) for partition, offset in offsets]
        client = server.client_of(config)
        try:
            for entry in wanted:
                client.xgroup_setid(config.redis_stream_name, config.redis_stream_consumer_group, entry)
        except server.ERRORS as error:
            raise ConnectError(f"Redis does not change where the group is: {error}") from error
        finally:
            client.close()
        return True


def _altered(config: RedisStreamConfig, partition: SourcePartition, offset: SourceOffset | None) -> str:
    if dict(partition) != {"stream": config.redis_stream_name}:
        raise ConnectError(f'the partition must be {{"stream": "{config.redis_stream_name}"}}, not {dict(partition)}')
    if offset is None:
        return config.redis_stream_offset
    entry = offset.get("offset")
    if not isinstance(entry, str) or not all(part.isdecimal() for part in entry.split("-", 1)):
        raise ConnectError(f'the offset must be {{"offset": "the id of an entry"}}, not {dict(offset)}')
    return entry


def _failed(error: Exception) -> ConnectError:
    retriable = server.classified(error, doing="cannot read from Redis")
    return retriable if server.is_retriable(error) else ConnectError(str(retriable))


def _entries_of(answer: Any) -> list[Entry]:
    """The entries of the one stream that was asked for."""
    return _pairs(answer[0][1]) if answer else []


def _pairs(entries: Any) -> list[Entry]:
    return [(entry, fields or None) for entry, fields in entries if entry is not None]
