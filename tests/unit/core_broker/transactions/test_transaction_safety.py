"""Random clients of both protocols, zombies, lost answers, time-outs and crashes, against what transactions promise."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core_broker.errors import BrokerError, ErrorCode
from core_broker.transactions.coordinator import TransactionCoordinator
from core_broker.transactions.markers import MarkerRequest
from core_broker.transactions.transaction import TRANSACTION_V0, TRANSACTION_V2, Producer, TransactionState
from tests.support.fake_transaction_log import STATE_PARTITIONS, TransactionWorld, let_others_run, settled

T = TypeVar("T")

TRANSACTIONAL_IDS = ("alpha", "beta")
TOPIC = "orders"
PARTITIONS = 3
TIMEOUT_MS = 1000

_COMPLETED = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}
"""Markers are written in the background, so these count as the same here."""


class DataPartition:
    """A partition as far as transactions go: records belong to a token until a marker decides about it."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: defaultdict[int, set[int]] = defaultdict(set)
        self.committed: set[int] = set()
        self.aborted: set[int] = set()

    def write(self, producer: Producer, token: int) -> None:
        """Append a record; a fenced epoch is refused, as by the log."""
        if producer.epoch < self.epochs.get(producer.producer_id, -1):
            return
        self.epochs[producer.producer_id] = producer.epoch
        self.open[producer.producer_id].add(token)

    def end(self, marker: MarkerRequest) -> ErrorCode:
        """Apply a marker, under the same checks as the log."""
        known = self.epochs.get(marker.producer_id, -1)
        if marker.producer_epoch < known or (marker.transaction_version >= 2 and marker.producer_epoch == known):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.epochs[marker.producer_id] = marker.producer_epoch
        (self.committed if marker.commit else self.aborted).update(self.open.pop(marker.producer_id, ()))
        return ErrorCode.NONE


class Client:
    """A producer process: what it believes, and what it was told."""

    def __init__(self, transactional_id: str, version: int) -> None:
        self.transactional_id = transactional_id
        self.version = version
        self.producer: Producer | None = None
        self.token: int | None = None
        """The transaction it is in, once something was written."""
        self.ending: bool | None = None
        """The decision it has asked for without having seen an answer yet."""
        self.is_replaced = False


