"""OffsetFetch (9), versions 1-10.

Reads committed offsets: of named partitions, or all (null topics, v2+). A partition without one answers -1, as does a
group that does not exist. With `require_stable` (v7+, KIP-447) an offset that an open transaction may change answers
UNSTABLE_OFFSET_COMMIT.
Version notes: v2 top-level error; v5 leader epoch; v6 flexible; v7 require_stable; v8 many groups (KIP-709); v9 member
id and epoch, checked for KIP-848 groups; v10 topics by id (KIP-848).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from core_broker.cluster.metadata import MetadataImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import GroupOffsets
from core_broker.groups.offsets import CommittedOffset
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_TOP_LEVEL_ERROR_SINCE: Final = 2
_MANY_GROUPS_SINCE: Final = 8
_TOPIC_IDS_SINCE: Final = 10
_NO_OFFSET: Final = -1

_Found = tuple[int, int, int, str, ErrorCode]
"""Partition, offset, leader epoch, metadata, error: what both shapes of the answer hold."""


def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """Answer one OffsetFetch request."""
    if context.api_version >= _MANY_GROUPS_SINCE:
        groups = [_group(group, context, require_stable=request.require_stable) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    return _single(request, context)


# --- many groups, v8+ -------------------------------------------------------------------------------------------------


def _group(
    group: OffsetFetchRequestGroup, context: RequestContext, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    commits = context.services.groups.offset_commits
    try:
        offsets = commits.fetch(group.group_id, member_id=group.member_id, member_epoch=group.member_epoch)
    except BrokerError as error:
        return OffsetFetchResponseGroup(group.group_id, [], error.code)
    image = context.services.metadata.image
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    if group.topics is None:
        topics = _all_topics(offsets, image, require_stable=require_stable, by_id=by_id)
    else:
        topics = [_topic(t, offsets, image, require_stable=require_stable, by_id=by_id) for t in group.topics]
    return OffsetFetchResponseGroup(group.group_id, topics)


def _topic(
    topic: OffsetFetchRequestTopics, offsets: GroupOffsets, image: MetadataImage, *, require_stable: bool, by_id: bool
) -> OffsetFetchResponseTopics:
    name = topic.name
    if by_id:
        known = image.topics_by_id.get(topic.topic_id)
        if known is None:
            missing = (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
            unknown = [OffsetFetchResponsePartitions(index, *missing) for index in topic.partition_indexes]
            return OffsetFetchResponseTopics(name, topic.topic_id, unknown)
        name = known.name
    found = _find(offsets, name, topic.partition_indexes, require_stable=require_stable)
    return OffsetFetchResponseTopics(name, topic.topic_id, [OffsetFetchResponsePartitions(*each) for each in found])


def _all_topics(
    offsets: GroupOffsets, image: MetadataImage, *, require_stable: bool, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    answer = []
    for name, partitions in offsets.all().items():
        known = image.topics.get(name)
        if by_id and known is None:
            continue  # there is no id to call it by
        found = _find(offsets, name, list(partitions), require_stable=require_stable)
        topic_id = known.topic_id if known is not None else bytes(16)
        answer.append(
            OffsetFetchResponseTopics(name, topic_id, [OffsetFetchResponsePartitions(*each) for each in found])
        )
    return answer


# --- one group, v1-7 --------------------------------------------------------------------------------------------------


def _single(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    try:
        offsets = context.services.groups.offset_commits.fetch(request.group_id)
    except BrokerError as error:
        return _refused(request, error.code, context.api_version)
    if request.topics is None:
        wanted: Mapping[str, Sequence[int]] = {name: list(found) for name, found in offsets.all().items()}
        topics = [(name, wanted[name]) for name in wanted]
    else:
        topics = [(topic.name, topic.partition_indexes) for topic in request.topics]
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name,
                [
                    OffsetFetchResponsePartition(*each)
                    for each in _find(offsets, name, indexes, require_stable=request.require_stable)
                ],
            )
            for name, indexes in topics
        ]
    )


def _refused(request: OffsetFetchRequest, error: ErrorCode, version: int) -> OffsetFetchResponse:
    if version >= _TOP_LEVEL_ERROR_SINCE:
        return OffsetFetchResponse(error_code=error)
    topics = [
        OffsetFetchResponseTopic(
            topic.name, [OffsetFetchResponsePartition(index, -1, -1, "", error) for index in topic.partition_indexes]
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponse(topics=topics)


def _find(offsets: GroupOffsets, topic: str, indexes: Sequence[int], *, require_stable: bool) -> list[_Found]:
    return [_found(offsets, topic, index, require_stable=require_stable) for index in indexes]


def _found(offsets: GroupOffsets, topic: str, index: int, *, require_stable: bool) -> _Found:
    if require_stable and offsets.is_unstable(topic, index):
        return index, _NO_OFFSET, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT
    committed: CommittedOffset | None = offsets.get(topic, index)
    if committed is None:
        return index, _NO_OFFSET, -1, "", ErrorCode.NONE
    return index, committed.offset, committed.leader_epoch, committed.metadata, ErrorCode.NONE
