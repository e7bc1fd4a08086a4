"""One run: a cluster, its clients, and faults for some minutes; then healing, the last reads and the check."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.chaos.checker import Report, check_directory
from tests.chaos.clients import GROUPS, ClientProcesses
from tests.chaos.cluster import INTERNAL_PARTITIONS, ChaosCluster
from tests.chaos.faults import FaultInjector
from tests.chaos.history import History, encode_value
from tests.chaos.network import BROKER
from tests.chaos.replicas import Comparison, compare_replicas, producer_epoch
from tests.chaos.topics import INPUT, INTERNAL, TOPICS, mixed_replicas
from tests.chaos.workloads import CONNECTION, CONSUMER, Client

HEAL_S: Final = 30.0
MIN_ISR_KEPT: Final = "NOT_ENOUGH_REPLICAS, read"
_PATIENCE_S: Final = 180.0
_READS_PER_S: Final = 10_000
"""The last reader may be this slow: an overloaded machine read 80,000 records in a second."""
_TOPIC_BYTES_MAX: Final = 200_000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is to do."""

    directory: Path
    seed: int
    seconds: float
    faults_max: int = 1_000_000
    kinds: list[str] = field(default_factory=list)
    """Which faults; all if empty."""
    targets: list[str] = field(default_factory=list)
    """Whom they meet; all roles if empty."""
    rate: int = 1500
    program: Sequence[str] = ("core_broker",)
    quorum: str | None = None
    """The kind of the quorum in a mixed cluster; None for three brokers of ours."""
    uses_namespaces: bool = False
    """Whether the kernel cuts connections instead of our proxies."""
    is_secure: bool = False
    """Whether all parties use TLS and SASL."""
    clients: Sequence[str] = tuple(GROUPS)
    probes: bool = True


@dataclass(slots=True, kw_only=True)
class Result:
    """What a run showed."""

    report: Report
    comparison: Comparison
    healed_after_s: float | None
    failover_s: float
    """How long a failover may take."""
    failed_clients: list[str]
    probe: str


def run(plan: Plan, say: Say) -> Result:
    """Run a plan; its directory keeps the histories and the brokers' logs."""
    shutil.rmtree(plan.directory, ignore_errors=True)
    plan.directory.mkdir(parents=True)
    with (
        History(plan.directory / "faults.jsonl") as history,
        ChaosCluster(
            plan.directory,
            seed=plan.seed,
            program=plan.program,
            quorum=plan.quorum,
            uses_namespaces=plan.uses_namespaces,
            is_secure=plan.is_secure,
        ) as cluster,
    ):
        history.write("plan", seed=plan.seed, seconds=plan.seconds, kinds=plan.kinds, rate=plan.rate)
        create_topics(cluster)
        clients = ClientProcesses(plan.directory, cluster.connection, rate=plan.rate)
        try:
            clients.start(plan.clients)
            injector = FaultInjector(cluster, clients, history, seed=plan.seed, kinds=plan.kinds, targets=plan.targets)
            time.sleep(3)
            _inject(plan, injector, clients, say)
            return _finish(plan, cluster, clients, injector, history, say)
        finally:
            clients.kill()


def create_topics(cluster: ChaosCluster) -> None:
    """Create the topics of the workloads, with three replicas of which two must have every record."""
    config = {"max.message.bytes": str(_TOPIC_BYTES_MAX), "min.insync.replicas": "2"}
    if cluster.is_mixed:
        topics = _mixed_topics(config)
    else:
        topics = [NewTopic(name, count, 3, config=config) for name, count in TOPICS.items()]
    for future in cluster.admin.create_topics(topics, operation_timeout=30).values():
        future.result(30)


def _mixed_topics(config: dict[str, str]) -> list[NewTopic]:
    """The same topics and the internal ones, each with replicas on both kinds of brokers."""
    stored = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
    wanted = [(name, count, config) for name, count in TOPICS.items()]
    wanted += [(name, INTERNAL_PARTITIONS, stored) for name in INTERNAL]
    return [
        NewTopic(name, count, replica_assignment=mixed_replicas(count, first=number), config=settings)
        for number, (name, count, settings) in enumerate(wanted)
    ]


def _inject(plan: Plan, injector: FaultInjector, clients: ClientProcesses, say: Say) -> None:
    started = time.monotonic()
    count = 0
    while count < plan.faults_max and time.monotonic() - started < plan.seconds:
        began = time.monotonic()
        what = injector.inject()
        clients.check()
        count += 1
        passed = time.monotonic() - started
        say(f"{passed:6.0f} s of {plan.seconds:.0f}  fault {count:4d}  {what}  ({time.monotonic() - began:.1f} s)")


