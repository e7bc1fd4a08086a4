"""Metadata, key 3, versions 0-13: the brokers, and the leader of each partition.

Supported: all topics (null; in version 0 an empty list), none, by name, by id (12+). Topics that do not exist are
created if the client and `auto.create.topics.enable` allow it; the response then shows the topic ready to use, so the
client need not retry. Brokers are given with the address of the listener used by the client.
Ignored: nothing.

Versions: 1 controller, rack, internal topics; 2 cluster id; 4 allow_auto_topic_creation; 5 offline replicas; 7 leader
epoch; 8 authorized operations (KIP-430); 9 flexible; 10 topic ids (KIP-516); 11 the cluster's operations moved to
DescribeCluster (KIP-700); 12 topics by id; 13 top-level error (KIP-1102).
"""

from collections.abc import Coroutine, Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from core_broker.cluster.controller.topic_rules import is_valid_topic_name
from core_broker.cluster.endpoints import host_for_client
from core_broker.cluster.metadata import MetadataImage, TopicImage
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from core_broker.handlers.context import RequestContext
from core_broker.handlers.metadata_topics import EncodedTopics, encode_topic, write_response
from core_broker.protocol.fields import decode
from core_broker.protocol.frames import finish_response, start_response
from core_broker.protocol.messages import metadata as wire
from core_broker.protocol.primitives import ZERO_UUID

_BY_ID_SINCE: Final = 12

_encoded_topics: WeakKeyDictionary[MetadataQuorum, EncodedTopics] = WeakKeyDictionary()


def handle(frame: memoryview, body: int, context: RequestContext) -> bytearray | Coroutine[Any, Any, bytearray]:
    """Answer from the image; returns a coroutine only if topics have to be created first."""
    request = decode(wire.MetadataRequest, context.api_version, frame, body)
    missing = list(_to_create(request, context))
    if missing:
        return _create_and_answer(request, missing, context)
    return _answer(request, context, {})


async def _create_and_answer(request: wire.MetadataRequest, names: list[str], context: RequestContext) -> bytearray:
    return _answer(request, context, await context.services.topic_creation.auto_create(names))


def _to_create(request: wire.MetadataRequest, context: RequestContext) -> Iterator[str]:
    if not request.topics or not request.allow_auto_topic_creation:
        return
    if not context.services.settings.auto_create_topics_enable:
        return
    topics = context.services.metadata.image.topics
    for topic in request.topics:
        if topic.name and topic.topic_id == ZERO_UUID and topic.name not in topics and is_valid_topic_name(topic.name):
            yield topic.name


def _answer(request: wire.MetadataRequest, context: RequestContext, failed: dict[str, BrokerError]) -> bytearray:
    version = context.api_version
    quorum = context.services.metadata
    image = quorum.image
    encoded = _encoded_topics.get(quorum)
    if encoded is None:
        encoded = _encoded_topics[quorum] = EncodedTopics()
    found, errors = _select(request, image, version, failed)
    parts = encoded.parts(found, image, version=version, with_operations=request.include_topic_authorized_operations)
    parts.extend(encode_topic(error, version) for error in errors)
    out = start_response(context.correlation_id, flexible=version >= wire.MetadataResponse.FLEXIBLE_SINCE)
    head = wire.MetadataResponse(
        brokers=list(_brokers(image, context)),
        cluster_id=image.cluster_id,
        controller_id=quorum.controller_id_for_clients,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
    write_response(out, head, parts, version)
    return finish_response(out)


def _brokers(image: MetadataImage, context: RequestContext) -> Iterator[wire.MetadataResponseBroker]:
    for broker in image.live_brokers():
        endpoint = broker.endpoint(context.listener_name)
        if endpoint is not None:
            host = host_for_client(
                endpoint, context.services.metadata.image, context.services.settings, context.local_host
            )
            yield wire.MetadataResponseBroker(broker.broker_id, host, endpoint.port, broker.rack)


def _select(
    request: wire.MetadataRequest, image: MetadataImage, version: int, failed: dict[str, BrokerError]
) -> tuple[list[TopicImage], list[wire.MetadataResponseTopic]]:
    """The requested topics, and an error for each that does not exist."""
    if request.topics is None or (version == 0 and not request.topics):
        return list(image.topics.values()), []
    found, errors = [], []
    for wanted in request.topics:
        topic = _find(wanted, image, version)
        if topic is not None:
            found.append(topic)
        else:
            errors.append(_error(wanted, version, failed))
    return found, errors


def _find(wanted: wire.MetadataRequestTopic, image: MetadataImage, version: int) -> TopicImage | None:
    if wanted.topic_id != ZERO_UUID:
        return image.topics_by_id.get(wanted.topic_id) if version >= _BY_ID_SINCE else None
    return image.topics.get(wanted.name or "")


def _error(
    wanted: wire.MetadataRequestTopic, version: int, failed: dict[str, BrokerError]
) -> wire.MetadataResponseTopic:
    by_id = wanted.topic_id != ZERO_UUID
    if (by_id or wanted.name is None) and version < _BY_ID_SINCE:
        return wire.MetadataResponseTopic(ErrorCode.INVALID_REQUEST, wanted.name or "", wanted.topic_id)
    if by_id:
        return wire.MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
    name = wanted.name or ""
    if name in failed:
        return wire.MetadataResponseTopic(failed[name].code, name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return wire.MetadataResponseTopic(code, name)
