"""Metadata, key 3, versions 0-13: the brokers, and the leader of each partition.

Supported: all topics (null; in version 0 an empty list), none, by name, by id (12+). Topics that do not exist are
created if the client and `auto.create.topics.enable` allow it; the response then shows the topic ready to use, so the
client need not retry. Brokers are given with the address of the listener used by the client.
Ignored: nothing.

Versions: 1 controller, rack, internal topics; 2 cluster id; 4 allow_auto_topic_creation; 5 offline replicas; 7 leader
epoch; 8 authorized operations (KIP-430); 9 flexible; 10 topic ids (KIP-516); 11 the cluster's operations moved to
DescribeCluster (KIP-700); 12 topics by id; 13 top-level error (KIP-1102).
"""

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from core_broker.cluster.controller.topic_rules import is_valid_topic_name
from core_broker.cluster.controller_channel import Requester
from core_broker.cluster.endpoints import host_for_client
from core_broker.cluster.metadata import MetadataImage, TopicImage
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.access import Predicate, Purpose, may_use_topics
from core_broker.handlers.authorized_operations import (
    NOT_ASKED,
    TOPIC_OPERATIONS,
    cluster_operations,
    topic_operations,
)
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
    may_describe = may_use_topics(context, is_logged=not _is_for_all(request, context.api_version))
    missing = list(_missing(request, context, may_describe))
    if missing:
        return _create_and_answer(request, missing, context, may_describe)
    return _answer(request, context, {}, may_describe)


async def _create_and_answer(
    request: wire.MetadataRequest, names: list[str], context: RequestContext, may_describe: Predicate
) -> bytearray:
    may_create = may_use_topics(context, Purpose.CREATE)
    failed = {name: BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in names if not may_create(name)}
    wanted = [name for name in names if name not in failed and is_valid_topic_name(name)]
    if wanted:
        # The controller asks again, for the same client.
        client = Requester(context.session.principal, context.session.host, context.client_id)
        failed |= await context.services.topic_creation.auto_create(wanted, client)
    return _answer(request, context, failed, may_describe)


def _missing(request: wire.MetadataRequest, context: RequestContext, may_describe: Predicate) -> Iterator[str]:
    """The names of topics that do not exist, if they are to be created."""
    if not request.topics or not request.allow_auto_topic_creation:
        return
    if not context.services.settings.auto_create_topics_enable:
        return
    topics = context.services.metadata.image.topics
    for topic in request.topics:
        if topic.name and topic.topic_id == ZERO_UUID and topic.name not in topics and may_describe(topic.name):
            yield topic.name


def _answer(
    request: wire.MetadataRequest, context: RequestContext, failed: dict[str, BrokerError], may_describe: Predicate
) -> bytearray:
    version = context.api_version
    quorum = context.services.metadata
    image = quorum.image
    encoded = _encoded_topics.get(quorum)
    if encoded is None:
        encoded = _encoded_topics[quorum] = EncodedTopics()
    if context.authorizer is None and _is_for_all(request, version):
        found, errors = list(image.topics.values()), list[wire.MetadataResponseTopic]()
    else:
        found, errors = _select(request, image, version, failed, may_describe)
    parts = encoded.parts(found, image, version=version, operations=_operations(request, context))
    parts.extend(encode_topic(error, version) for error in errors)
    out = start_response(context.correlation_id, flexible=version >= wire.MetadataResponse.FLEXIBLE_SINCE)
    head = wire.MetadataResponse(
        brokers=list(_brokers(image, context)),
        cluster_id=image.cluster_id,
        controller_id=quorum.controller_id_for_clients,
        cluster_authorized_operations=cluster_operations(context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
    if context.usage is not None:
        head.throttle_time_ms = context.usage.charge_time()
    write_response(out, head, parts, version)
    return finish_response(out)


def _brokers(image: MetadataImage, context: RequestContext) -> Iterator[wire.MetadataResponseBroker]:
    for broker in image.live_brokers():
        endpoint = broker.endpoint(context.listener_name)
        if endpoint is not None:
            host = host_for_client(
                endpoint, context.services.metadata.image, context.services.settings, context.session.local_host
            )
            yield wire.MetadataResponseBroker(broker.broker_id, host, endpoint.port, broker.rack)


def _operations(request: wire.MetadataRequest, context: RequestContext) -> int | Callable[[str], int]:
    if not request.include_topic_authorized_operations:
        return NOT_ASKED
    return TOPIC_OPERATIONS if context.authorizer is None else partial(topic_operations, context)


def _is_for_all(request: wire.MetadataRequest, version: int) -> bool:
    """Whether the request is for all topics."""
    return request.topics is None or (version == 0 and not request.topics)


def _select(
    request: wire.MetadataRequest,
    image: MetadataImage,
    version: int,
    failed: dict[str, BrokerError],
    may_describe: Predicate,
) -> tuple[list[TopicImage], list[wire.MetadataResponseTopic]]:
    """The requested topics, and an error for each that does not exist or that the client must not see."""
    if _is_for_all(request, version):
        return [topic for topic in image.topics.values() if may_describe(topic.name)], []
    found, errors = [], []
    for wanted in request.topics or ():
        topic = _find(wanted, image, version)
        name = wanted.name if topic is None else topic.name
        if name and (topic is not None or wanted.topic_id == ZERO_UUID) and not may_describe(name):
            errors.append(_unauthorized(wanted))
        elif topic is not None:
            found.append(topic)
        else:
            errors.append(_error(wanted, version, failed))
    return found, errors


def _find(wanted: wire.MetadataRequestTopic, image: MetadataImage, version: int) -> TopicImage | None:
    if wanted.topic_id != ZERO_UUID:
        return image.topics_by_id.get(wanted.topic_id) if version >= _BY_ID_SINCE else None
    return image.topics.get(wanted.name or "")


def _unauthorized(wanted: wire.MetadataRequestTopic) -> wire.MetadataResponseTopic:
    """The refusal of a topic, which repeats the request and nothing else."""
    by_id = wanted.topic_id != ZERO_UUID
    name = None if by_id else wanted.name
    return wire.MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, wanted.topic_id)


def _error(
    wanted: wire.MetadataRequestTopic, version: int, failed: dict[str, BrokerError]
) -> wire.MetadataResponseTopic:
    by_id = wanted.topic_id != ZERO_UUID
    if (by_id or wanted.name is None) and version < _BY_ID_SINCE:
        return wire.MetadataResponseTopic(ErrorCode.INVALID_REQUEST, wanted.name or "", wanted.topic_id)
    if by_id:
        return wire.MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
    name = wanted.name or ""
    # As in Kafka, a client over its quota of changes finds that the topic is not there yet, and asks again.
    if name in failed and failed[name].code != ErrorCode.THROTTLING_QUOTA_EXCEEDED:
        return wire.MetadataResponseTopic(failed[name].code, name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return wire.MetadataResponseTopic(code, name)
