"""OffsetFetch, key 9, versions 1-10.

Returns committed offsets of selected partitions, or all (null topics, 2+). The offset is -1 for a partition without a
commit, and for a group that does not exist. With `require_stable` (7+, KIP-447) an offset that an open transaction may
change is UNSTABLE_OFFSET_COMMIT.

Versions: 2 top-level error; 5 leader epoch; 6 flexible; 7 require_stable; 8 many groups (KIP-709); 9 member id and
epoch, checked for KIP-848 groups; 10 topics by id (KIP-848).
"""

from collections.abc import Sequence
from typing import Final

from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import GroupOffsets
from core_broker.handlers.access import Predicate, may_use_groups, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import offset_fetch as wire

_TOP_LEVEL_ERROR_SINCE: Final = 2
_MANY_GROUPS_SINCE: Final = 8
_TOPIC_IDS_SINCE: Final = 10
_NO_OFFSET: Final = -1

_Found = tuple[int, int, int, str, ErrorCode]
"""Partition, offset, leader epoch, metadata, error: the fields of both forms of the response."""


def handle(request: wire.OffsetFetchRequest, context: RequestContext) -> wire.OffsetFetchResponse:
    """Return the committed offsets."""
    may_describe_group, may_describe = may_use_groups(context), may_use_topics(context)
    if context.api_version >= _MANY_GROUPS_SINCE:
        groups = [
            _group(group, context, may_describe, require_stable=request.require_stable)
            if may_describe_group(group.group_id)
            else wire.OffsetFetchResponseGroup(group.group_id, [], ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for group in request.groups
        ]
        return wire.OffsetFetchResponse(groups=groups)
    try:
        if not may_describe_group(request.group_id):
            raise BrokerError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        offsets = context.services.groups.offset_commits.fetch(request.group_id)
    except BrokerError as error:
        return _error_response(request, error.code, context.api_version)
    if request.topics is None:
        topics = [(name, list(found)) for name, found in offsets.all().items() if may_describe(name)]
    else:
        topics = [(topic.name, topic.partition_indexes) for topic in request.topics]
    return wire.OffsetFetchResponse(
        topics=[
            wire.OffsetFetchResponseTopic(
                name,
                [
                    wire.OffsetFetchResponsePartition(*each)
                    for each in _find(offsets, name, indexes, may_describe, require_stable=request.require_stable)
                ],
            )
            for name, indexes in topics
        ]
    )


def _group(
    group: wire.OffsetFetchRequestGroup, context: RequestContext, may_describe: Predicate, *, require_stable: bool
) -> wire.OffsetFetchResponseGroup:
    commits = context.services.groups.offset_commits
    try:
        offsets = commits.fetch(group.group_id, member_id=group.member_id, member_epoch=group.member_epoch)
    except BrokerError as error:
        return wire.OffsetFetchResponseGroup(group.group_id, [], error.code)
    image = context.services.metadata.image
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    if group.topics is None:
        topics = _all_topics(offsets, image, may_describe, require_stable=require_stable, by_id=by_id)
    else:
        topics = [
            _topic(topic, offsets, image, may_describe, require_stable=require_stable, by_id=by_id)
            for topic in group.topics
        ]
    return wire.OffsetFetchResponseGroup(group.group_id, topics)


def _topic(
    topic: wire.OffsetFetchRequestTopics,
    offsets: GroupOffsets,
    image: MetadataImage,
    may_describe: Predicate,
    *,
    require_stable: bool,
    by_id: bool,
) -> wire.OffsetFetchResponseTopics:
    name = topic.name
    if by_id:
        known = image.topics_by_id.get(topic.topic_id)
        if known is None:
            missing = (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
            unknown = [wire.OffsetFetchResponsePartitions(index, *missing) for index in topic.partition_indexes]
            return wire.OffsetFetchResponseTopics(name, topic.topic_id, unknown)
        name = known.name
    found = _find(offsets, name, topic.partition_indexes, may_describe, require_stable=require_stable)
    return wire.OffsetFetchResponseTopics(
        name, topic.topic_id, [wire.OffsetFetchResponsePartitions(*each) for each in found]
    )


def _all_topics(
    offsets: GroupOffsets, image: MetadataImage, may_describe: Predicate, *, require_stable: bool, by_id: bool
) -> list[wire.OffsetFetchResponseTopics]:
    answer = []
    for name, partitions in offsets.all().items():
        known = image.topics.get(name)
        if (by_id and known is None) or not may_describe(name):
            continue  # without an id it cannot be named in the response
        found = _find(offsets, name, list(partitions), may_describe, require_stable=require_stable)
        topic_id = known.topic_id if known is not None else bytes(16)
        answer.append(
            wire.OffsetFetchResponseTopics(
                name, topic_id, [wire.OffsetFetchResponsePartitions(*each) for each in found]
            )
        )
    return answer


def _error_response(request: wire.OffsetFetchRequest, error: ErrorCode, version: int) -> wire.OffsetFetchResponse:
    if version >= _TOP_LEVEL_ERROR_SINCE:
        return wire.OffsetFetchResponse(error_code=error)
    topics = [
        wire.OffsetFetchResponseTopic(
            topic.name,
            [wire.OffsetFetchResponsePartition(index, -1, -1, "", error) for index in topic.partition_indexes],
        )
        for topic in request.topics or ()
    ]
    return wire.OffsetFetchResponse(topics=topics)


def _find(
    offsets: GroupOffsets, topic: str, indexes: Sequence[int], may_describe: Predicate, *, require_stable: bool
) -> list[_Found]:
    if not may_describe(topic):
        return [(index, _NO_OFFSET, -1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED) for index in indexes]
    found: list[_Found] = []
    for index in indexes:
        committed = offsets.get(topic, index)
        if require_stable and offsets.is_unstable(topic, index):
            found.append((index, _NO_OFFSET, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif committed is None:
            found.append((index, _NO_OFFSET, -1, "", ErrorCode.NONE))
        else:
            found.append((index, committed.offset, committed.leader_epoch, committed.metadata, ErrorCode.NONE))
    return found
