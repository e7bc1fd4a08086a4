"""Sends dead letters and tells the group how far the sink is: in one transaction, so that neither is done twice."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from connectors.spark.letters import read
from connectors.spark.manifest import Manifest, Replaced, TopicPartition, flat
from connectors.spark.spec import SinkSpec
from core_broker.client.admin import Admin
from core_broker.client.errors import ClientError, Fatal, NotFound
from core_broker.client.settings import ClientSettings
from core_broker.client.transactional_producer import AbortNeeded, TransactionalProducer

log = logging.getLogger(__name__)

QUIET: Final = {"log_level": "0"}
"""The library says on its own what every call tells anyway."""
_ATTEMPTS: Final = 5
_LARGEST: Final = {"message.max.bytes": 100_000_000}
"""How large a record may be, the cluster decides itself."""


class LetterBox:
    """Of one run of a sink; for one thread at a time."""

    def __init__(self, spec: SinkSpec) -> None:
        self._spec = spec
        self._admin = Admin(client_settings(spec.admin))
        self._producer: TransactionalProducer | None = None

    def send(self, manifest: Manifest) -> None:
        """Send the letters of a batch unless that was done, and commit its offsets to the group."""
        ends = flat(manifest.ends)
        if manifest.letters and self._spec.dead_letter_topic is not None:
            self._send_letters(manifest, ends)
        elif ends:
            self._tell(ends)

    def committed(self) -> dict[TopicPartition, int]:
        """What the group has."""
        return dict(self._admin.group_offsets(self._spec.group))

    def begin_anew(self, places: Iterable[TopicPartition]) -> None:
        """Let the group begin at 0 there: what it has committed was of topics that are gone, as are their letters."""
        self._admin.set_group_offsets(self._spec.group, dict.fromkeys(places, 0))

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of topics; empty where the cluster knows none, or the topic is gone."""
        found = dict.fromkeys(topics, "")
        for topic in found:
            with suppress(NotFound):
                (told,) = self._admin.topics([topic])
                found[topic] = told.topic_id if told.topic_id.strip("A=") else ""
        return found

    def close(self) -> None:
        """Leave nothing open."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _tell(self, ends: Mapping[TopicPartition, int]) -> None:
        """Offsets of the group are for people and tools: the manifest is what counts."""
        try:
            self._admin.set_group_offsets(self._spec.group, ends)
        except ClientError as error:
            log.warning(
                "the group's offsets were not committed", extra={"group": self._spec.group, "reason": str(error)}
            )

    def _send_letters(self, manifest: Manifest, ends: Mapping[TopicPartition, int]) -> None:
        for attempt in range(_ATTEMPTS):
            producer = self._taken_over()
            # Asked after the id is taken over: no transaction of another run can still be open then.
            committed = self.committed()
            if all(committed.get(place, -1) >= end for place, end in ends.items()):
                return
            try:
                producer.begin()
                for file in manifest.letters:
                    for letter in read(file.path):
                        producer.send(letter)
                producer.send_offsets(self._spec.group, ends)
                producer.commit()
                return
            except AbortNeeded as error:
                if error.is_refusal or attempt == _ATTEMPTS - 1:
                    raise
                producer.abort()
            except Fatal as error:
                raise Replaced(self._spec.connector) from error
            except ClientError:
                self.close()
                raise

    def _taken_over(self) -> TransactionalProducer:
        if self._producer is None:
            producer = TransactionalProducer(
                client_settings(self._spec.producer),
                transactional_id=f"connect-spark-{self._spec.connector}",
                defaults=_LARGEST,
            )
            producer.init()
            self._producer = producer
        return self._producer


def client_settings(properties: Mapping[str, str]) -> ClientSettings:
    """How to reach the cluster, by the library's own properties."""
    others = {key: value for key, value in properties.items() if key != "bootstrap.servers"}
    return ClientSettings(bootstrap_servers=properties["bootstrap.servers"], properties={**QUIET, **others})
