from collections.abc import Iterator, Mapping, Sequence

import pytest

from core_broker.client.consumer import TopicPartition
from core_broker.client.errors import Fenced, NotFound, Rejected
from core_broker.client.group_consumer import BEGINNING, END, AssignmentLost, Commit, GroupConsumer, NoCommittedOffset
from core_broker.client.producer import Producer
from core_broker.client.records import IncomingRecord, OutgoingRecord
from core_broker.client.settings import ClientSettings
from tests.support.admin import eventually

pytestmark = pytest.mark.processes

_PATIENCE_S = 60.0


class Member:
    """A consumer, and what its group did to it."""

    def __init__(
        self, cluster: ClientSettings, group: str, reset: str = "earliest", instance_id: str | None = None
    ) -> None:
        defaults: dict[str, str | int] = {"fetch.wait.max.ms": 50}
        if instance_id is not None:
            defaults["group.instance.id"] = instance_id
        self.consumer = GroupConsumer(
            cluster, group_id=group, defaults=defaults, properties={"auto.offset.reset": reset}
        )
        self.begins: dict[TopicPartition, int] = {}
        self.given: list[TopicPartition] = []
        self.taken: list[TopicPartition] = []

    def subscribe(self, *topics: str) -> None:
        self.consumer.subscribe(topics, starts=self._starts, revoked=self.taken.extend)

    def _starts(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        self.given += places
        return self.begins

    def read(self, count: int) -> list[IncomingRecord]:
        records: list[IncomingRecord] = []

        def so_far() -> list[IncomingRecord]:
            records.extend(self.consumer.read(count - len(records), timeout_ms=100))
            return records

        return eventually(so_far, lambda found: len(found) >= count, timeout_s=_PATIENCE_S, pause_s=0)

    def join(self) -> None:
        def has_joined() -> bool:
            self.consumer.read(1, timeout_ms=50)
            return self.consumer.has_joined

        eventually(has_joined, timeout_s=_PATIENCE_S, pause_s=0)


@pytest.fixture
def member(cluster: ClientSettings, name: str) -> Iterator[Member]:
    made = Member(cluster, name)
    yield made
    made.consumer.close()


@pytest.fixture
def written(cluster: ClientSettings, topic: str) -> str:
    """A topic with five records in its first partition."""
    with Producer(cluster) as producer:
        for number in range(5):
            record = OutgoingRecord(
                topic=topic, value=b"%d" % number, partition=0, timestamp_ms=1_700_000_000_000 + number
            )
            producer.send(record)
    return topic


def test_partitions_of_the_group_begin_where_the_caller_says(member: Member, written: str) -> None:
    member.begins = {(written, 0): 3}
    member.subscribe(written)
    assert [record.offset for record in member.read(2)] == [3, 4]
    assert sorted(member.given) == [(written, number) for number in range(4)]
    assert member.consumer.assigned == tuple(sorted(member.given))
    member.consumer.unsubscribe()
    assert member.consumer.assigned == ()


def test_what_the_group_takes_is_told_while_it_is_left(member: Member, written: str) -> None:
    """What is told later takes away what is assigned next, or lets a close stand still for ever."""
    member.subscribe(written)
    member.join()
    member.consumer.unsubscribe()
    assert sorted(member.taken) == [(written, number) for number in range(4)]
    member.consumer.assign({(written, 0): 2})
    assert [record.offset for record in member.read(3)] == [2, 3, 4]


def test_partitions_are_taken_away_for_a_new_member(
    cluster: ClientSettings, member: Member, written: str, name: str
) -> None:
    member.subscribe(written)
    member.join()
    other = Member(cluster, name)
    other.subscribe(written)

    def assigned() -> int:
        member.consumer.read(10, timeout_ms=20)
        other.consumer.read(10, timeout_ms=20)
        return len(other.consumer.assigned)

    eventually(assigned, lambda count: count == 2, timeout_s=_PATIENCE_S, pause_s=0)
    assert len(member.taken) == 4
    other.consumer.close()


def test_a_member_whose_instance_id_another_took_is_closed_without_an_error(
    cluster: ClientSettings, written: str, name: str
) -> None:
    older, newer = (Member(cluster, name, instance_id="one") for _ in range(2))
    older.subscribe(written)
    older.join()
    newer.subscribe(written)
    newer.join()

    def is_fenced() -> bool:
        try:
            older.consumer.read(1, timeout_ms=50)
        except Fenced:
            return True
        return False

    eventually(is_fenced, timeout_s=_PATIENCE_S, pause_s=0)
    older.consumer.close()
    assert [record.offset for record in newer.read(5)] == [0, 1, 2, 3, 4]
    newer.consumer.close()


def test_seek_right_after_assign(member: Member, written: str) -> None:
    member.consumer.assign({(written, 0): None})
    member.consumer.seek({(written, 0): 2})
    assert member.read(1)[0].offset == 2
    member.consumer.seek({(written, 0): 1})
    assert member.read(1)[0].offset == 1


def test_nothing_is_lost_over_a_pause(member: Member, written: str) -> None:
    member.consumer.assign({(written, 0): 0})
    assert [record.offset for record in member.read(2)] == [0, 1]
    member.consumer.pause()
    assert member.consumer.read(10, timeout_ms=50) == []
    member.consumer.resume()
    assert [record.offset for record in member.read(3)] == [2, 3, 4]


def test_offsets_by_time_and_at_both_ends(member: Member, written: str) -> None:
    place, empty = (written, 0), (written, 1)
    consumer = member.consumer
    assert consumer.offsets_at({place: BEGINNING, empty: BEGINNING}) == {place: 0, empty: 0}
    assert consumer.offsets_at({place: END, empty: END}) == {place: 5, empty: 0}
    assert consumer.offsets_at({place: 1_700_000_000_002}) == {place: 2}
    assert consumer.offsets_at({place: 1_800_000_000_000, empty: 1}) == {place: 5, empty: 0}


def test_commits_are_kept_with_their_notes(member: Member, written: str) -> None:
    place = (written, 0)
    assert member.consumer.committed([place]) == {}
    member.consumer.commit({place: Commit(3, "note")})
    assert member.consumer.committed([place]) == {place: Commit(3, "note")}


def test_commit_for_a_group_of_others_is_refused(
    cluster: ClientSettings, member: Member, written: str, name: str
) -> None:
    member.subscribe(written)
    member.join()
    stranger = Member(cluster, name)
    stranger.consumer.assign({(written, 0): 0})
    with pytest.raises(AssignmentLost):
        stranger.consumer.commit({(written, 0): Commit(1)})
    stranger.consumer.close()


def test_consumer_that_may_not_choose_says_that_it_has_nowhere_to_begin(
    cluster: ClientSettings, written: str, name: str
) -> None:
    member = Member(cluster, name, reset="error")
    member.consumer.assign({(written, 0): None})
    with pytest.raises(NoCommittedOffset):
        member.read(1)
    member.consumer.close()


@pytest.mark.parametrize("place", [("never-made", 0), (None, 9)])
def test_partition_that_is_not_there_is_not_found(member: Member, topic: str, place: tuple[str | None, int]) -> None:
    with pytest.raises(NotFound):
        member.consumer.check([(place[0] or topic, place[1])])


def test_topic_that_is_not_there_is_noted(member: Member) -> None:
    member.subscribe("never-made")

    def unknown() -> set[str]:
        member.consumer.read(1, timeout_ms=20)
        return member.consumer.unknown_topics

    assert eventually(unknown, timeout_s=_PATIENCE_S, pause_s=0) == {"never-made"}


def test_property_that_is_wrong_is_refused(cluster: ClientSettings) -> None:
    with pytest.raises(Rejected):
        GroupConsumer(cluster, group_id="g", defaults={}, properties={"session.timeout.ms": "never"})
