"""Transactional producers and groups of the simulated cluster, and what must hold for transactions and offsets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from core_broker.errors import ErrorCode
from core_broker.peers.peers import Address, PeerError
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import (
    end_txn,
    fetch,
    find_coordinator,
    init_producer_id,
    offset_commit,
    offset_fetch,
    txn_offset_commit,
)
from core_broker.protocol.records import BatchHeader, Record, build_batch, parse_batches, read_records
from tests.simulation.clients import ACKS_ALL, Client, Key

if TYPE_CHECKING:
    from tests.simulation.cluster import World

_GROUP: Final = 0
_TRANSACTION: Final = 1
_COMMIT_MARKER: Final = 1
_TRIES_MAX: Final = 8

Place = tuple[str, int]
"""Topic and partition."""


class TransactionId(NamedTuple):
    """A transaction: the client's number, and how many it began before."""

    client: int
    number: int


class Transaction(msgspec.Struct):
    """What a client knows about its transaction."""

    values: dict[Place, list[bytes]] = {}
    is_commit_sent: bool = False
    is_committed: bool = False
    """Whether the coordinator has said so."""
    has_offset: bool = False
    """Whether it also commits an offset of its group, which is its number."""


class Transactions:
    """All transactions of a run, and the checks of what readers see of them."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.all: dict[TransactionId, Transaction] = {}

    def check_read(self, key: Key, records: bytes, headers: Sequence[BatchHeader], data: fetch.PartitionData) -> None:
        """A read-committed consumer sees no record of a transaction whose commit was not asked for."""
        aborted = sorted((found.first_offset, found.producer_id) for found in data.aborted_transactions or ())
        ignored: set[int] = set()
        for header in headers:
            if header.last_offset >= data.last_stable_offset:
                self.world.fail(f"S5: offset {header.last_offset} is read, stable are {data.last_stable_offset}")
            while aborted and aborted[0][0] <= header.last_offset:
                ignored.add(aborted.pop(0)[1])
            if header.is_control:
                if not _is_commit(records, header):
                    ignored.discard(header.producer_id)
            elif header.is_transactional and header.producer_id not in ignored:
                for record in read_records(records, header):
                    found = transaction_of(record.value or b"")
                    if found is not None and not self.all[found].is_commit_sent:
                        self.world.fail(f"S5: a consumer read {record.value!r}, which was never to be committed")

    def check_end(self, logs: dict[Place, bytes]) -> None:
        """After everything healed: a transaction is visible in all its partitions, or in none, and only once."""
        visible = {place: self._visible(place, data) for place, data in logs.items()}
        for key, transaction in self.all.items():
            counts = {visible[place].count(value) for place, values in transaction.values.items() for value in values}
            text = f"{key}, commit sent {transaction.is_commit_sent}, acknowledged {transaction.is_committed}"
            if not counts <= {0} and not counts <= {1}:
                self.world.fail(f"S6: a transaction is visible in part: {text}")
            elif transaction.is_committed and 0 in counts:
                self.world.fail(f"S1: a committed transaction is lost: {text}")
            elif not transaction.is_commit_sent and 1 in counts:
                self.world.fail(f"S5: an aborted transaction is visible: {text}")

    def _visible(self, place: Place, data: bytes) -> list[bytes]:
        found: list[bytes] = []
        waiting: dict[int, list[bytes]] = {}
        for header in parse_batches(data):
            if header.is_control:
                values = waiting.pop(header.producer_id, [])
                found += values if _is_commit(data, header) else []
            elif header.is_transactional:
                values = [record.value or b"" for record in read_records(data, header)]
                waiting.setdefault(header.producer_id, []).extend(values)
        if waiting:
            self.world.fail(f"S6: transactions of {place} never end: {waiting}")
        return found


class Coordinated(Client):
    """A client of coordinators."""

    def __init__(self, world: "World", number: int) -> None:
        super().__init__(world, number)
        self.is_done = False
        self._coordinators: dict[tuple[int, str], Address] = {}

    async def ask(self, kind: int, key: str, request: Message) -> Message | None:
        """Send a request to a coordinator; None if there was no answer."""
        address = self._coordinators.get((kind, key))
        try:
            if address is None:
                wanted = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
                response = await self.call(self.any_broker(), wanted)
                assert isinstance(response, find_coordinator.FindCoordinatorResponse)
                found = response.coordinators[0]
                if found.error_code:
                    await self.pause(0.1)
                    return None
                address = self._coordinators[kind, key] = Address(found.host, found.port)
            return await self.call(address, request)
        except PeerError:
            self.forget(kind, key)
            await self.pause(0.05)
            return None

    def forget(self, kind: int, key: str) -> None:
        """Look up the coordinator again."""
        self._coordinators.pop((kind, key), None)

    async def fetch_offset(self, group: str, place: Place) -> int | None:
        """The committed offset of a group; None if there was no answer."""
        while place[0] not in self.topic_ids:
            await self.refresh()
        topic = offset_fetch.OffsetFetchRequestTopics(place[0], self.topic_ids[place[0]], [place[1]])
        wanted = offset_fetch.OffsetFetchRequestGroup(group, topics=[topic])
        request = offset_fetch.OffsetFetchRequest(groups=[wanted], require_stable=True)
        response = await self.ask(_GROUP, group, request)
        if response is None:
            return None
        assert isinstance(response, offset_fetch.OffsetFetchResponse)
        answer = response.groups[0]
        if answer.error_code or answer.topics[0].partitions[0].error_code:
            self.forget(_GROUP, group)
            await self.pause(0.05)
            return None
        return answer.topics[0].partitions[0].committed_offset


class TransactionalProducer(Coordinated):
    """Writes to several partitions, and commits an offset, in one transaction after the other."""

    def __init__(self, world: "World", number: int, places: list[Place]) -> None:
        super().__init__(world, number)
        self.places = places
        self.name = f"producer-{number}"
        self.group = f"group-{number}"
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[Place, int] = {}
        self._begun = 0

    async def run(self) -> None:
        """Run transactions for as long as the world wants load."""
        await self.refresh()
        while self.world.has_load:
            if self.producer_id < 0:
                await self._begin()
                continue
            await self._run_transaction()
            await self.pause(self.world.think_seconds * 4)
        await self._check_offset()
        self.is_done = True

    async def _begin(self) -> None:
        request = init_producer_id.InitProducerIdRequest(self.name, 60_000)
        response = await self.ask(_TRANSACTION, self.name, request)
        if response is None:
            return
        assert isinstance(response, init_producer_id.InitProducerIdResponse)
        if response.error_code:
            self.forget(_TRANSACTION, self.name)
            await self.pause(0.05)
            return
        self._continue_as(response.producer_id, response.producer_epoch)

    def _continue_as(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences = {}

    async def _run_transaction(self) -> None:
        self._begun += 1
        key = TransactionId(self.number, self._begun)
        transaction = self.world.transactions.all[key] = Transaction()
        is_complete = True
        for place in self.rng.sample(self.places, self.rng.randint(1, len(self.places))):
            values = [f"t:{self.number}:{self._begun}:{n}".encode() for n in range(self.rng.choice([1, 3]))]
            transaction.values[place] = values
            is_complete = is_complete and await self._send(place, values)
        if is_complete and self.rng.random() < 0.5:
            transaction.has_offset = True
            is_complete = await self._send_offset()
        if self.producer_id >= 0:
            await self._end(transaction, commit=is_complete and self.rng.random() < 0.8)

    async def _send(self, place: Place, values: list[bytes]) -> bool:
        """Whether the records are in the transaction."""
        now_ms = 1_700_000_000_000 + int(self.world.loop.time() * 1000)
        sequence = self._sequences.get(place, 0)
        batch = build_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        for _ in range(_TRIES_MAX):
            error, _ = await self.produce(place, bytes(batch), acks=ACKS_ALL, transactional_id=self.name)
            if error is ErrorCode.NONE:
                self._sequences[place] = sequence + len(values)
                self.world.count("acknowledged", len(values))
                return True
            if not error.retriable and error is not ErrorCode.NETWORK_EXCEPTION:
                self._note_error("Produce", error)
                return False
            await self.pause(0.05)
            await self.refresh()
        return False

    async def _send_offset(self) -> bool:
        """Whether the offset of the group is in the transaction."""
        name, index = self.places[0]
        partition = txn_offset_commit.TxnOffsetCommitRequestPartition(index, self._begun, committed_metadata=None)
        request = txn_offset_commit.TxnOffsetCommitRequest(
            self.name,
            self.group,
            self.producer_id,
            self.epoch,
            topics=[txn_offset_commit.TxnOffsetCommitRequestTopic(name, [partition])],
        )
        for _ in range(_TRIES_MAX):
            response = await self.ask(_GROUP, self.group, request)
            if response is None:
                continue
            assert isinstance(response, txn_offset_commit.TxnOffsetCommitResponse)
            error = ErrorCode(response.topics[0].partitions[0].error_code)
            if error is ErrorCode.NONE:
                return True
            if not error.retriable:
                self._note_error("TxnOffsetCommit", error)
                return False
            self.forget(_GROUP, self.group)
            await self.pause(0.05)
        return False

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        transaction.is_commit_sent = commit
        request = end_txn.EndTxnRequest(self.name, self.producer_id, self.epoch, commit)
        while not self.world.is_over:
            response = await self.ask(_TRANSACTION, self.name, request)
            if response is None:
                continue
            assert isinstance(response, end_txn.EndTxnResponse)
            error = ErrorCode(response.error_code)
            if error is ErrorCode.NONE:
                transaction.is_committed = commit
                self.world.count("transactions")
                self._continue_as(response.producer_id, response.producer_epoch)
                return
            if not error.retriable:
                self._note_error("EndTxn", error)
                self.producer_id = -1
                return
            self.forget(_TRANSACTION, self.name)
            await self.pause(0.05)

    def _note_error(self, what: str, error: ErrorCode) -> None:
        """An error after which the transaction is aborted, or the producer starts over."""
        self.world.note(f"{self.name} got {error.name} for {what}")
        if error is not ErrorCode.TRANSACTION_ABORTABLE:
            self.producer_id = -1

    async def _check_offset(self) -> None:
        """Take over from ourselves, which ends what is open; then the group has the offset of the last transaction."""
        self.producer_id = -1
        while self.producer_id < 0 and not self.world.is_over:
            await self._begin()
        offset = None
        while offset is None and not self.world.is_over:
            offset = await self.fetch_offset(self.group, self.places[0])
        if offset is None:
            return
        own = {key.number: found for key, found in self.world.transactions.all.items() if key.client == self.number}
        wanted = [number for number, found in own.items() if found.has_offset and found.is_committed]
        allowed = {number for number, found in own.items() if found.has_offset and found.is_commit_sent}
        if offset < max(wanted, default=-1) or (offset >= 0 and offset not in allowed):
            text = f"{self.group} has offset {offset}, committed were {wanted[-5:]}, perhaps {sorted(allowed)[-5:]}"
            self.world.fail(f"S6: {text}")


class GroupClient(Coordinated):
    """Commits rising offsets for a group, and reads them back."""

    def __init__(self, world: "World", number: int, place: Place) -> None:
        super().__init__(world, number)
        self.place = place
        self.group = f"group-{number}"
        self.sent = self.acknowledged = -1
        self._unanswered: set[int] = set()
        """Commits that may still arrive, after later ones."""

    async def run(self) -> None:
        """Commit for as long as the world wants load."""
        while self.place[0] not in self.topic_ids:
            await self.refresh()
        while self.world.has_load:
            if self.rng.random() < 0.7:
                await self._commit()
            else:
                await self._check()
            await self.pause(self.world.think_seconds)
        while not self.world.is_over and not await self._check():
            pass
        self.is_done = True

    async def _commit(self) -> None:
        self.sent += 1
        name, index = self.place
        partition = offset_commit.OffsetCommitRequestPartition(index, self.sent, committed_metadata=None)
        topic = offset_commit.OffsetCommitRequestTopic(name, self.topic_ids[name], [partition])
        request = offset_commit.OffsetCommitRequest(self.group, topics=[topic])
        response = await self.ask(_GROUP, self.group, request)
        if response is None:
            self._unanswered.add(self.sent)
            return
        assert isinstance(response, offset_commit.OffsetCommitResponse)
        if response.topics[0].partitions[0].error_code:
            self.forget(_GROUP, self.group)
            await self.pause(0.05)
            return
        self.acknowledged = self.sent
        self.world.count("offsets")

    async def _check(self) -> bool:
        """Whether the coordinator returned the offset."""
        offset = await self.fetch_offset(self.group, self.place)
        if offset not in (None, *self._unanswered) and not self.acknowledged <= (offset or 0) <= self.sent:
            text = f"{self.group} has offset {offset}, acknowledged was {self.acknowledged}, sent {self.sent}"
            self.world.fail(f"S12: {text}")
        return offset is not None


def transaction_of(value: bytes) -> TransactionId | None:
    """The transaction that wrote a value."""
    parts = value.split(b":")
    return TransactionId(int(parts[1]), int(parts[2])) if parts[0] == b"t" else None


def _is_commit(data: bytes, header: BatchHeader) -> bool:
    key = read_records(data, header)[0].key or b""
    return int.from_bytes(key[2:4], "big") == _COMMIT_MARKER


__all__ = ["GroupClient", "TransactionalProducer", "Transactions"]
