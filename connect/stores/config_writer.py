"""Writes the config topic while this worker leads; a leader that was replaced is fenced."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from connect.api.errors import ConnectError
from connect.settings import ConnectSettings
from connect.stores import config_records as records
from connect.stores.config_records import Leader, SessionKey
from connect.stores.configs import ConfigStore
from connect.stores.states import Target, TaskId
from connect.stores.writer import PARTITIONER, Pair, TopicWriter, mapped_client_errors
from core_broker.client.errors import ClientError, Fatal, NotAllowed, Rejected
from core_broker.client.records import OutgoingRecord
from core_broker.client.transactional_producer import AbortNeeded, TransactionalProducer
from core_broker.errors import ErrorCode
from core_broker.web_access.rules import Rule

log = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, -144)
"""Another producer has taken over the transactional id; the last code is librdkafka's own."""
_DEFAULTS: Final = {**PARTITIONER, "linger.ms": "0"}


class LeadershipLost(ConnectError):
    """Another worker leads now: nothing was written."""


class ConfigWriter:
    """Every call returns when its records are committed and read back. Thread-safe."""

    def __init__(self, settings: ConnectSettings, store: ConfigStore) -> None:
        self._settings = settings
        self._store = store
        self._plain: TopicWriter | None = None
        self._producer: TransactionalProducer | None = None
        self._lock = threading.Lock()
        self._has_lost_lead = False

    def start(self) -> None:
        """Take over the topic: an earlier leader can no longer write."""
        with self._lock, mapped_client_errors(self._store.topic):
            self._open()

    def close(self) -> None:
        """Refuse further writes."""
        self._has_lost_lead = True
        with self._lock:
            self._drop()

    def put_leader(self, leader: Leader) -> None:
        """Announce the leader to all workers."""
        self._write([records.leader_record(leader)])

    def put_connector(self, name: str, config: Mapping[str, str], *, target: Target | None = None) -> None:
        """Configure a connector; `target` is its new target state, if that changes."""
        wanted = [records.target_record(name, target)] if target is not None else []
        self._write([*wanted, records.connector_record(name, config)])

    def put_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Configure all tasks of a connector."""
        pairs = [records.task_record(TaskId(name, number), config) for number, config in enumerate(configs)]
        self._write([*pairs, records.commit_record(name, len(configs))])

    def put_target(self, name: str, target: Target, *, without_tasks: bool = False) -> None:
        """Set the target state of a connector; `without_tasks` removes its tasks."""
        emptied = [records.commit_record(name, 0)] if without_tasks else []
        self._write([records.target_record(name, target), *emptied])

    def remove(self, name: str) -> None:
        """Delete a connector and its tasks."""
        self._write(records.removal_records(name, self._store.task_numbers(name)))

    def put_fencing(self, name: str, tasks: int) -> None:
        """Note how many tasks must be fenced before new ones may start."""
        self._write([records.fencing_record(name, tasks)])

    def put_logger_level(self, logger: str, level: str) -> None:
        """Set a logger's level on every worker."""
        self._write([records.logger_record(logger, level)])

    def put_session_key(self, key: SessionKey) -> None:
        """Give all workers a new key to sign requests with."""
        self._write([records.session_key_record(key)])

    def put_rules(self, rules: Sequence[Rule]) -> None:
        """Add access rules; at least one."""
        self._write([records.rule_record(rule) for rule in rules])

    def remove_rules(self, rules: Sequence[Rule]) -> None:
        """Remove access rules; at least one."""
        self._write([records.rule_removal_record(rule) for rule in rules])

    def _write(self, pairs: Sequence[Pair]) -> None:
        with self._lock:
            if self._has_lost_lead:
                raise LeadershipLost("This worker no longer leads")
            try:
                # A transaction becomes visible at once and in order, so reading back its last record is enough.
                with mapped_client_errors(self._store.topic), self._store.read_back(pairs[-1]):
                    self._send(pairs)
            except ConnectError as error:
                if isinstance(error.__cause__, Fatal):
                    self._has_lost_lead = True
                    raise LeadershipLost("Another worker leads: this one was fenced") from error
                raise

    def _send(self, pairs: Sequence[Pair]) -> None:
        producer = self._open()
        if producer is None:
            assert self._plain is not None, "the plain writer replaces transactions"
            self._plain.send(pairs)
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                producer.begin()
                for key, value in pairs:
                    producer.send(OutgoingRecord(topic=self._store.topic, key=key, value=value, partition=0))
                producer.commit()
                return
            except Fatal as error:
                self._drop()
                if error.code in _FENCED or attempt == _ATTEMPTS:
                    raise
                # The cluster forgets an id after a long time without use: that makes no other worker the leader.
                producer = self._open()
                if producer is None:
                    raise Fatal("the cluster no longer allows transactions") from error
            except AbortNeeded as error:
                log.warning(
                    "writing to the config topic failed, retrying", extra={"error": str(error), "attempt": attempt}
                )
                producer.abort()
                if attempt == _ATTEMPTS or self._has_lost_lead:
                    raise
            except ClientError:
                # Whether it was written is unknown; the init of the next producer settles that.
                self._drop()
                raise

    def _open(self) -> TransactionalProducer | None:
        """The producer; None if the cluster does not allow us transactions."""
        if self._producer is not None or self._plain is not None:
            return self._producer
        kafka = self._settings.kafka(client_id=f"caudal-connect-leader-{self._settings.group_id}")
        transactional_id = f"connect-cluster-{self._settings.group_id}"
        producer = TransactionalProducer(kafka, transactional_id=transactional_id, defaults=_DEFAULTS)
        try:
            producer.init()
        except (NotAllowed, Rejected) as error:
            extra = {"transactional_id": transactional_id, "error": str(error)}
            log.warning("transactions are not allowed: a leader that was replaced could still write", extra=extra)
            self._plain = TopicWriter(kafka, self._store.topic)
            return None
        self._producer = producer
        return producer

    def _drop(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._producer = None
        self._plain = None
