"""Topics and members that speak KIP-848 to a group, for the tests of the state machine."""

from dataclasses import dataclass, field
from typing import Any

from core_broker.groups.assignors import Assignment
from core_broker.groups.consumer_group import ConsumerGroup, Heartbeat, HeartbeatAnswer
from core_broker.groups.subscriptions import Topics


@dataclass(frozen=True)
class FakeTopic:
    """A topic of the metadata image, as far as groups look at it."""

    topic_id: bytes
    partitions: range


def topics(**partition_counts: int) -> Topics:
    """Topics by name, with an id that the name tells."""
    return {name: FakeTopic(topic_id(name), range(count)) for name, count in partition_counts.items()}


def topic_id(name: str) -> bytes:
    """The id that `topics` gives to a topic."""
    return name.encode().ljust(16, b"_")


def places(assignment: Assignment) -> set[tuple[bytes, int]]:
    """An assignment as a set of (topic id, partition)."""
    return {(topic, number) for topic, numbers in assignment.items() for number in numbers}


@dataclass
class Client:
    """A member as a client library behaves: it owns what it was last told, and says so when that changed."""

    member_id: str
    instance_id: str | None = None
    names: frozenset[str] = frozenset({"t"})
    expression: str | None = None
    epoch: int = 0
    owned: dict[bytes, frozenset[int]] = field(default_factory=dict)
    told: Assignment | None = None
    rebalance_timeout_ms: int = 60_000
    must_tell_all: bool = False
    """After a heartbeat whose answer never came, as the Java client and librdkafka do."""

    def join(self, group: ConsumerGroup, seen: Topics, now: float = 0.0, **fields: Any) -> HeartbeatAnswer:
        """(Re)join with nothing owned."""
        self.epoch, self.owned, self.told = 0, {}, None
        self.rebalance_timeout_ms = fields.pop("rebalance_timeout_ms", self.rebalance_timeout_ms)
        beat = Heartbeat(
            member_id=self.member_id,
            member_epoch=0,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            subscribed_topic_names=self.names,
            subscribed_topic_regex=self.expression,
            owned={},
            **fields,
        )
        return self.take(group.heartbeat(beat, seen, now))

    def beat(self, group: ConsumerGroup, seen: Topics, now: float = 0.0, **fields: Any) -> HeartbeatAnswer:
        """An ordinary heartbeat: only what changed, unless `fields` says more."""
        if self.must_tell_all:
            everything = {
                "rebalance_timeout_ms": self.rebalance_timeout_ms,
                "subscribed_topic_names": self.names,
                "subscribed_topic_regex": self.expression,
                "owned": dict(self.owned),
            }
            fields = everything | fields
        beat = Heartbeat(member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id, **fields)
        return self.take(group.heartbeat(beat, seen, now))

    def confirm(self, group: ConsumerGroup, seen: Topics, now: float = 0.0) -> HeartbeatAnswer:
        """Give up what is not assigned any more, take up what is new, and tell what is owned now."""
        self.owned = dict(self.told or {})
        return self.beat(group, seen, now, owned=dict(self.owned))

    def settle(self, group: ConsumerGroup, seen: Topics, now: float = 0.0) -> None:
        """One round: hear the news, then confirm them."""
        self.beat(group, seen, now)
        self.confirm(group, seen, now)

    def take(self, answer: HeartbeatAnswer) -> HeartbeatAnswer:
        """Remember what the coordinator said."""
        self.epoch = answer.member_epoch
        self.must_tell_all = False
        if answer.assignment is not None:
            self.told = answer.assignment
        return answer


def settle(group: ConsumerGroup, seen: Topics, *clients: Client, now: float = 0.0) -> None:
    """Let all members heartbeat until nothing changes."""
    for _ in range(2 * len(clients) + 4):
        for client in clients:
            client.settle(group, seen, now)
        if group.state_name == "Stable" and all(client.owned == client.told for client in clients):
            return
    raise AssertionError(f"the group does not come to rest: {group.state_name}")
