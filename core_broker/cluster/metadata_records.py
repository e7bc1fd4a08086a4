"""Encoding of metadata records in Kafka's frame, and the records that rebuild an image."""

import inspect
from collections.abc import Iterator
from typing import Final

from core_broker.cluster.features import METADATA_VERSION, record_version
from core_broker.cluster.metadata import MetadataImage, PartitionImage
from core_broker.protocol.fields import Message, decode, encode
from core_broker.protocol.primitives import DecodeError, read_uvarint, type_of_buffer, uvarint
from core_broker.protocol.stored import metadata as stored

_FRAME_VERSION: Final = 1

_BY_KEY: Final[dict[int, type[Message]]] = {
    kind.API_KEY: kind
    for _, kind in inspect.getmembers(stored, inspect.isclass)
    if issubclass(kind, Message) and kind.API_KEY is not None
}


class UnsupportedRecordError(DecodeError):
    """A record of newer software. Without it the state would be incomplete, so it cannot be skipped."""


def encode_record(record: Message, level: int) -> bytes:
    """The value of a record in `__cluster_metadata`: frame version, key and version as varints, then the record.

    `level` is the metadata.version that decides about the version: fields that it does not know are left out.
    """
    if record.API_KEY is None:
        raise TypeError(f"{type(record).__name__} is not a metadata record")
    version = record_version(type(record), level)
    return uvarint(_FRAME_VERSION) + uvarint(record.API_KEY) + uvarint(version) + encode(record, version)


def decode_record(value: type_of_buffer) -> Message:
    """Read a record's value. Raises DecodeError, and UnsupportedRecordError for an unknown kind or version."""
    try:
        frame_version, position = read_uvarint(value, 0)
        api_key, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
    except IndexError as error:
        raise DecodeError(f"metadata record of {len(value)} bytes has no frame") from error
    if frame_version != _FRAME_VERSION:
        text = f"metadata record has frame version {frame_version}; only {_FRAME_VERSION} is supported"
        raise UnsupportedRecordError(text)
    kind = _BY_KEY.get(api_key)
    if kind is None:
        raise UnsupportedRecordError(f"metadata records of type {api_key} are not supported")
    if not kind.VERSIONS[0] <= version <= kind.VERSIONS[1]:
        low, high = kind.VERSIONS
        text = f"{kind.__name__} has version {version}; versions {low} to {high} are supported"
        raise UnsupportedRecordError(text)
    return decode(kind, version, value, position)


def records_of(image: MetadataImage) -> Iterator[Message]:
    """The records that rebuild an image, as in a snapshot."""
    # metadata.version comes first: it tells a reader whether it can decode the rest.
    for name, level in sorted(image.features.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0])):
        yield stored.FeatureLevelRecord(name=name, feature_level=level)
    for broker in image.brokers.values():
        yield stored.RegisterBrokerRecord(
            broker_id=broker.broker_id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=[
                stored.BrokerEndpoint(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in broker.endpoints
            ],
            features=[
                stored.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in broker.features
            ],
            rack=broker.rack,
            fenced=broker.is_fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=list(broker.log_dirs),
        )
    for controller in image.controllers.values():
        yield stored.RegisterControllerRecord(
            controller_id=controller.controller_id,
            incarnation_id=controller.incarnation_id,
            end_points=[
                stored.ControllerEndpoint(
                    name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for e in controller.endpoints
            ],
            features=[
                stored.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in controller.features
            ],
        )
    for topic in image.topics.values():
        yield stored.TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in topic.partitions.items():
            yield partition_record(topic.topic_id, index, partition)
    for (resource_type, resource_name), config in image.configs.items():
        for name, value in config.items():
            yield stored.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    if image.next_producer_id:
        yield stored.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.carried.values()


def partition_record(topic_id: bytes, index: int, partition: PartitionImage) -> stored.PartitionRecord:
    """The record that creates a partition in the state of its image."""
    return stored.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader_id,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )
