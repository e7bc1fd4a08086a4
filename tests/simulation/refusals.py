"""What must be refused: requests and answers of another leader epoch, and appends that could not be kept."""

from collections.abc import Callable
from typing import Any

from core_broker.cluster.controller import controller, partition_changes
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.replication.fetchers import Source
from core_broker.handlers import fetch
from core_broker.handlers.fetch_response import ReadResult
from core_broker.log.partition_log import PartitionLog
from core_broker.protocol.messages.alter_partition import AlterPartitionRequest
from core_broker.protocol.messages.fetch import PartitionData
from tests.simulation.determinism import replace

Fail = Callable[[str, str], None]
"""Reports a violation: the rule, and what happened."""


def watch(fail: Fail) -> None:
    """Check from now on."""
    for name in ("_read_for_follower", "_read_for_consumer"):
        _watch_fetches(name, fail)
    _watch_answers(fail)
    _watch_proposals(fail)
    _watch_min_isr(fail)
    for name in ("append", "append_as_follower"):
        _watch_failed_logs(name, fail)


def _watch_fetches(name: str, fail: Fail) -> None:
    """I1: a leader answers only fetches of its own epoch."""
    read = getattr(fetch._Fetch, name)

    def check(request: fetch._Fetch, *arguments: Any) -> ReadResult:
        result: ReadResult = read(request, *arguments)
        topic, entry = arguments[-2:]
        partition = request._context.services.partitions.find(topic, entry.partition)
        if partition is not None and not result.error and entry.leader_epoch not in (-1, partition.leader_epoch):
            text = f"a fetch of leader epoch {entry.leader_epoch} from {topic}-{entry.partition} was answered"
            fail("I1", f"{text} in epoch {partition.leader_epoch}")
        return result

    replace(fetch._Fetch, name, check)


def _watch_answers(fail: Fail) -> None:
    """I1: a follower applies only answers to what it asked in the present epoch."""
    apply = Source._apply_one

    def check(source: Source, key: tuple[bytes, int], followed: Any, data: PartitionData) -> bool:
        partition, asked = followed.partition, followed.fetch.leader_epoch
        before = partition.log.end_offset, partition.high_watermark
        result = apply(source, key, followed, data)
        has_changed = before != (partition.log.end_offset, partition.high_watermark)
        if has_changed and asked != partition.leader_epoch:
            text = f"{partition.topic}-{partition.index} applied an answer of leader epoch {asked}"
            fail("I1", f"{text} in epoch {partition.leader_epoch}")
        return result

    replace(Source, "_apply_one", check)


def _watch_proposals(fail: Fail) -> None:
    """I1: the controller takes an ISR only from the leader, in its epoch."""
    plan = partition_changes.plan_alter_partition

    def check(request: AlterPartitionRequest, image: MetadataImage, settings: Any) -> Any:
        records, response = plan(request, image, settings)
        changed = {(record.topic_id, record.partition_id) for record in records}
        for topic in request.topics:
            for proposal in topic.partitions:
                if (topic.topic_id, proposal.partition_index) not in changed:
                    continue
                partition = image.topics_by_id[topic.topic_id].partitions[proposal.partition_index]
                if (proposal.leader_epoch, request.broker_id) != (partition.leader_epoch, partition.leader_id):
                    text = f"broker {request.broker_id} changed an ISR in leader epoch {proposal.leader_epoch}"
                    fail("I1", f"{text}, but broker {partition.leader_id} leads in {partition.leader_epoch}")
        return records, response

    replace(controller, "plan_alter_partition", check)


def _watch_min_isr(fail: Fail) -> None:
    """I7: nothing is appended with `acks=all` below the minimum."""
    append = Partition.append

    def check(partition: Partition, buffer: Any, *, acks_all: bool, **options: Any) -> Any:
        result = append(partition, buffer, acks_all=acks_all, **options)
        if acks_all and len(partition.isr) < partition.min_in_sync_replicas:
            fail("I7", f"{partition.topic}-{partition.index} was appended to with ISR {partition.isr}")
        return result

    replace(Partition, "append", check)


def _watch_failed_logs(name: str, fail: Fail) -> None:
    """I11: nothing is appended to a log that failed to write, until it is opened again."""
    append = getattr(PartitionLog, name)

    def check(log: PartitionLog, *arguments: Any, **options: Any) -> Any:
        failure = log.failure
        result = append(log, *arguments, **options)
        if failure is not None:
            fail("I11", f"{log.topic}-{log.partition} was appended to after a failure: {failure}")
        return result

    replace(PartitionLog, name, check)