class Transactions(RuleBasedStateMachine):
    """Clients do what clients do; the promises are checked after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = TransactionWorld()
        self.world.topics.write_marker = self.write_marker  # type: ignore[method-assign] # the fake's edge
        self.data = [DataPartition() for _ in range(PARTITIONS)]
        self.clients = [
            Client(transactional_id, version)
            for transactional_id in TRANSACTIONAL_IDS
            for version in (TRANSACTION_V0, TRANSACTION_V2, TRANSACTION_V2)
        ]
        self.tokens = 0
        self.told: dict[int, bool] = {}
        self.handed_out: set[tuple[str, Producer]] = set()
        self.seen: dict[str, tuple[int, int, set[int]]] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.coordinator: TransactionCoordinator
        self.task: asyncio.Task[None]

    def run(self, coroutine: Coroutine[None, None, T]) -> T:
        return self.runner.run(coroutine)

    async def write_marker(self, topic: str, partition: int, marker: MarkerRequest) -> ErrorCode:
        await self.gate.wait()
        return self.data[partition].end(marker)

    # -- the coordinator comes and goes --------------------------------------------------------------------------------

    @initialize()
    def start(self) -> None:
        self.run(self._start())

    async def _start(self) -> None:
        self.coordinator = self.world.coordinator()
        self.task = asyncio.get_running_loop().create_task(self.coordinator.run())
        await let_others_run()

    async def _stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    @rule()
    def crash(self) -> None:
        self.run(self._stop())
        self.run(self._start())

    @rule()
    def markers_get_stuck(self) -> None:
        self.gate.clear()

    @rule()
    def markers_flow_again(self) -> None:
        self.gate.set()
        self.run(let_others_run())

    @rule(index=st.integers(0, STATE_PARTITIONS - 1), is_in_log=st.booleans())
    def next_append_fails(self, index: int, is_in_log: bool) -> None:
        partition = self.world.state.by_index[index]
        (partition.late_failures if is_in_log else partition.failures).append(ErrorCode.REQUEST_TIMED_OUT)

    @rule(milliseconds=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS + 1]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.clock.advance(milliseconds)
        self.run(self.coordinator.abort_timed_out())
        self.run(let_others_run())

    # -- clients -------------------------------------------------------------------------------------------------------

    @rule(index=st.integers(0, 5), goes_on=st.booleans())
    def init(self, index: int, goes_on: bool) -> None:
        client = self.clients[index]
        expected = client.producer if goes_on and not client.is_replaced else None
        try:
            producer = self.run(
                self.coordinator.init_producer_id(client.transactional_id, TIMEOUT_MS, expected=expected)
            )
        except BrokerError:
            return
        if expected is None:
            assert (client.transactional_id, producer) not in self.handed_out
        self.handed_out.add((client.transactional_id, producer))
        for other in self.clients:
            if other.transactional_id == client.transactional_id:
                other.is_replaced = True
        client.producer, client.token, client.ending, client.is_replaced = producer, None, None, False

    @rule(index=st.integers(0, 5), partition=st.integers(0, PARTITIONS - 1))
    def write(self, index: int, partition: int) -> None:
        """A client writes; if another has replaced it, that must fail."""
        client = self.clients[index]
        if client.producer is None or client.ending is not None:
            return
        code = self.run(self._add(client, client.producer, partition))
        if client.is_replaced:
            assert code is not ErrorCode.NONE
        if code is not ErrorCode.NONE:
            return
        if client.token is None:
            self.tokens += 1
            client.token = self.tokens
        self.data[partition].write(client.producer, client.token)

    async def _add(self, client: Client, producer: Producer, partition: int) -> ErrorCode:
        coordinator, transactional_id = self.coordinator, client.transactional_id
        if client.version == TRANSACTION_V0:
            try:
                await coordinator.add_partitions(
                    transactional_id, producer, [(TOPIC, partition)], client_version=TRANSACTION_V0
                )
            except BrokerError as error:
                return error.code
        is_new = client.version == TRANSACTION_V2
        return await coordinator.verify_or_add_partition(transactional_id, *producer, TOPIC, partition, add=is_new)

    @rule(index=st.integers(0, 5), commit=st.booleans(), loses_answer=st.booleans())
    def end(self, index: int, commit: bool, loses_answer: bool) -> None:
        client = self.clients[index]
        if client.producer is None or (client.token is None and client.version == TRANSACTION_V0):
            return
        if client.ending is not None:
            commit = client.ending  # A retry asks for the same again.
        client.ending = commit
        answer = self._ask_to_end(client, commit)
        if isinstance(answer, ErrorCode):
            assert not client.is_replaced or answer is not ErrorCode.NONE
            if not answer.retriable:
                client.ending = client.token = client.producer = None
            return
        assert not client.is_replaced
        if client.token is not None:
            assert self.told.setdefault(client.token, commit) is commit
        if loses_answer:
            return
        assert client.version == TRANSACTION_V2 or answer == client.producer
        assert client.version == TRANSACTION_V0 or answer != client.producer
        client.producer, client.token, client.ending = answer, None, None

    def _ask_to_end(self, client: Client, commit: bool) -> Producer | ErrorCode:
        assert client.producer is not None
        try:
            return self.run(
                self.coordinator.end(
                    client.transactional_id, client.producer, commit=commit, client_version=client.version
                )
            )
        except BrokerError as error:
            return error.code

    @rule(index=st.integers(0, 5), commit=st.booleans())
    def retried_end_gets_the_same_answer(self, index: int, commit: bool) -> None:
        client = self.clients[index]
        if client.producer is None or client.token is None or client.ending is not None or not self.gate.is_set():
            return
        answer = self._ask_to_end(client, commit)
        if isinstance(answer, ErrorCode):
            if not answer.retriable:
                client.producer = client.token = None
            else:
                client.ending = commit
            return
        assert self.told.setdefault(client.token, commit) is commit
        self.run(settled(self.coordinator))
        assert self._ask_to_end(client, commit) == answer
        client.producer, client.token = answer, None

    @rule(
        index=st.integers(0, 5), age=st.integers(1, 3), commit=st.booleans(), partition=st.integers(0, PARTITIONS - 1)
    )
    def delayed_request_of_an_earlier_epoch(self, index: int, age: int, commit: bool, partition: int) -> None:
        """The network delivers what a client sent long ago: it must not change anything."""
        client = self.clients[index]
        if client.producer is None or client.producer.epoch < age or client.ending is not None:
            return
        late = Producer(client.producer.producer_id, client.producer.epoch - age)
        before = self._state_of(client.transactional_id)
        assert self.run(self._add(client, late, partition)) is not ErrorCode.NONE
        try:
            answer = self.run(
                self.coordinator.end(client.transactional_id, late, commit=commit, client_version=client.version)
            )
        except BrokerError:
            pass
        else:
            assert client.version == TRANSACTION_V2
            assert not client.is_replaced or answer != client.producer
        assert self._state_of(client.transactional_id) == before

    # -- the promises --------------------------------------------------------------------------------------------------

    @invariant()
    def a_transaction_is_committed_or_aborted_never_both(self) -> None:
        committed = set().union(*(partition.committed for partition in self.data))
        aborted = set().union(*(partition.aborted for partition in self.data))
        assert not committed & aborted
        assert all(decision or token not in committed for token, decision in self.told.items())
        assert all(not decision or token not in aborted for token, decision in self.told.items())

    @invariant()
    def epochs_never_go_back(self) -> None:
        for transactional_id in TRANSACTIONAL_IDS:
            state = self._state_of(transactional_id)
            if state is None:
                continue
            producer_id, epoch, earlier = self.seen.get(transactional_id, (state[0], state[1], set[int]()))
            if state[0] == producer_id:
                assert state[1] >= epoch
            else:
                assert state[0] not in earlier
            self.seen[transactional_id] = (state[0], state[1], earlier | {producer_id})

    def _state_of(self, transactional_id: str) -> tuple[int, int, TransactionState] | None:
        if not hasattr(self, "coordinator"):
            return None
        try:
            current = self.coordinator.describe(transactional_id)
        except BrokerError:
            return None
        return current.producer_id, current.producer_epoch, _COMPLETED.get(current.state, current.state)

    @precondition(lambda self: self.gate.is_set())
    @rule()
    def nothing_stays_open_past_its_time_out(self) -> None:
        for partition in self.world.state.by_index:
            partition.failures.clear()
            partition.late_failures.clear()
        self.world.clock.advance(TIMEOUT_MS + 1)
        self.run(self.coordinator.abort_timed_out())
        self.run(settled(self.coordinator))
        assert self.coordinator.open_count == 0
        assert not any(tokens for partition in self.data for tokens in partition.open.values())

    def teardown(self) -> None:
        if not hasattr(self, "coordinator"):
            self.runner.close()
            return
        self.gate.set()
        self.nothing_stays_open_past_its_time_out()
        self.a_transaction_is_committed_or_aborted_never_both()
        self.run(self._stop())
        self.runner.close()


TestTransactions = pytest.mark.filterwarnings("ignore::ResourceWarning")(Transactions.TestCase)
TestTransactions.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
