"""Leader election among several processes: the leader is the group member that owns a topic's only partition."""

from collections.abc import Sequence
from typing import Any, Final

import confluent_kafka
from confluent_kafka import OFFSET_END, KafkaError, TopicPartition

from core_broker.client.errors import Fatal, from_kafka, is_passing, map_errors
from core_broker.client.settings import ClientSettings

_EVENTS: Final = (KafkaError._MAX_POLL_EXCEEDED, KafkaError.UNKNOWN_TOPIC_OR_PART)
_NEEDED: Final = {
    # Sticky: a candidate that joins later does not depose the elected one.
    "partition.assignment.strategy": "cooperative-sticky",
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
    "max.poll.interval.ms": 86_400_000,
    # Reconnect to a cluster that comes back before the session expires.
    "reconnect.backoff.max.ms": 500,
}


class Candidacy:
    """A group member that competes for the first partition of a topic without reading from it. For one thread.

    A member with the same `instance_id` replaces the previous one at once, whether that is still alive or not.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        group_id: str,
        topic: str,
        instance_id: str,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
    ) -> None:
        self.is_elected = False
        """Whether the group has assigned the partition to this member."""
        self._partition = (topic, 0)
        session = {"session.timeout.ms": session_timeout_ms, "heartbeat.interval.ms": heartbeat_interval_ms}
        own = {"group.id": group_id, "group.instance.id": instance_id, **session, **_NEEDED}
        with map_errors():
            self._consumer = confluent_kafka.Consumer({**settings.configuration(), **own})
            self._consumer.subscribe(
                [topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )

    def poll(self, timeout_seconds: float) -> bool:
        """Process group events for a while; returns `is_elected`. Fatal when another member took the instance id."""
        with map_errors():
            message = self._consumer.poll(timeout_seconds)
        error = message.error() if message is not None else None
        if error is not None and error.code() not in _EVENTS and not is_passing(error):
            failure = from_kafka(error)
            if error.code() == KafkaError.FENCED_INSTANCE_ID:
                raise Fatal(str(failure), code=failure.code)
            raise failure
        return self.is_elected

    def close(self) -> None:
        """Stop. The group waits for a member with the same id until the session expires (see Admin.remove_member)."""
        self.is_elected = False
        with map_errors():
            self._consumer.close()

    def _on_assign(self, consumer: Any, assigned: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign([TopicPartition(item.topic, item.partition, OFFSET_END) for item in assigned])
        if assigned:
            consumer.pause(list(assigned))
        self._note(assigned, is_elected=True)

    def _on_revoke(self, consumer: Any, revoked: Sequence[TopicPartition]) -> None:
        self._note(revoked, is_elected=False)
        consumer.incremental_unassign(list(revoked))

    def _note(self, changed: Sequence[TopicPartition], *, is_elected: bool) -> None:
        if self._partition in [(item.topic, item.partition) for item in changed]:
            self.is_elected = is_elected
