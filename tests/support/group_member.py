"""A member of a consumer group as a process of its own, so that a test can make it join, leave and die.

Run as `python -m tests.support.group_member '<json options>'` it subscribes with one of the client libraries and tells
what happens to it in lines of JSON; `GroupMember` starts it and listens.
"""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

REPOSITORY: Final = Path(__file__).parents[2]


class GroupMember:
    """The test's handle on a member process."""

    def __init__(self, library: str, bootstrap: str, group: str, topic: str, **options: Any) -> None:
        self.assignment: frozenset[int] = frozenset()
        self.assignments: list[frozenset[int]] = []
        """Every assignment so far, in order."""
        self.revoked: list[frozenset[int]] = []
        self.records: list[tuple[int, int, str]] = []
        """(partition, offset, value) in the order they were read."""
        self.errors: list[str] = []
        self._noise: deque[str] = deque(maxlen=30)
        plan = {"library": library, "bootstrap": bootstrap, "group": group, "topic": topic, **options}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.group_member", json.dumps(plan)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=REPOSITORY,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        self.kill()
        if failure is not None:
            failure.add_note(f"a member of the group said: {self.errors} {''.join(self._noise)}")

    def leave(self) -> None:
        """Close the consumer as a program does that ends in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process without a word to the broker."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(30)
        self._listener.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                self._noise.append(line)
                continue
            for kind, value in json.loads(line).items():
                self._take(kind, value)

    def _take(self, kind: str, value: Any) -> None:
        match kind:
            case "assigned":
                self.assignment = frozenset(value)
                self.assignments.append(self.assignment)
            case "revoked":
                self.revoked.append(frozenset(value))
            case "records":
                self.records += [(partition, offset, text) for partition, offset, text in value]
            case _:
                self.errors.append(str(value))


# --- the process ------------------------------------------------------------------------------------------------------


class _Stop:
    """Set by SIGTERM."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True


def _tell(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _tell_records(messages: Iterable[tuple[int, int, bytes | None]]) -> None:
    _tell(records=[[partition, offset, (value or b"").decode()] for partition, offset, value in messages])


class _ConfluentListener:
    """Tells what a rebalance does; incremental ones name only what changes."""

    def __init__(self, *, incremental: bool) -> None:
        self._incremental = incremental

    def assigned(self, consumer: Any, partitions: list[Any]) -> None:
        held = _numbers(consumer.assignment()) if self._incremental else set()
        _tell(assigned=sorted(held | _numbers(partitions)))

    def revoked(self, consumer: Any, partitions: list[Any]) -> None:
        gone = _numbers(partitions)
        _tell(revoked=sorted(gone))
        _tell(assigned=sorted(_numbers(consumer.assignment()) - gone))


def _numbers(partitions: Iterable[Any]) -> set[int]:
    return {partition.partition for partition in partitions}


def _run_confluent(plan: dict[str, Any], stop: _Stop) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(config := _confluent_config(plan))
    is_new = config.get("group.protocol") == "consumer"
    listener = _ConfluentListener(
        incremental=is_new or "cooperative" in str(config.get("partition.assignment.strategy"))
    )
    consumer.subscribe(
        [plan["topic"]], on_assign=listener.assigned, on_revoke=listener.revoked, on_lost=listener.revoked
    )
    while not stop.requested:
        messages = consumer.consume(100, timeout=0.1)
        good = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                _tell(error=str(message.error()))
        if good:
            _tell_records((m.partition() or 0, m.offset() or 0, m.value()) for m in good)
            if plan.get("commit", True):
                _commit(consumer)
    consumer.close()


def _confluent_config(plan: dict[str, Any]) -> dict[str, Any]:
    config = {
        "bootstrap.servers": plan["bootstrap"],
        "group.id": plan["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **plan.get("config", {}),
    }
    if config.get("group.protocol") != "consumer":
        config.setdefault("session.timeout.ms", 3000)
        config.setdefault("heartbeat.interval.ms", 300)
    return config


def _commit(consumer: Any) -> None:
    from confluent_kafka import KafkaException

    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        _tell(error=str(error))


def _run_pure(plan: dict[str, Any], stop: _Stop) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.errors import KafkaError

    from tests.support.clients.pure import kept_awake

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
        def on_partitions_assigned(self, assigned: Any) -> None:
            _tell(assigned=sorted(partition.partition for partition in consumer.assignment() | set(assigned)))

        def on_partitions_revoked(self, revoked: Any) -> None:
            gone = {partition.partition for partition in revoked}
            _tell(revoked=sorted(gone))
            _tell(assigned=sorted({partition.partition for partition in consumer.assignment()} - gone))

    consumer = KafkaConsumer(
        bootstrap_servers=plan["bootstrap"],
        group_id=plan["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=3000,
        heartbeat_interval_ms=300,
        **({"partition_assignment_strategy": [CooperativeStickyAssignor]} if plan.get("cooperative") else {}),
        **plan.get("config", {}),
    )
    with kept_awake(consumer):
        consumer.subscribe([plan["topic"]], listener=Listener())
        while not stop.requested:
            batches = consumer.poll(timeout_ms=100)
            if batches:
                _tell_records((m.partition, m.offset, m.value) for batch in batches.values() for m in batch)
                try:
                    consumer.commit()
                except KafkaError as error:
                    _tell(error=str(error))


def _run_aio(plan: dict[str, Any], stop: _Stop) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
        def on_partitions_assigned(self, assigned: Any) -> None:
            _tell(assigned=sorted(partition.partition for partition in assigned))

        def on_partitions_revoked(self, revoked: Any) -> None:
            _tell(revoked=sorted(partition.partition for partition in revoked))
            _tell(assigned=[])

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=plan["bootstrap"],
            group_id=plan["group"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=3000,
            heartbeat_interval_ms=300,
            **plan.get("config", {}),
        )
        await consumer.start()
        consumer.subscribe([plan["topic"]], listener=Listener())
        while not stop.requested:
            batches = await consumer.getmany(timeout_ms=100)
            if batches:
                _tell_records((m.partition, m.offset, m.value) for batch in batches.values() for m in batch)
                try:
                    await consumer.commit()
                except KafkaError as error:
                    _tell(error=str(error))
        await consumer.stop()

    asyncio.run(run())


def _main() -> None:
    plan = json.loads(sys.argv[1])
    runners = {"confluent-kafka": _run_confluent, "kafka-python": _run_pure, "aiokafka": _run_aio}
    runners[plan["library"]](plan, _Stop())


if __name__ == "__main__":
    _main()
