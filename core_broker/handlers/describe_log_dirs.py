"""DescribeLogDirs, key 35, versions 1-5: the log directories, how full they are, and the size of each partition.

Supported: chosen partitions, or (null) all. The lag is 0, because the log here is the leader's.
Ignored: nothing.

Versions: 2 flexible; 3 top-level error; 4 total and usable bytes (KIP-827); 5 cordoned directories, of which there are
none.
"""

from collections.abc import Iterable
from pathlib import Path

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.log.log_directory import LogDirectory
from core_broker.log.partition_log import PartitionLog
from core_broker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    """Describe each directory."""
    wanted = None if request.topics is None else {item.topic: set(item.partitions) for item in request.topics}
    directories = context.services.logs.directories
    logs: dict[Path, list[PartitionLog]] = {directory.path: [] for directory in directories}
    for partition_log in context.services.logs:
        if wanted is None or partition_log.partition in wanted.get(partition_log.topic, ()):
            logs[partition_log.directory.parent].append(partition_log)
    results = [_describe(directory, logs[directory.path]) for directory in directories]
    return DescribeLogDirsResponse(results=results)


def _describe(directory: LogDirectory, logs: Iterable[PartitionLog]) -> DescribeLogDirsResult:
    try:
        disk = directory.space()
    except OSError:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, str(directory.path))
    return DescribeLogDirsResult(
        log_dir=str(directory.path.absolute()),
        topics=_topics(logs),
        total_bytes=disk.total_bytes,
        usable_bytes=disk.usable_bytes,
    )


def _topics(logs: Iterable[PartitionLog]) -> list[DescribeLogDirsTopic]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for found in logs:
        described = DescribeLogDirsPartition(found.partition, found.size_bytes)
        topics.setdefault(found.topic, []).append(described)
    return [DescribeLogDirsTopic(name, partitions) for name, partitions in topics.items()]
