"""Guards topics whose records must have registered schema ids.

A batch is opened, the schemas of its records are collected, and each is looked up once in the registry. Cached results
are used at once, so a batch waits only for new schemas. Nothing is appended here; the caller gets the errors of a batch
and rejects it as a whole.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeAlias

import msgspec

from core_broker.errors import RECORD_ERRORS_MAX, BrokerError, ErrorCode, RecordsRefused
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.records import Record
from core_broker.schema_guard.framing import ID_END, BadFraming, Headers, Side, guid_text, read_framing
from core_broker.schema_guard.registry import Registry, RegistryUnavailable
from core_broker.schema_guard.remembered_answers import Lifetimes, RememberedAnswers
from core_broker.service.clock import Clock
from core_broker.settings import BrokerSettings, TopicSettings
from core_broker.settings.schema_guard import RECORD_NAME, TOPIC_NAME

_QUESTIONS_PER_ROUND: Final = 32
"""Concurrent lookups; also the number of lookups after which a batch of a million invented ids is rejected."""
_SCHEMAS_MAX: Final = 1000
"""Limit of the schemas in one batch; normal batches have one or a few."""
_SUBJECT_LENGTH_MAX: Final = 1000

Question: TypeAlias = Callable[[], asyncio.Task[None]]


class _Claim(msgspec.Struct):
    """Records of a batch with the same schema, which is to be checked."""

    side: Side
    strategy: str
    schema: int | bytes
    records: list[tuple[int, bytes]]
    """Index, and the bytes after the schema id if they are needed."""


class Inspection(msgspec.Struct):
    """The inspection of a batch."""

    topic: str
    claims: list[_Claim] = []
    """The claims that are not checked yet."""
    bad: dict[int, str] = {}
    """The errors by the index of the record."""
    failure: BrokerError | None = None
    """Why the records could not be inspected."""

    @property
    def refusal(self) -> BrokerError | None:
        """The error for the producer; None if the batch may be appended."""
        return RecordsRefused(ErrorCode.INVALID_RECORD, self.bad) if self.bad else self.failure


class SchemaGuard:
    """Knows which schema ids are registered for which topic, and looks up the others in the registry."""

    def __init__(self, settings: BrokerSettings, *, clock: Clock, metrics: BrokerMetrics) -> None:
        self._timeout_s = settings.confluent_schema_validator_timeout_ms / 1000
        self._registry = registry = Registry(settings, clock=clock, metrics=metrics)
        lifetimes = Lifetimes(
            size_max=settings.confluent_schema_validator_cache_size,
            found_s=settings.confluent_schema_validator_cache_ttl_ms / 1000,
            missing_s=settings.confluent_schema_validator_missing_ttl_ms / 1000,
        )
        self._registered = RememberedAnswers(registry.is_registered, lifetimes=lifetimes, clock=clock)
        self._ids = RememberedAnswers(registry.id_of, lifetimes=lifetimes, clock=clock)
        self._names = RememberedAnswers(registry.record_name_of, lifetimes=lifetimes, clock=clock)

    async def close(self) -> None:
        """Cancel running lookups."""
        for answers in (self._registered, self._ids, self._names):
            await answers.close()
        await self._registry.close()

    def inspect(self, topic: str, settings: TopicSettings, records: Iterable[Record]) -> Inspection:
        """Inspect all records of a batch with cached results; `claims` are those that need the registry."""
        inspection = Inspection(topic)
        try:
            _gather(inspection, _guarded_sides(settings), records)
        except BrokerError as error:  # the records cannot be read
            inspection.claims, inspection.bad = [], {}
            inspection.failure = error
        self._decide(inspection)
        return inspection

    async def resolve(self, inspections: Iterable[Inspection]) -> None:
        """Look up all open claims; a batch that cannot be checked in time is rejected with a retriable error."""
        await asyncio.gather(*(self._resolve(inspection) for inspection in inspections if inspection.claims))

    async def _resolve(self, inspection: Inspection) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                asked = 0
                while questions := self._decide(inspection):
                    if inspection.bad and asked >= _QUESTIONS_PER_ROUND:
                        return  # the batch is rejected in any case, so the rest need not be checked
                    await _wait_for_all([ask() for ask in questions])
                    asked += len(questions)
        except TimeoutError:
            inspection.failure = RegistryUnavailable("the registry did not respond in time")
        except RegistryUnavailable as error:
            inspection.failure = error

    def _decide(self, inspection: Inspection) -> list[Question]:
        """Decide the claims with cached results; returns the lookups needed for the others."""
        questions: list[Question] = []
        undecided = []
        for claim in inspection.claims:
            asked = self._check(claim, inspection) if len(questions) < _QUESTIONS_PER_ROUND else questions
            if asked:
                undecided.append(claim)
            if asked is not questions:
                questions += asked
        inspection.claims = undecided
        return questions[:_QUESTIONS_PER_ROUND]

    def _check(self, claim: _Claim, inspection: Inspection) -> list[Question]:
        schema = claim.schema
        if isinstance(schema, bytes):
            known = self._ids.recall(schema)
            if known is None:
                return [partial(self._ids.ask, schema)]
            if known.value is None:
                return _reject(claim, inspection, f"no schema has the GUID {guid_text(schema)}")
            schema = known.value
        if claim.strategy == TOPIC_NAME:
            return self._check_subject(claim, inspection, schema, f"{inspection.topic}-{claim.side}", claim.records)
        name = self._names.recall(schema)
        if name is None:
            return [partial(self._names.ask, schema)]
        if name.value is None:
            return _reject(claim, inspection, f"schema {schema} is not registered")
        prefix = "" if claim.strategy == RECORD_NAME else f"{inspection.topic}-"
        by_subject: dict[str, list[tuple[int, bytes]]] = {}
        for index, tail in claim.records:
            try:
                by_subject.setdefault(_check_length(prefix + name.value(tail)), []).append((index, tail))
            except BadFraming as error:
                inspection.bad[index] = f"{claim.side}: schema {schema}: {error}"
        return [
            question
            for subject, records in by_subject.items()
            for question in self._check_subject(claim, inspection, schema, subject, records)
        ]

    def _check_subject(
        self, claim: _Claim, inspection: Inspection, schema: int, subject: str, records: list[tuple[int, bytes]]
    ) -> list[Question]:
        known = self._registered.recall((schema, subject))
        if known is None:
            return [partial(self._registered.ask, (schema, subject))]
        if known.value is None:
            for index, _ in records:
                inspection.bad[index] = f"{claim.side}: schema {schema} is not registered under subject {subject}"
        return []


def _guarded_sides(settings: TopicSettings) -> list[tuple[Side, str]]:
    """The sides of a record to check, and their subject name strategies."""
    sides = []
    if settings.confluent_key_schema_validation:
        sides.append((Side.KEY, settings.confluent_key_subject_name_strategy))
    if settings.confluent_value_schema_validation:
        sides.append((Side.VALUE, settings.confluent_value_subject_name_strategy))
    return sides


class _SideClaims(msgspec.Struct):
    """The claims of one side, by schema and by the prefix of the payload."""

    side: Side
    strategy: str
    by_schema: dict[int | bytes, _Claim] = {}
    by_prefix: dict[bytes, _Claim] = {}

    def add(self, index: int, data: bytes, headers: Headers) -> None:
        """Add a record; raises BadFraming, or BrokerError if the batch has too many schemas."""
        framing = read_framing(self.side, data, headers)
        claim = self.by_schema.get(framing.schema)
        if claim is None:
            if len(self.by_schema) == _SCHEMAS_MAX:
                raise BrokerError(ErrorCode.INVALID_RECORD, f"the batch has more than {_SCHEMAS_MAX} schemas")
            claim = self.by_schema[framing.schema] = _Claim(self.side, self.strategy, framing.schema, [])
        claim.records.append((index, framing.tail))
        if not headers and self.strategy == TOPIC_NAME:
            self.by_prefix[data[:ID_END]] = claim


def _gather(inspection: Inspection, sides: list[tuple[Side, str]], records: Iterable[Record]) -> None:
    """Group records by schema. Null keys and values are not checked."""
    gathered = [_SideClaims(side, strategy) for side, strategy in sides]
    for index, record in enumerate(records):
        for part in gathered:
            data = record.key if part.side is Side.KEY else record.value
            if data is None:
                continue
            if not record.headers and (claim := part.by_prefix.get(data[:ID_END])) is not None:
                claim.records.append((index, b""))
                continue
            try:
                part.add(index, data, record.headers)
            except BadFraming as error:
                inspection.bad[index] = str(error)
        if len(inspection.bad) >= RECORD_ERRORS_MAX:
            break
    inspection.claims = [claim for part in gathered for claim in part.by_schema.values()]


def _check_length(subject: str) -> str:
    """A schema may have any record name, but one that is too long for a URL is not looked up."""
    if len(subject) > _SUBJECT_LENGTH_MAX:
        raise BadFraming(f"the subject {subject[:80]}... has more than {_SUBJECT_LENGTH_MAX} characters")
    return subject


def _reject(claim: _Claim, inspection: Inspection, reason: str) -> list[Question]:
    for index, _ in claim.records:
        inspection.bad[index] = f"{claim.side}: {reason}"
    return []


async def _wait_for_all(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for all tasks; raises their first error. They are shared with other callers, so they are not cancelled."""
    await asyncio.wait(tasks)
    for task in tasks:
        if task.cancelled():
            raise RegistryUnavailable("the broker is stopping")
        task.result()
