"""The clients: programs that use the cluster with libraries we did not write, and keep a history of it.

`python -m tests.chaos.workloads HISTORY CONNECTION RATE CLIENT...` runs clients, each in a thread, until
SIGTERM. CONNECTION is a JSON object with settings of librdkafka: where the brokers are, and how to log in. A client is
`kind:number`; its number marks the records that it writes and is never used twice.
"""

import asyncio
import faulthandler
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.history import History, decode_value, encode_value, identify
from tests.chaos.topics import INPUT, OUTPUT, TOPICS, TRANSACTIONS
from tests.support.cluster_security import for_aiokafka

log = logging.getLogger(__name__)

INCARNATION: Final = 100
"""The number of a client that begins anew in the same process is this much higher."""
CONNECTION: Final[Mapping[str, Any]] = {
    "socket.timeout.ms": 10_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 5_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "log_level": 0,
}
CONSUMER: Final[Mapping[str, Any]] = {
    **CONNECTION,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 500,
    "max.poll.interval.ms": 60_000,
    "fetch.wait.max.ms": 200,
    "fetch.error.backoff.ms": 50,
}
STUCK: Final = 75
"""The exit code of a process whose library did not return from a call."""
_STUCK_S: Final = 25.0
_TURN_S: Final = 0.05
_OUTSTANDING_MAX: Final = 20_000
_TRANSACTION_TIMEOUT_MS: Final = 15_000
_OVERSIZE_BYTES: Final = 300_000


