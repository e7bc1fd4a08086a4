"""OffsetCommit, key 8, versions 2-10.

Commits the offsets of a group; the response is sent once they are committed. For members of classic and KIP-848 groups,
and for consumers outside the group protocol (generation -1). Partitions are rejected individually: unknown topic,
metadata too long.

Versions: 2-4 retention time, supported according to KIP-211; 6 leader epoch; 7 instance id; 8 flexible; 9 member
epochs, GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH (KIP-848); 10 topics by id (KIP-848).
"""

from typing import Final

from core_broker.cluster.metadata import MetadataImage, TopicImage
from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.offset_commits import Committer, OffsetCommits, OffsetToCommit
from core_broker.groups.offsets import NO_EXPIRY, CommittedOffset
from core_broker.handlers.access import Predicate, may_use_topics
from core_broker.handlers.context import RequestContext
from core_broker.protocol.messages import offset_commit as wire
from core_broker.protocol.primitives import ZERO_UUID

_TOPIC_IDS_SINCE: Final = 10


async def handle(request: wire.OffsetCommitRequest, context: RequestContext) -> wire.OffsetCommitResponse:
    """Commit the offsets."""
    version = context.api_version
    commits = context.services.groups.offset_commits
    draft = _Draft(request, context, commits)
    response = wire.OffsetCommitResponse(topics=[draft.topic(topic) for topic in request.topics])
    if not draft.offsets:
        return response
    committer = Committer(
        group_id=request.group_id,
        member_id=request.member_id,
        generation_or_epoch=request.generation_id_or_member_epoch,
        instance_id=request.group_instance_id,
    )
    try:
        await commits.commit(committer, draft.offsets, api_version=version)
    except BrokerError as error:
        for partition in draft.accepted:
            partition.error_code = error.code
    return response


class _Draft:
    """Separates the partitions of a request into those to commit and those rejected."""

    __slots__ = ("_by_id", "_commits", "_expires_at_ms", "_image", "_may_read", "_now_ms", "accepted", "offsets")

    def __init__(self, request: wire.OffsetCommitRequest, context: RequestContext, commits: OffsetCommits) -> None:
        self._image: MetadataImage = context.services.metadata.image
        self._commits = commits
        self._may_read: Predicate = may_use_topics(context)
        self._by_id = context.api_version >= _TOPIC_IDS_SINCE
        self._now_ms = context.services.clock.now_ms()
        retention_ms = request.retention_time_ms
        self._expires_at_ms = NO_EXPIRY if retention_ms < 0 else self._now_ms + retention_ms
        self.offsets: list[OffsetToCommit] = []
        self.accepted: list[wire.OffsetCommitResponsePartition] = []

    def topic(self, topic: wire.OffsetCommitRequestTopic) -> wire.OffsetCommitResponseTopic:
        """The result for a topic as known before the commit."""
        if self._by_id:
            known = self._image.topics_by_id.get(topic.topic_id)
            error = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            known = self._image.topics.get(topic.name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        name = known.name if known is not None else topic.name
        if name and not self._may_read(name):
            known, error = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if known is None:
            refused = [wire.OffsetCommitResponsePartition(p.partition_index, error) for p in topic.partitions]
            return wire.OffsetCommitResponseTopic(topic.name, topic.topic_id, refused)
        answers = [self._partition(known, partition) for partition in topic.partitions]
        return wire.OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)

    def _partition(
        self, topic: TopicImage, partition: wire.OffsetCommitRequestPartition
    ) -> wire.OffsetCommitResponsePartition:
        index = partition.partition_index
        if index not in topic.partitions:
            return wire.OffsetCommitResponsePartition(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        metadata = partition.committed_metadata or ""
        error = self._commits.metadata_error(metadata) if metadata else ErrorCode.NONE
        if error is not ErrorCode.NONE:
            return wire.OffsetCommitResponsePartition(index, error)
        committed = CommittedOffset(
            partition.committed_offset,
            partition.committed_leader_epoch,
            metadata,
            self._now_ms,
            self._expires_at_ms,
            topic.topic_id if self._by_id else ZERO_UUID,
        )
        self.offsets.append((topic.name, index, committed))
        answer = wire.OffsetCommitResponsePartition(index)
        self.accepted.append(answer)
        return answer
