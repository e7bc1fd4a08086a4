"""Transactions of version 2 (KIP-890), as the newest Java clients speak them, and what protects the older ones."""

from collections.abc import Iterator

import pytest

from core_broker.errors import ErrorCode
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import read_to_end
from tests.support.transactor import Transactor

PARTITIONS = 3
FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}


@pytest.fixture
def transactor(broker: BrokerProcess, name: str) -> Iterator[Transactor]:
    create_topic(broker, name, partitions=PARTITIONS)
    with Transactor(broker.bootstrap, name, partitions=PARTITIONS) as found:
        found.init()
        yield found


def committed(broker: BrokerProcess, topic: str) -> list[bytes]:
    return sorted(record.value or b"" for record in read_to_end(broker.bootstrap, topic, isolation="read_committed"))


def test_partitions_join_a_transaction_by_being_written_to(broker: BrokerProcess, transactor: Transactor) -> None:
    for partition in range(PARTITIONS):
        transactor.produce_soon(b"%d" % partition, partition=partition)
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"0", b"1", b"2"])


def test_every_transaction_has_an_epoch_of_its_own(broker: BrokerProcess, transactor: Transactor) -> None:
    epochs = []
    for number in range(4):
        transactor.produce_soon(b"%d" % number)
        epochs.append(transactor.epoch)
        transactor.end_and_go_on(commit=number % 2 == 0)
    assert epochs == [epochs[0] + n for n in range(4)]
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"0", b"2"])


def test_a_late_record_of_an_ended_transaction_is_refused(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"in time")
    old = transactor.epoch
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"in time"])
    transactor.sequences = {0: 1}
    assert transactor.produce(b"late", epoch=old) in FENCED
    transactor.sequences = {}
    transactor.produce_soon(b"next")
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"in time", b"next"])


def test_a_late_end_cannot_end_the_next_transaction(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"one")
    old = transactor.epoch
    transactor.end_and_go_on(commit=True)
    transactor.produce_soon(b"two")
    assert transactor.end(commit=False, epoch=old).error_code in FENCED
    transactor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"one", b"two"])


def test_an_end_that_is_sent_twice_is_answered_twice(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"once")
    first = transactor.end(commit=True)
    again = transactor.end(commit=True)
    assert (first.error_code, again.error_code) == (0, 0)
    assert (again.producer_id, again.producer_epoch) == (first.producer_id, first.producer_epoch)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"once"])


def test_a_new_producer_fences_the_old_one(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"zombie")
    with Transactor(broker.bootstrap, transactor.name, partitions=PARTITIONS) as successor:
        successor.init()
        assert successor.producer_id == transactor.producer_id
        assert successor.epoch > transactor.epoch
        assert transactor.produce(b"zombie again") in FENCED
        assert transactor.end(commit=True).error_code in FENCED
        successor.produce_soon(b"successor")
        successor.end_and_go_on(commit=True)
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"successor"])


def test_offsets_join_a_transaction_by_being_committed_in_it(broker: BrokerProcess, transactor: Transactor) -> None:
    transactor.produce_soon(b"record")
    assert transactor.commit_offset(42) == 0
    assert transactor.fetch_offset() == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    transactor.end_and_go_on(commit=True)
    eventually(transactor.fetch_offset, lambda found: found == (0, 42))
    assert transactor.commit_offset(99) == 0
    transactor.end_and_go_on(commit=False)
    eventually(transactor.fetch_offset, lambda found: found == (0, 42))


def test_an_older_client_must_add_a_partition_before_it_writes(broker: BrokerProcess, transactor: Transactor) -> None:
    code = eventually(
        lambda: transactor.produce(b"unannounced", version=9), lambda code: code != ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert code == ErrorCode.INVALID_TXN_STATE
    assert transactor.add_partition() == 0
    assert transactor.produce(b"announced", version=9) == 0
    assert transactor.end(commit=True, version=1).error_code == 0
    eventually(lambda: committed(broker, transactor.name), lambda values: values == [b"announced"])


def test_ending_what_was_never_begun_is_refused_to_older_clients(transactor: Transactor) -> None:
    assert transactor.end(commit=True, version=1).error_code == ErrorCode.INVALID_TXN_STATE


def test_an_empty_transaction_can_be_aborted(transactor: Transactor) -> None:
    assert transactor.end(commit=False).error_code == 0