class Client:
    """What all clients share: where to connect, where to write, and when to stop."""

    def __init__(self, number: int, connection: Mapping[str, str], rate: int, history: History) -> None:
        self.number = number
        self.rate = rate
        self.history = history
        self.connection = connection
        self.random = random.Random(number)
        self.stopping = threading.Event()

    def producer(self, **settings: Any) -> Producer:
        """A producer that waits for all in-sync replicas."""
        return Producer(
            {
                **CONNECTION,
                **self.connection,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 10,
                "batch.size": 100_000,
                "delivery.timeout.ms": 60_000 if "transactional.id" not in settings else _TRANSACTION_TIMEOUT_MS,
                **settings,
            }
        )

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer; its group only matters if it subscribes."""
        found = {**CONSUMER, **self.connection, "group.id": "none", **settings}
        if settings.get("group.protocol") == "consumer":  # these are settings of the broker in this protocol
            del found["session.timeout.ms"], found["heartbeat.interval.ms"]
        return Consumer(found)

    def begin_anew(self) -> None:
        """Take a number that no record has yet: what became of the last ones is unknown."""
        self.number += INCARNATION

    def write_reads(self, reader: str, isolation: str, messages: list[Message], *, final: bool = False) -> None:
        """Note what a consumer returned."""
        found: dict[str, list[tuple[int, int, int, int]]] = {}
        for message in messages:
            topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value()
            if message.error() is not None or topic is None or value is None:
                continue
            try:
                found.setdefault(topic, []).append((partition or 0, offset or 0, *decode_value(bytes(value))))
            except ValueError as error:
                self.history.write("damaged", topic=topic, partition=partition, offset=offset, reason=str(error))
        extra = {"final": True} if final else {}
        for topic, records in found.items():
            self.history.write("read", reader=reader, isolation=isolation, topic=topic, records=records, **extra)


# --- producers --------------------------------------------------------------------------------------------------------


class _Deliveries:
    """Collects the reports of a producer, and writes them in groups."""

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._acks: list[tuple[int, int, int]] = []
        self._unknown: list[int] = []
        self.outstanding = 0
        self.has_failed = False

    def expect(self, record: int) -> Callable[[KafkaError | None, Message], None]:
        """The callback for one record."""
        self.outstanding += 1

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self.outstanding -= 1
            if error is None:
                self._acks.append((record, message.partition() or 0, message.offset() or 0))
            else:
                self._unknown.append(record)
                self.has_failed = True

        return on_delivery

    def write(self) -> None:
        """Write what has arrived since the last time."""
        if self._acks:
            self._client.history.write("ok", client=self._client.number, topic=self._topic, acks=self._acks)
            self._acks = []
        if self._unknown:
            self._client.history.write("unknown", client=self._client.number, records=self._unknown)
            self._unknown = []


def produce(client: Client) -> None:
    """Write records at an even rate, to each partition in turn, with an idempotent producer."""
    while not client.stopping.is_set():
        producer = client.producer()
        deliveries = _Deliveries(client, INPUT)
        try:
            _produce_until_failure(client, producer, deliveries)
            producer.flush(60)
        except KafkaException as error:  # fatal for this producer
            client.history.write("restart", client=client.number, reason=str(error.args[0]))
        deliveries.write()
        client.begin_anew()


def _produce_until_failure(client: Client, producer: Producer, deliveries: _Deliveries) -> None:
    per_turn = max(1, int(client.rate * _TURN_S))
    count = 0
    next_turn = time.monotonic()
    while not client.stopping.is_set() and not deliveries.has_failed:
        first = identify(client.number, count)
        count += per_turn
        client.history.write("invoke", client=client.number, topic=INPUT, first=first, last=first + per_turn - 1)
        for record in range(first, first + per_turn):
            partition = record % TOPICS[INPUT]
            producer.produce(INPUT, encode_value(record), partition=partition, on_delivery=deliveries.expect(record))
        next_turn = max(next_turn + _TURN_S, time.monotonic() - 0.5)
        while (seconds_left := next_turn - time.monotonic()) > 0:  # `poll` returns at the first report
            producer.poll(seconds_left)
        while deliveries.outstanding > _OUTSTANDING_MAX:
            producer.poll(0.1)
            deliveries.write()
        deliveries.write()


def produce_rejected(client: Client) -> None:
    """Write records that are larger than the topic allows: the broker rejects each, and no reader may see one."""
    producer = client.producer(**{"enable.idempotence": False, "message.max.bytes": 10 * _OVERSIZE_BYTES})
    count = 0
    while not client.stopping.wait(1.0):
        record = identify(client.number, count)
        count += 1

        def on_delivery(error: KafkaError | None, message: Message, record: int = record) -> None:
            op = "fail" if error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE else "unknown"
            if error is None:
                op = "ok"
            client.history.write(op, client=client.number, topic=INPUT, records=[record], acks=[])

        client.history.write("invoke", client=client.number, topic=INPUT, first=record, last=record)
        value = encode_value(record) + b"y" * _OVERSIZE_BYTES
        producer.produce(INPUT, value, partition=record % TOPICS[INPUT], on_delivery=on_delivery)
        producer.poll(0)
    producer.flush(20)


# --- transactions -----------------------------------------------------------------------------------------------------


def transact(client: Client) -> None:
    """Write transactions over at least three partitions; abort some of them on purpose."""
    name = f"transactions-{client.number % INCARNATION}"
    while not client.stopping.is_set():
        producer = client.producer(**{"transactional.id": name, "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS})
        try:
            producer.init_transactions(30)
            _transact_until_failure(client, producer)
        except KafkaException as error:
            client.history.write("restart", client=client.number, reason=str(error.args[0]))
            client.stopping.wait(0.2)
        client.begin_anew()


def _transact_until_failure(client: Client, producer: Producer) -> None:
    count = 0
    sequence = 0
    while not client.stopping.is_set():
        transaction = identify(client.number, count)
        count += 1
        size = client.random.randint(3, 12)
        records = [identify(client.number, sequence + number) for number in range(size)]
        sequence += size
        deliveries = _Deliveries(client, TRANSACTIONS)
        client.history.write("begin", transaction=transaction, topic=TRANSACTIONS, records=records)
        producer.begin_transaction()
        for record in records:
            value = encode_value(record, transaction)
            partition = record % TOPICS[TRANSACTIONS]
            producer.produce(TRANSACTIONS, value, partition=partition, on_delivery=deliveries.expect(record))
        end_transaction(client, producer, transaction, commit=client.random.random() < 0.8)
        deliveries.write()


def end_transaction(client: Client, producer: Producer, transaction: int, *, commit: bool) -> None:
    """Commit or abort, and note how it ended; raises KafkaException if the producer cannot go on."""
    deadline = time.monotonic() + 60
    while True:
        try:
            if commit:
                producer.commit_transaction(10)
            else:
                producer.abort_transaction(10)
        except KafkaException as error:
            reason = error.args[0]
            if reason.txn_requires_abort():
                commit = False
            elif not reason.retriable() or time.monotonic() > deadline:
                raise
        else:
            client.history.write("committed" if commit else "aborted", transaction=transaction)
            return


def transform(client: Client) -> None:
    """Copy the input to the output exactly once: offsets and records in the same transaction."""
    name = f"transform-{client.number % INCARNATION}"
    while not client.stopping.is_set():
        producer = client.producer(**{"transactional.id": name, "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS})
        consumer = client.consumer(**{"group.id": "transform", "isolation.level": "read_committed"})
        try:
            producer.init_transactions(30)
            consumer.subscribe([INPUT])
            _transform_until_failure(client, consumer, producer)
        except KafkaException as error:
            client.history.write("restart", client=client.number, reason=str(error.args[0]))
            client.stopping.wait(0.2)
        consumer.close()
        client.begin_anew()


def _transform_until_failure(client: Client, consumer: Consumer, producer: Producer) -> None:
    count = 0
    while not client.stopping.is_set():
        messages = [message for message in consumer.consume(2000, 0.5) if message.error() is None]
        if not messages:
            continue
        transaction = identify(client.number, count)
        count += 1
        records = [decode_value(bytes(message.value() or b""))[0] for message in messages]
        client.history.write("begin", transaction=transaction, topic=OUTPUT, records=records)
        producer.begin_transaction()
        for record in records:
            producer.produce(OUTPUT, encode_value(record, transaction), partition=record % TOPICS[OUTPUT])
        positions = consumer.position(consumer.assignment())
        reached = [position for position in positions if position.offset >= 0]
        _send_offsets(client, producer, reached, consumer.consumer_group_metadata())
        try:
            producer.commit_transaction(20)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                end_transaction(client, producer, transaction, commit=False)
            raise
        client.history.write("committed", transaction=transaction)


def _send_offsets(client: Client, producer: Producer, reached: list[TopicPartition], group: object) -> None:
    """Add offsets to the transaction, and end the process if that call never returns.

    librdkafka forgets its time-out when the group's coordinator disappears (librdkafka#5456, #5511), as long as the
    state of no other broker changes: its users have to start again.
    """
    has_returned = threading.Event()

    def watch() -> None:
        if not has_returned.wait(_STUCK_S):
            client.history.write("stuck", client=client.number)
            os._exit(STUCK)

    threading.Thread(target=watch, daemon=True).start()
    try:
        producer.send_offsets_to_transaction(reached, group, 10)
    finally:
        has_returned.set()


# --- consumers --------------------------------------------------------------------------------------------------------


def read_all(client: Client, isolation: str) -> None:
    """Read every partition from its beginning, and never skip anything."""
    name = f"reader-{client.number}"
    consumer = client.consumer(**{"isolation.level": f"read_{isolation}"})
    consumer.assign([TopicPartition(topic, number, 0) for topic, count in TOPICS.items() for number in range(count)])
    while not client.stopping.is_set():
        client.write_reads(name, isolation, consumer.consume(5000, 0.5))
    consumer.close()


def watch_watermarks(client: Client) -> None:
    """Ask each leader every now and then how far consumers may read."""
    name = f"watermarks-{client.number}"
    consumer = client.consumer()
    while not client.stopping.wait(0.5):
        for topic, count in TOPICS.items():
            for partition in range(count):
                try:
                    start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=2)
                except KafkaException:
                    continue
                client.history.write("watermark", reader=name, topic=topic, partition=partition, start=start, end=end)
                if client.stopping.is_set():
                    break
    consumer.close()


def read_in_group(client: Client, *, group: str, topic: str, protocol: str) -> None:
    """Read as a member of a group, and commit."""
    consumer = client.consumer(**{"group.id": group, "group.protocol": protocol, "isolation.level": "read_committed"})

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        asked = time.monotonic()
        try:
            committed = consumer.committed(partitions, timeout=10)
        except KafkaException:
            return
        client.history.write("fetched offsets", group=group, asked=asked, offsets=_offsets(committed))

    consumer.subscribe([topic], on_assign=on_assign)
    next_commit = 0.0
    while not client.stopping.is_set():
        client.write_reads(f"member-{client.number}", "committed", consumer.consume(2000, 0.5))
        if time.monotonic() > next_commit:
            next_commit = time.monotonic() + 1
            _commit(client, consumer, group)
    _commit(client, consumer, group)
    consumer.close()


def _commit(client: Client, consumer: Consumer, group: str) -> None:
    try:
        committed = consumer.commit(asynchronous=False)
    except KafkaException:
        return
    good = [position for position in committed or () if position.error is None]
    if good:
        client.history.write("committed offsets", group=group, offsets=_offsets(good))


def _offsets(positions: list[TopicPartition]) -> list[tuple[str, int, int]]:
    return [(position.topic, position.partition, position.offset) for position in positions]


def read_with_aiokafka(client: Client, *, group: str, topic: str) -> None:
    """Two members in one process, with a library that says which generation it is in."""
    asyncio.run(_run_members(client, group, topic))


async def _run_members(client: Client, group: str, topic: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in (1, 2):
            tasks.create_task(_run_member(client, f"{client.number}.{number}", group, topic))


async def _run_member(client: Client, name: str, group: str, topic: str) -> None:
    while not client.stopping.is_set():
        consumer = AIOKafkaConsumer(
            bootstrap_servers=client.connection["bootstrap.servers"].split(","),
            **for_aiokafka(client.connection),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            request_timeout_ms=10_000,
            retry_backoff_ms=100,
            metadata_max_age_ms=5000,
        )
        try:
            await consumer.start()
            consumer.subscribe([topic], listener=_GenerationListener(client, name, group, consumer))
            await _consume_with_aiokafka(client, name, group, consumer)
        except (AioKafkaError, OSError, AssertionError) as error:
            # aiokafka asserts that a partition has a position, and getmany() may find one whose offset is being reset.
            client.history.write("restart", client=client.number, reason=repr(error))
            await asyncio.sleep(0.5)
        finally:
            try:
                await asyncio.wait_for(consumer.stop(), 15)
            except (AioKafkaError, OSError, TimeoutError):
                pass


async def _consume_with_aiokafka(client: Client, name: str, group: str, consumer: AIOKafkaConsumer) -> None:
    while not client.stopping.is_set():
        batches = await consumer.getmany(timeout_ms=500, max_records=1000)
        for partition, records in batches.items():
            found = [(record.partition, record.offset, *decode_value(record.value)) for record in records]
            client.history.write(
                "read", reader=f"member-{name}", isolation="committed", topic=partition.topic, records=found
            )
        if batches:
            try:
                positions = {partition: records[-1].offset + 1 for partition, records in batches.items()}
                await consumer.commit(positions)
            except AioKafkaError:
                continue
            offsets = [(partition.topic, partition.partition, offset) for partition, offset in positions.items()]
            client.history.write("committed offsets", group=group, offsets=offsets)


class _GenerationListener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, client: Client, name: str, group: str, consumer: AIOKafkaConsumer) -> None:
        self._client = client
        self._name = name
        self._group = group
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: set[AioTopicPartition]) -> None:
        pass

    async def on_partitions_assigned(self, assigned: set[AioTopicPartition]) -> None:
        coordinator = self._consumer._coordinator
        self._client.history.write(
            "assigned",
            group=self._group,
            member=self._name,
            generation=coordinator.generation,
            partitions=[(partition.topic, partition.partition) for partition in assigned],
        )


# --- the process ------------------------------------------------------------------------------------------------------

KINDS: Final[Mapping[str, Callable[[Client], None]]] = {
    "produce": produce,
    "rejected": produce_rejected,
    "transact": transact,
    "transform": transform,
    "committed": lambda client: read_all(client, "committed"),
    "uncommitted": lambda client: read_all(client, "uncommitted"),
    "watermarks": watch_watermarks,
    "classic-group": lambda client: read_in_group(client, group="classic", topic=INPUT, protocol="classic"),
    "consumer-group": lambda client: read_in_group(client, group="consumer", topic=TRANSACTIONS, protocol="consumer"),
    "aiokafka-group": lambda client: read_with_aiokafka(client, group="aiokafka", topic=TRANSACTIONS),
}


def main() -> None:
    """Run the clients of the command line until SIGTERM."""
    path, connection, rate, *clients = sys.argv[1:]
    history = History(Path(path))
    running: list[tuple[Client, threading.Thread]] = []
    for text in clients:
        kind, number = text.split(":")
        client = Client(int(number), json.loads(connection), int(rate), history)
        running.append((client, threading.Thread(target=_run, args=(kind, client), name=text)))

    def stop(_signal: int, _frame: object) -> None:
        for client, _ in running:
            client.stopping.set()

    signal.signal(signal.SIGTERM, stop)
    faulthandler.register(signal.SIGUSR1)
    for _, thread in running:
        thread.start()
    for _, thread in running:
        while thread.is_alive():  # a join without a time-out would not let the signal through
            thread.join(0.2)


def _run(kind: str, client: Client) -> None:
    client.history.write("open", client=client.number, kind=kind)
    try:
        KINDS[kind](client)
    except Exception:
        log.exception("the client failed", extra={"kind": kind})
        os._exit(1)  # the run fails, and at once
    client.history.write("close", client=client.number, kind=kind)


if __name__ == "__main__":
    main()
