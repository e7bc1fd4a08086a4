"""AlterReplicaLogDirs, key 34, versions 1-2: moves partitions to another directory of log.dirs (KIP-113).

Supported: a move runs in the background while the partition is in use; DescribeLogDirs shows it. A move to the current
directory of the partition cancels a running move. For a partition that does not exist yet the response is an error,
and the partition will be created in that directory.
Ignored: nothing.

Versions: 2 flexible.
"""

from core_broker.errors import BrokerError, ErrorCode
from core_broker.handlers.context import RequestContext, Services
from core_broker.protocol.messages import alter_replica_log_dirs as wire


def handle(request: wire.AlterReplicaLogDirsRequest, context: RequestContext) -> wire.AlterReplicaLogDirsResponse:
    """Start moving each partition."""
    results: dict[str, list[wire.AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, []).extend(
                wire.AlterReplicaLogDirPartitionResult(
                    index, _move(topic.name, index, directory.path, context.services)
                )
                for index in topic.partitions
            )
    return wire.AlterReplicaLogDirsResponse(
        results=[wire.AlterReplicaLogDirTopicResult(name, partitions) for name, partitions in results.items()]
    )


def _move(topic: str, index: int, path: str, services: Services) -> ErrorCode:
    try:
        if services.logs.moves.begin(topic, index, path):
            return ErrorCode.NONE
        services.partitions.get(topic, index)
    except BrokerError as error:
        is_known = topic in (topics := services.metadata.image.topics) and index in topics[topic].partitions
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not is_known:
            return error.code
    return ErrorCode.REPLICA_NOT_AVAILABLE
