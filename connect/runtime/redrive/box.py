"""Redrives dead letters, each once: a record and the mark that it was sent are one transaction.

Dead letters of a sink go to a topic that the sink reads along with its own (`redrive_topic`): they pass its converters,
transforms and `put` again, and no other consumer sees them twice. Dead letters of a source hold the record before
transforms and converters: these are applied here, and the result goes to its topic.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from connect.api.errors import ConnectError, RetriableError
from connect.api.sink import SinkConnector
from connect.runtime.configuration.client_overrides import (
    Family,
    admin_properties,
    consumer_properties,
    producer_properties,
)
from connect.runtime.configuration.config_providers import ConfigProviders, conceal
from connect.runtime.configuration.connector_config import SourceConnectorConfig
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.reach import limits_of
from connect.runtime.configuration.secrets import ConfigSecrets
from connect.runtime.counters import TaskCounters
from connect.runtime.errors import BadRequest
from connect.runtime.failures.error_policy import ErrorPolicy, ToleranceExceeded
from connect.runtime.failures.failed_record import PREFIX
from connect.runtime.failures.redrive_topic import redrive_count, redrive_topic, redriven_headers
from connect.runtime.failures.source_letters import record_of
from connect.runtime.redrive.letters import error_of, is_selected, read_letters, to_view
from connect.runtime.redrive.pages import LetterError, LetterPage, LetterPlace, Redriven, Selection
from connect.runtime.stopping import Stopping
from connect.runtime.tasks.conversion import conversion_of
from connect.runtime.tasks.source_pipeline import SourcePipeline
from connect.settings import ConnectSettings
from connect.stores.topic import CompactedTopic, TopicPlan
from core_broker.client.admin import Admin
from core_broker.client.errors import AlreadyExists, ClientError, NotFound
from core_broker.client.records import IncomingRecord, OutgoingRecord
from core_broker.client.settings import ClientSettings
from core_broker.client.transactional_producer import TransactionalProducer

log = logging.getLogger(__name__)

_TRANSACTION_LETTERS: Final = 500
_REDRIVES_MAX: Final = 10
"""Redriving a letter more often does not help."""
_LOOKED_AT_MAX: Final = 1_000_000
_PATIENCE_SECONDS: Final = 20.0
"""How long to wait for a server that converters need: a user waits for the response."""
_PROPERTIES: Final = {"producer": producer_properties, "consumer": consumer_properties, "admin": admin_properties}
_OF_LOGIN: Final = ("bootstrap.servers", "security.protocol", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.")
_FOREVER: Final = {"retention.ms": "-1"}


class DeadLetterBox:
    """Lists the dead letters of connectors, and redrives them. Blocking and thread-safe."""

    def __init__(
        self,
        settings: ConnectSettings,
        plugins: Plugins,
        providers: ConfigProviders,
        *,
        config_of: Callable[[str], Mapping[str, str]],
        check_leads: Callable[[], object],
        on_new_topic: Callable[[str], None],
    ) -> None:
        """`check_leads` raises unless this worker leads; `on_new_topic` makes the tasks of a sink read its new redrive
        topic."""
        self._check_leads = check_leads
        self._settings = settings
        self._config_of = config_of
        self._on_new_topic = on_new_topic
        self._plugins = plugins
        self._providers = providers
        self._lock = threading.Lock()
        self._notes: _Notes | None = None

    def page(
        self,
        name: str,
        *,
        limit: int,
        partition: int | None = None,
        offset: int | None = None,
        stage: str | None = None,
        exception: str | None = None,
    ) -> LetterPage:
        """The first dead letters of a selection, by partition and offset."""
        topic = self._topic(name, self._config_of(name))
        selection = Selection(partition=partition, from_offset=offset, stage=stage, exception=exception)
        marks = self._known_marks(name, topic)
        views = (to_view(raw, redriven=marks.has(raw)) for raw, _ in self._select(name, topic, selection))
        return LetterPage(topic=topic, records=list(islice(views, limit)))

    def redrive(self, name: str, selection: Selection, *, max_records: int, dry_run: bool) -> Redriven:
        """Redrive the selected dead letters; `dry_run` only returns which they are."""
        self._check_leads()
        config = self._config_of(name)
        topic = self._topic(name, config)
        with self._lock:
            marks = self._known_marks(name, topic)
            chosen: list[tuple[IncomingRecord, LetterError]] = []
            skipped = 0
            for raw, error in self._select(name, topic, selection):
                if marks.has(raw) or redrive_count(raw.headers) >= _REDRIVES_MAX:
                    skipped += 1
                elif len(chosen) < max_records:
                    chosen.append((raw, error))
            sent = [LetterPlace(partition=raw.partition, offset=raw.offset) for raw, _ in chosen]
            failed: list[str] = []
            if chosen and not dry_run:
                with limits_of(self._settings).enforced():
                    failed, sent = self._send(name, chosen, self._route(name, config), marks)
                secrets = ConfigSecrets(self._plugins, self._providers).concealing(config)
                failed = [conceal(text, secrets) for text in failed]
        return Redriven(redriven=0 if dry_run else len(sent), skipped=skipped, records=sent, failed=failed)

    def close(self) -> None:
        """Stop following the topic of marks."""
        if self._notes is not None:
            self._notes.stop()

    def _topic(self, name: str, config: Mapping[str, str]) -> str:
        topic = self._providers.resolve(config).get("errors.deadletterqueue.topic.name", "").strip()
        if not topic:
            raise BadRequest(
                f"Connector {name} has no dead letters: set errors.deadletterqueue.topic.name in its configuration"
            )
        return topic

    def _select(self, name: str, topic: str, selection: Selection) -> Iterator[tuple[IncomingRecord, LetterError]]:
        """The selected dead letters of this connector: several connectors may share a topic."""
        starts = None
        if selection.partition is not None and selection.from_offset is not None:
            starts = {selection.partition: selection.from_offset}
        try:
            kafka = self._kafka(self._config_of(name), "consumer")
            for looked_at, raw in enumerate(read_letters(kafka, topic, starts=starts)):
                if looked_at >= _LOOKED_AT_MAX:
                    return
                error = error_of(raw.headers)
                if error.connector in (None, name) and is_selected(selection, raw, error):
                    yield raw, error
        except NotFound:
            return  # no record has failed yet
        except ClientError as error:
            raise _unreadable(topic, error) from error

    def _known_marks(self, name: str, topic: str) -> "_Marks":
        if self._notes is None:
            notes = _Notes(self._settings)
            notes.start()
            self._notes = notes
        self._notes.refresh()
        try:
            (described,) = Admin(self._kafka(self._config_of(name), "consumer")).topics([topic])
        except NotFound:
            return _Marks(self._notes, name, "")  # no record has failed yet
        except ClientError as error:
            raise _unreadable(topic, error) from error
        return _Marks(self._notes, name, described.topic_id)

    def _route(self, name: str, config: Mapping[str, str]) -> "_Route":
        resolved = self._providers.resolve(config)
        if self._is_sink(resolved):
            self._ensure_redrive_topic(name, config)
            topics = [part.strip() for part in resolved.get("topics", "").split(",") if part.strip()]
            return _ToSink(name, topics)
        source = SourceConnectorConfig.parse({**resolved, "errors.tolerance": "none", "errors.log.enable": "false"})
        return _ThroughSource(source, self._plugins, self._settings)

    def _kafka(self, config: Mapping[str, str], role: Family) -> ClientSettings:
        """A client of the cluster with the login of the connector's own client of that kind.

        A source has no consumer: its dead letters are read with the login that has written them.
        """
        resolved = self._providers.resolve(config)
        if role == "consumer" and not self._is_sink(resolved):
            role = "producer"
        given = _PROPERTIES[role](self._settings, resolved)
        login = {key: text for key, text in given.items() if key.startswith(_OF_LOGIN)}
        return self._settings.kafka(tuple(login.items()))

    def _is_sink(self, resolved: Mapping[str, str]) -> bool:
        return issubclass(self._plugins.connectors.find(resolved["connector.class"]), SinkConnector)

    def _ensure_redrive_topic(self, name: str, config: Mapping[str, str]) -> None:
        admin, topic = Admin(self._kafka(config, "admin")), redrive_topic(name)
        if topic in admin.topic_names():
            return
        try:
            replicas = self._settings.config_storage_replication_factor
            admin.create_replicated_topic(topic, partitions=1, replicas_wanted=replicas, configs=_FOREVER)
        except AlreadyExists:
            pass
        except ClientError as error:
            raise ConnectError(f"The redrive topic {topic} could not be created: {error}") from error
        self._on_new_topic(name)

    def _send(
        self, name: str, chosen: Sequence[tuple[IncomingRecord, LetterError]], route: "_Route", marks: "_Marks"
    ) -> tuple[list[str], list[LetterPlace]]:
        producer = TransactionalProducer(
            self._kafka(self._config_of(name), "producer"), transactional_id=f"{self._settings.group_id}-redrive-{name}"
        )
        failed: list[str] = []
        sent: list[LetterPlace] = []
        try:
            producer.init()
            for start in range(0, len(chosen), _TRANSACTION_LETTERS):
                part = chosen[start : start + _TRANSACTION_LETTERS]
                ready = [(raw, route(raw, error)) for raw, error in part]
                failed += [text for _, text in ready if isinstance(text, str)]
                good = [(raw, record) for raw, record in ready if isinstance(record, OutgoingRecord)]
                producer.begin()
                try:
                    for record in (*(record for _, record in good), *(marks.mark(raw) for raw, _ in good)):
                        producer.send(record)
                    producer.commit()
                except ClientError:
                    producer.abort()
                    raise
                sent += [LetterPlace(partition=raw.partition, offset=raw.offset) for raw, _ in good]
        except ClientError as error:
            raise ConnectError(f"{len(sent)} dead letters were redriven, then the cluster failed: {error}") from error
        finally:
            producer.close()
        return failed, sent


_Route = Callable[[IncomingRecord, LetterError], OutgoingRecord | str]
"""Makes the record for a dead letter, or the message why that is impossible."""


class _ToSink:
    def __init__(self, connector: str, topics: Sequence[str]) -> None:
        self._topic = redrive_topic(connector)
        self._topics = topics

    def __call__(self, raw: IncomingRecord, error: LetterError) -> OutgoingRecord | str:
        first = error.topic or (self._topics[0] if len(self._topics) == 1 else None)
        if first is None:
            return (
                f"{raw.partition}-{raw.offset}: the dead letter does not name its topic: "
                "set errors.deadletterqueue.context.headers.enable=true"
            )
        headers = [header for header in raw.headers if not header[0].startswith(PREFIX)]
        return OutgoingRecord(
            topic=self._topic,
            key=raw.key,
            value=raw.value,
            headers=redriven_headers(headers, topic=first, partition=error.partition, offset=error.offset),
            timestamp_ms=raw.timestamp_ms if raw.timestamp_type else None,
        )


class _ThroughSource:
    def __init__(self, config: SourceConnectorConfig, plugins: Plugins, settings: ConnectSettings) -> None:
        counters, stopping = TaskCounters(), Stopping()
        policy = ErrorPolicy(
            config, task=config.name, counters=counters, stopping=stopping, patience_seconds=_PATIENCE_SECONDS
        )
        conversion = conversion_of(config, plugins, settings)
        self._pipeline = SourcePipeline(conversion, policy, counters=counters, dead_letters=None)

    def __call__(self, raw: IncomingRecord, _: LetterError) -> OutgoingRecord | str:
        place = f"{raw.partition}-{raw.offset}"
        try:
            record = record_of(raw.value or b"")
            if record is None:
                return f"{place}: the source could not turn its data into a record"
            sent, _origins = self._pipeline.outgoing([record])
        except RetriableError:
            raise  # The registry is unreachable: the dead letters stay where they are.
        except (msgspec.DecodeError, ConnectError) as error:
            cause = error.__cause__ if isinstance(error, ToleranceExceeded) else error
            return f"{place}: {cause}"
        return sent[0] if sent else f"{place}: a transform drops it"


class _Notes(CompactedTopic):
    """The dead letters that were redriven, in a compacted topic."""

    def __init__(self, settings: ConnectSettings) -> None:
        plan = TopicPlan(
            name=settings.redrive_storage_topic,
            key="redrive.storage.topic",
            partitions=1,
            replicas_wanted=settings.config_storage_replication_factor,
        )
        super().__init__(settings.kafka(), plan, lambda record: self.known.add(record.key or b""))
        self.known: set[bytes] = set()


class _Marks:
    """The marks of one connector. They include the topic's id: offsets of a recreated topic start at 0 again."""

    def __init__(self, notes: _Notes, connector: str, topic_id: str) -> None:
        self._notes, self._connector, self._topic_id = notes, connector, topic_id

    def has(self, raw: IncomingRecord) -> bool:
        """Whether a dead letter was redriven."""
        return self._key(raw) in self._notes.known

    def mark(self, raw: IncomingRecord) -> OutgoingRecord:
        """The record that marks it as redriven."""
        return OutgoingRecord(topic=self._notes.topic, key=self._key(raw), value=b"{}")

    def _key(self, raw: IncomingRecord) -> bytes:
        return msgspec.json.encode([self._connector, raw.topic, self._topic_id, raw.partition, raw.offset])


def _unreadable(topic: str, error: ClientError) -> ConnectError:
    return ConnectError(f"The dead letters in topic {topic} could not be read: {error}")
