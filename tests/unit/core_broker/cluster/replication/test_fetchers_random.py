"""Three brokers in random trouble: nothing acknowledged is lost, and in the end all logs are equal.

Elections, fences, restarts, lost and delayed messages, metadata that arrives late: all in an order given by a seed. The
controller only elects members of the ISR, and two replicas must have a record before it is acknowledged.
"""

import asyncio
import random
from pathlib import Path

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.service.clock import ManualClock
from tests.support.replica_cluster import ReplicaBroker, ReplicaCluster, append, eventually

STEPS = 300
EXPECTED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
}


class Trouble:
    """A cluster, and the random events that happen to it."""

    def __init__(self, cluster: ReplicaCluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.acked: list[bytes] = []
        self.writes: list[asyncio.Task[None]] = []
        self.high_watermarks: dict[ReplicaBroker, int] = {}
        self.values = 0
        self.events = (
            [self.write] * 8
            + [self.pass_messages] * 30
            + [self.deliver] * 16
            + [self.unfence] * 3
            + [self.elect, self.fence, self.advance_time, self.check_isr]
        )

    async def run(self) -> None:
        self.cluster.gates = []
        self.cluster.is_manual = True
        self.cluster.start()
        for _ in range(STEPS):
            if self.random.random() < 0.01:
                await self.restart()
            else:
                self.random.choice(self.events)()
            for _ in range(self.random.randrange(4)):
                await asyncio.sleep(0)
            self.check()

    # -- events --

    def some_broker(self) -> ReplicaBroker:
        return self.cluster[self.random.choice((1, 2, 3))]

    def write(self) -> None:
        leaders = [broker for broker in self.cluster.brokers.values() if broker.partition.is_leader]
        if not leaders:
            return
        broker = self.random.choice(leaders)
        values = [b"%d," % (self.values + n) for n in range(self.random.choice((1, 1, 3)))]
        self.values += len(values)
        try:
            last = append(broker, *values, acks_all=True)
        except BrokerError as error:
            if error.code not in EXPECTED:
                raise
            return
        self.writes.append(asyncio.create_task(self.acknowledge(broker, last, values)))

    async def acknowledge(self, broker: ReplicaBroker, last: int, values: list[bytes]) -> None:
        try:
            await broker.partition.wait_committed(last, timeout_ms=60_000)
            broker.partition.check_min_isr_after_append()
        except BrokerError as error:
            if error.code not in EXPECTED:
                raise
            return
        self.acked.extend(values)

    def pass_messages(self) -> None:
        gates = self.cluster.gates
        for _ in range(self.random.randrange(4)):
            if gates:
                gate = gates.pop(self.random.randrange(len(gates)))
                if not gate.done():
                    gate.set_result(self.random.random() < 0.97)

    def deliver(self) -> None:
        self.some_broker().apply_next()

    def elect(self) -> None:
        now = self.cluster.description
        candidates = [member for member in now.isr if not self.cluster.image.brokers[member].is_fenced]
        if candidates:
            self.cluster.change(leader=self.random.choice(candidates))

    def fence(self) -> None:
        broker_id = self.some_broker().broker_id
        self.cluster.fence(broker_id)
        self.remove_from_isr(broker_id)

    def remove_from_isr(self, broker_id: int) -> None:
        """What the controller does when a broker is fenced: the last member stays, without a leader."""
        now = self.cluster.description
        rest = [member for member in now.isr if member != broker_id]
        live = [member for member in rest if not self.cluster.image.brokers[member].is_fenced]
        if broker_id in now.isr and rest and live:
            is_leader = now.leader_id == broker_id
            self.cluster.change(isr=rest, leader=self.random.choice(live) if is_leader else None)
        elif now.leader_id == broker_id:
            self.cluster.change(leader=-1)

    def unfence(self) -> None:
        broker_id = self.some_broker().broker_id
        if self.cluster.image.brokers[broker_id].is_fenced:
            self.cluster.fence(broker_id, fenced=False)
            if self.cluster.description.leader_id < 0 and broker_id in self.cluster.description.isr:
                self.cluster.change(leader=broker_id)

    def advance_time(self) -> None:
        assert isinstance(self.cluster.clock, ManualClock)
        self.cluster.clock.advance(self.random.randrange(20_000))

    def check_isr(self) -> None:
        self.some_broker().partition.check_isr()

    async def restart(self) -> None:
        broker = self.some_broker()
        if self.random.random() < 0.5:
            broker.logs.checkpoint()
        self.high_watermarks.pop(broker, None)
        await self.cluster.crash(broker.broker_id)
        self.remove_from_isr(broker.broker_id)

    # -- promises --

    def check(self) -> None:
        """High watermarks never go back, and below them all replicas have the same records."""
        brokers = list(self.cluster.brokers.values())
        for broker in brokers:
            high_watermark = broker.partition.high_watermark
            assert high_watermark >= self.high_watermarks.get(broker, 0)
            self.high_watermarks[broker] = high_watermark
        for one, other in zip(brokers, brokers[1:] + brokers[:1], strict=True):
            committed = min(one.partition.high_watermark, other.partition.high_watermark)
            first, second = one.content(), other.content()
            assert [b for b in first if b[0] < committed] == [b for b in second if b[0] < committed]

    async def heal(self) -> None:
        """End all trouble, and wait until the logs are equal."""
        cluster = self.cluster
        gates, cluster.gates = cluster.gates or [], None
        for gate in gates:
            if not gate.done():
                gate.set_result(True)
        cluster.is_manual = False
        for broker_id in cluster.brokers:
            if cluster.image.brokers[broker_id].is_fenced:
                cluster.fence(broker_id, fenced=False)
        live = cluster.description.isr
        cluster.change(leader=cluster.description.leader_id if cluster.description.leader_id > 0 else live[0])
        assert isinstance(cluster.clock, ManualClock)
        cluster.clock.advance(10_000)
        await eventually(self.is_healed)
        await asyncio.gather(*self.writes)

    def is_healed(self) -> bool:
        cluster = self.cluster
        assert isinstance(cluster.clock, ManualClock)
        cluster.clock.advance(1)
        leader = cluster.leader
        return set(cluster.description.isr) == {1, 2, 3} and all(
            broker.content() == leader.content() and broker.partition.high_watermark == leader.partition.log.end_offset
            for broker in cluster.brokers.values()
        )


@pytest.mark.parametrize("seed", range(12))
async def test_nothing_acknowledged_is_lost_and_the_logs_agree_in_the_end(tmp_path: Path, seed: int) -> None:
    cluster = ReplicaCluster(tmp_path, replica_fetch_wait_max_ms=0, replica_fetch_backoff_ms=1)
    cluster.create_topic(min_insync_replicas="2")
    trouble = Trouble(cluster, seed)
    try:
        await trouble.run()
        await trouble.heal()
        content = b"".join(batch for _, _, batch in cluster.leader.content())
        assert [value for value in trouble.acked if value not in content] == []
    finally:
        await cluster.close()
