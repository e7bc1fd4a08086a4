"""Fences earlier runs of tasks, so that they cannot write after new ones have started."""

import logging

from connect.runtime.configuration.client_overrides import producer_properties
from connect.runtime.tasks.exactly_once_source import transactional_id
from connect.settings import ConnectSettings
from core_broker.client.transactional_producer import TransactionalProducer

log = logging.getLogger(__name__)


def fence(settings: ConnectSettings, config: dict[str, str], *, connector: str, tasks: int) -> None:
    """Take over the transactional ids of the tasks: their open transactions are aborted.

    `config` is resolved. Raises ClientError.
    """
    properties = producer_properties(settings, config)
    properties.pop("client.id", None)
    kafka = settings.kafka(tuple(properties.items()), client_id=f"connect-fencing-{connector}")
    for number in range(tasks):
        producer = TransactionalProducer(kafka, transactional_id=transactional_id(settings.group_id, connector, number))
        try:
            producer.init()
        finally:
            producer.close()
    log.info("tasks fenced", extra={"connector": connector, "tasks": tasks})
