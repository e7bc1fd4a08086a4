"""DescribeLogDirs (key 35)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, NullableSince, Since, message


class DescribableLogDirTopic(Message):
    topic: str = ""
    partitions: list[Int32] = []


@message(35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsRequest(Message):
    topics: Annotated[list[DescribableLogDirTopic] | None, NullableSince()] = []


class DescribeLogDirsPartition(Message):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Message):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Message):
    error_code: Int16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[Int64, Since(4)] = -1
    usable_bytes: Annotated[Int64, Since(4)] = -1
    is_cordoned: Annotated[bool, Since(5)] = False


@message(35, versions=(1, 5), flexible_since=2)
class DescribeLogDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(3)] = 0
    results: list[DescribeLogDirsResult] = []
