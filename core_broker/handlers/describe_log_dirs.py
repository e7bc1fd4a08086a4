"""DescribeLogDirs, key 35, versions 1-5: the log directories, their disk space, and the size of each partition.

Supported: selected partitions, or (null) all. The lag is how far a log is behind its own high watermark, as in Kafka,
and so always 0; that of a copy being moved to another directory (is_future_key) says how much it is behind.
Ignored: nothing.

Versions: 2 flexible; 3 top-level error; 4 total and usable bytes (KIP-827); 5 cordoned directories, of which there are
none.
"""

from pathlib import Path

from core_broker.errors import ErrorCode
from core_broker.handlers.context import RequestContext
from core_broker.log.log_directory import LogDirectory
from core_broker.protocol.messages import describe_log_dirs as wire


def handle(request: wire.DescribeLogDirsRequest, context: RequestContext) -> wire.DescribeLogDirsResponse:
    """Describe each directory."""
    wanted = None if request.topics is None else {item.topic: set(item.partitions) for item in request.topics}
    directories = context.services.logs.directories
    found: dict[Path, dict[str, list[wire.DescribeLogDirsPartition]]] = {
        directory.path: {} for directory in directories
    }
    logs = [(partition_log, 0, False) for partition_log in context.services.logs]
    copies = [(move.copy, move.lag, True) for move in context.services.logs.moves]
    for log, lag, is_copy in (*logs, *copies):
        if wanted is None or log.partition in wanted.get(log.topic, ()):
            described = wire.DescribeLogDirsPartition(log.partition, log.size_bytes, lag, is_copy)
            found[log.directory.parent].setdefault(log.topic, []).append(described)
    results = [_describe(directory, found[directory.path]) for directory in directories]
    return wire.DescribeLogDirsResponse(results=results)


def _describe(
    directory: LogDirectory, topics: dict[str, list[wire.DescribeLogDirsPartition]]
) -> wire.DescribeLogDirsResult:
    try:
        disk = directory.space()
    except OSError:
        return wire.DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, str(directory.path))
    return wire.DescribeLogDirsResult(
        log_dir=str(directory.path.absolute()),
        topics=[wire.DescribeLogDirsTopic(name, partitions) for name, partitions in topics.items()],
        total_bytes=disk.total_bytes,
        usable_bytes=disk.usable_bytes,
    )
