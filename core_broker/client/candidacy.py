"""One of several programs does a job at a time: whoever the group gives the only partition of a topic to."""

from collections.abc import Sequence
from typing import Any, Final

import confluent_kafka
from confluent_kafka import OFFSET_END, KafkaError, TopicPartition

from core_broker.client.errors import ClientError, Fatal, from_kafka, mapped
from core_broker.client.settings import ClientSettings

_PASSING: Final = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
_NEEDED: Final = {
    # Sticky: a candidate that comes later does not take the seat away from the one who has it.
    "partition.assignment.strategy": "cooperative-sticky",
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
    "max.poll.interval.ms": 86_400_000,
    # A cluster that comes back is to be found before the session is over.
    "reconnect.backoff.max.ms": 500,
}


class Candidacy:
    """A member of a group that wants the first partition of a topic, and reads nothing of it. For one thread.

    A member of the same `instance_id` takes the place of the one before at once, be it dead or alive.
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
        self.holds_seat = False
        """Whether the group has given the partition to this member."""
        self._place = (topic, 0)
        session = {"session.timeout.ms": session_timeout_ms, "heartbeat.interval.ms": heartbeat_interval_ms}
        own = {"group.id": group_id, "group.instance.id": instance_id, **session, **_NEEDED}
        with mapped():
            self._consumer = confluent_kafka.Consumer({**settings.configuration(), **own})
            self._consumer.subscribe([topic], on_assign=self._given, on_revoke=self._taken, on_lost=self._taken)

    def poll(self, timeout_seconds: float) -> bool:
        """Let the group decide for a while; whether this member holds the seat. Fatal when its place was taken."""
        with mapped():
            message = self._consumer.poll(timeout_seconds)
        error = message.error() if message is not None else None
        if error is not None and error.code() not in _PASSING:
            raise _told(error)
        return self.holds_seat

    def close(self) -> None:
        """Stop; the group waits for a member of the same id until the session is over (see Admin.remove_member)."""
        self.holds_seat = False
        with mapped():
            self._consumer.close()

    def _given(self, consumer: Any, given: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign([TopicPartition(item.topic, item.partition, OFFSET_END) for item in given])
        if given:
            consumer.pause(list(given))
        self._note(given, holds=True)

    def _taken(self, consumer: Any, taken: Sequence[TopicPartition]) -> None:
        self._note(taken, holds=False)
        consumer.incremental_unassign(list(taken))

    def _note(self, places: Sequence[TopicPartition], *, holds: bool) -> None:
        if self._place in [(item.topic, item.partition) for item in places]:
            self.holds_seat = holds


def _told(error: KafkaError) -> ClientError:
    told = from_kafka(error)
    return Fatal(str(told), code=told.code) if error.code() == KafkaError.FENCED_INSTANCE_ID else told