def _finish(
    plan: Plan,
    cluster: ChaosCluster,
    clients: ClientProcesses,
    injector: FaultInjector,
    history: History,
    say: Say,
) -> Result:
    """Heal, stop the clients in the order in which their records flow, read everything, compare the files."""
    cluster.network.heal()
    began = time.monotonic()
    is_healed = injector.wait_until_healthy(_PATIENCE_S)
    healed_after_s = time.monotonic() - began if is_healed else None
    say(f"all replicas in sync after {healed_after_s} s" if is_healed else "the replicas are not in sync")
    present = [name for name in plan.clients if name in ("producers", "transactions")]
    failed = clients.stop(present)
    if "transform" in plan.clients:
        say("waiting until the whole input is transformed")
        _wait_until_transformed(cluster, clients)
    failed += clients.stop([name for name in plan.clients if name not in present])
    say("reading everything again")
    with History(plan.directory / "final.jsonl") as reads:
        for isolation in ("uncommitted", "committed"):
            read_to_end(Client(99, cluster.connection, 0, reads), isolation)
    probe = probe_min_isr(cluster, history) if plan.probes else ""
    if plan.probes:
        injector.wait_until_healthy(_PATIENCE_S)
    high_watermarks, replicas = end_offsets(cluster), cluster.replicas()
    for node in cluster:
        node.kill()
    say("comparing the replicas and checking the histories")
    directories = {node.node_id: node.data for node in cluster}
    report = check_directory(plan.directory)
    report.excuse_resent(
        lambda key, offset: producer_epoch(cluster[replicas[key][0]].data, f"{key[0]}-{key[1]}", offset)
    )
    return Result(
        report=report,
        comparison=compare_replicas(directories, high_watermarks, replicas),
        healed_after_s=healed_after_s,
        failover_s=cluster.failover_s,
        failed_clients=failed,
        probe=probe,
    )


def _wait_until_transformed(cluster: ChaosCluster, clients: ClientProcesses) -> None:
    consumer = Consumer({**CONSUMER, **cluster.connection, "group.id": "transform"})
    partitions = [TopicPartition(INPUT, number) for number in range(TOPICS[INPUT])]
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            committed = consumer.committed(partitions, timeout=10)
            ends = [consumer.get_watermark_offsets(partition, timeout=10)[1] for partition in partitions]
        except KafkaException:
            continue
        if [found.offset for found in committed] == ends:
            break
        clients.check([name for name in GROUPS if name.startswith("transform")])
        time.sleep(0.5)
    consumer.close()


def read_to_end(client: Client, isolation: str, *, patience_s: float = _PATIENCE_S) -> None:
    """Read all topics from beginning to end, as the last reader; it goes on as long as records come."""
    consumer = client.consumer(**{"isolation.level": f"read_{isolation}", "enable.partition.eof": True})
    partitions = [TopicPartition(topic, number, 0) for topic, count in TOPICS.items() for number in range(count)]
    left = {(partition.topic, partition.partition) for partition in partitions}
    records = sum(consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions)
    consumer.assign(partitions)
    deadline = time.monotonic() + patience_s
    latest = deadline + records / _READS_PER_S
    while left and time.monotonic() < min(deadline, latest):
        messages = consumer.consume(5000, 0.5)
        client.write_reads(f"final-{isolation}", isolation, messages, final=True)
        for message in messages:
            error = message.error()
            if error is None:
                deadline = time.monotonic() + patience_s
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard((message.topic() or "", message.partition() or 0))
    consumer.close()
    if left:
        client.history.write("unfinished", isolation=isolation, partitions=sorted(left))


def end_offsets(cluster: ChaosCluster) -> dict[tuple[str, int], int]:
    """The high watermarks of all partitions, those of internal topics too."""
    consumer = Consumer({**CONSUMER, **cluster.connection, "group.id": "none"})
    found = {}
    for topic, partition in cluster.leaders():
        found[topic, partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
    consumer.close()
    return found


def probe_min_isr(cluster: ChaosCluster, history: History) -> str:
    """S11: with one in-sync replica left, writes with acks=all are refused and reads go on.

    The followers lose the leader as a broker only: without a majority of controllers no in-sync replica could leave.
    """
    isolated: int | None = None
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        leader = cluster.leaders().get((INPUT, 0))
        if leader not in (None, isolated):  # the first one, or the preferred one, which may take over at any time
            isolated = leader
            cluster.network.heal()
            pairs = [(leader, other) for other in cluster.members if other != leader]
            cluster.network.cut([*pairs, *(pair[::-1] for pair in pairs)], [BROKER])
            _write_once(cluster, acks="1")  # a follower that has everything is in sync, reachable or not
        if len(cluster.in_sync(INPUT, 0)) == 1:
            break
        time.sleep(0.2)
    written = _write_once(cluster, acks="all")
    consumer = Consumer({**CONSUMER, **cluster.connection, "group.id": "none"})
    consumer.assign([TopicPartition(INPUT, 0, 0)])
    read = consumer.consume(1, 10)
    consumer.close()
    cluster.network.heal()
    found = f"{written}, {'read' if read else 'not read'}"
    history.write("probe", rule="S11", ok=found == MIN_ISR_KEPT, what=f"one in-sync replica left: {found}")
    return found


def _write_once(cluster: ChaosCluster, *, acks: str) -> str:
    """Try to write a record; what became of it."""
    answers: list[str] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        answers.append("acknowledged" if error is None else error.name())

    settings = {**CONNECTION, **cluster.connection, "acks": acks, "retries": 0}
    producer = Producer(settings)
    producer.produce(INPUT, encode_value(0), partition=0, on_delivery=on_delivery)
    producer.flush(30)
    return answers[0] if answers else "no answer"
