"""AddPartitionsToTxn (key 24)."""

from typing import Annotated

from core_broker.protocol.fields import Int16, Int32, Int64, Message, Since, message


class AddPartitionsToTxnTopic(Message):
    name: str = ""
    partitions: list[Int32] = []


class AddPartitionsToTxnTransaction(Message):
    transactional_id: Annotated[str, Since(4)] = ""
    producer_id: Annotated[Int64, Since(4)] = 0
    producer_epoch: Annotated[Int16, Since(4)] = 0
    verify_only: Annotated[bool, Since(4)] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], Since(4)] = []


@message(24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnRequest(Message):
    transactions: Annotated[list[AddPartitionsToTxnTransaction], Since(4)] = []
    v3_and_below_transactional_id: Annotated[str, Since(0, 3)] = ""
    v3_and_below_producer_id: Annotated[Int64, Since(0, 3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, Since(0, 3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], Since(0, 3)] = []


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Message):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Message):
    transactional_id: Annotated[str, Since(4)] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], Since(4)] = []


@message(24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(4)] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], Since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], Since(0, 3)] = []
