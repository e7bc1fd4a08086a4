"""A KIP-848 group under random joins, leaves, losses, subscription changes, topic growth and coordinator restarts."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from core_broker.errors import BrokerError, ErrorCode
from core_broker.groups.consumer_group import ConsumerGroup, ConsumerGroupLimits
from core_broker.groups.consumer_records import Changes, records_of, replay_into
from core_broker.groups.records import decode_record
from core_broker.groups.subscriptions import Topics
from tests.support.consumer_group_world import Client, places, settle, topics

LIMITS = ConsumerGroupLimits(session_timeout_ms=45_000)
REBALANCE_TIMEOUT_MS = 20_000
NAMES = ("t", "u", "v")

subscriptions = st.frozensets(st.sampled_from(NAMES), min_size=1)
expressions = st.sampled_from([None, "", "t|u", ".*"])


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Clients follow the protocol; the network loses answers, clients die, time goes by."""

    clients: Bundle[Client] = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.group = ConsumerGroup("g", LIMITS)
        self.log: dict[bytes, bytes | None] = {}
        self.now = 0.0
        self.counts = {"t": 3, "u": 2}
        self.alive: dict[str, Client] = {}
        self.joined = 0
        self.highest_epoch = 0
        self.member_epochs: dict[str, int] = {}

    @property
    def seen(self) -> Topics:
        """The topics: the same mapping for as long as nothing changes."""
        if getattr(self, "_seen_counts", None) != self.counts:
            self._seen_counts, self._seen = dict(self.counts), topics(**self.counts)
        return self._seen

    def store(self) -> None:
        """Write what changed, as the service does."""
        changes, self.group.changes = self.group.changes, Changes()
        self.log.update(records_of(self.group, changes, 0))

    def attempt(self, client: Client, action: str, *, answer_is_lost: bool = False) -> None:
        """Let a client act; a client that is fenced drops everything and comes back."""
        before = (client.epoch, client.told)
        try:
            getattr(client, action)(self.group, self.seen, self.now)
        except BrokerError as error:
            if error.code not in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                raise
            client.join(self.group, self.seen, self.now, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
        else:
            if answer_is_lost:
                client.epoch, client.told = before
                client.must_tell_all = True
        self.store()

    # --- rules -------------------------------------------------------------------------------------------------------

    @initialize(target=clients, names=subscriptions)
    def first_member(self, names: frozenset[str]) -> Client:
        return self.start_member(names, None)

    @rule(target=clients, names=subscriptions, expression=expressions)
    def join(self, names: frozenset[str], expression: str | None) -> Client:
        return self.start_member(names, expression)

    def start_member(self, names: frozenset[str], expression: str | None) -> Client:
        """A client that is new to the group."""
        self.joined += 1
        client = Client(f"m{self.joined}", names=names, expression=expression)
        client.join(self.group, self.seen, self.now, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
        self.alive[client.member_id] = client
        self.store()
        return client

    @rule(client=clients, answer_is_lost=st.booleans())
    def hear_news(self, client: Client, answer_is_lost: bool) -> None:
        self.attempt(client, "beat", answer_is_lost=answer_is_lost)

    @rule(client=clients, answer_is_lost=st.booleans())
    def confirm_what_is_owned(self, client: Client, answer_is_lost: bool) -> None:
        self.attempt(client, "confirm", answer_is_lost=answer_is_lost)

    @rule(client=clients, names=subscriptions)
    def change_subscription(self, client: Client, names: frozenset[str]) -> None:
        client.names = names
        try:
            client.beat(self.group, self.seen, self.now, subscribed_topic_names=names)
        except BrokerError:
            client.join(self.group, self.seen, self.now, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
        self.store()

    @rule(target=clients, client=consumes(clients))
    def leave(self, client: Client) -> MultipleResults[Client]:
        if client.member_id in self.group.members:
            self.group.leave(client.member_id, None, -1)
        del self.alive[client.member_id]
        self.store()
        return multiple()

    @rule(target=clients, client=consumes(clients))
    def die(self, client: Client) -> MultipleResults[Client]:
        del self.alive[client.member_id]
        return multiple()

    @rule(target=clients, client=consumes(clients), answer_is_lost=st.booleans())
    def restart_as_another_member(self, client: Client, answer_is_lost: bool) -> Client:
        del self.alive[client.member_id]
        successor = self.start_member(client.names, client.expression)
        if answer_is_lost:
            successor.epoch, successor.told = 0, None
            successor.join(self.group, self.seen, self.now, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
        self.store()
        return successor

    @rule(name=st.sampled_from(NAMES), more=st.integers(1, 4))
    def grow_or_create_topic(self, name: str, more: int) -> None:
        self.counts = {**self.counts, name: self.counts.get(name, 0) + more}

    @rule(name=st.sampled_from(NAMES))
    def delete_topic(self, name: str) -> None:
        self.counts = {other: count for other, count in self.counts.items() if other != name}

    @rule(seconds=st.integers(1, 50))
    def let_time_pass(self, seconds: int) -> None:
        self.now += seconds
        deadline = self.group.next_deadline()
        gone = self.group.expire_members(self.now)
        assert not gone or (deadline is not None and deadline <= self.now), "the deadline was told too late"
        self.store()

    @rule()
    def restart_coordinator(self) -> None:
        fresh = ConsumerGroup("g", LIMITS)
        for key, value in self.log.items():
            decoded = decode_record(key, value)
            assert decoded is not None
            replay_into(fresh, *decoded)
        assert fresh.members == self.group.members
        assert fresh.targets == self.group.targets
        assert (fresh.epoch, fresh.target_epoch) == (self.group.epoch, self.group.target_epoch)
        assert fresh.subscriptions.resolved == self.group.subscriptions.resolved
        fresh.changes = Changes()
        fresh.restart_timers(self.now)
        self.group = fresh

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def partition_has_at_most_one_owner(self) -> None:
        owned = [
            place
            for member in self.group.members.values()
            for assignment in (member.assigned, member.pending_revocation)
            for place in places(assignment)
        ]
        assert len(owned) == len(set(owned))

    @invariant()
    def client_reads_only_what_the_coordinator_keeps_for_it(self) -> None:
        for client in self.alive.values():
            if client.member_id in self.group.members:
                assert all(self.group.owners.owner_of(*place) == client.member_id for place in places(client.owned))

    @invariant()
    def epochs_never_go_back(self) -> None:
        assert self.group.epoch >= self.highest_epoch
        self.highest_epoch = self.group.epoch
        assert self.group.target_epoch <= self.group.epoch
        for member_id, member in self.group.members.items():
            assert self.member_epochs.get(member_id, 0) <= member.epoch <= self.group.target_epoch
            self.member_epochs[member_id] = member.epoch

    def teardown(self) -> None:
        """After quiet: everything that is read is owned, and evenly."""
        for _ in range(2):  # the dead are removed, the living stay
            self.now += 30
            for client in self.alive.values():
                for action in ("beat", "confirm", "confirm"):
                    self.attempt(client, action)
            self.group.expire_members(self.now)
        clients = list(self.alive.values())
        if not clients:
            return
        for client in clients:
            if client.member_id not in self.group.members:
                client.join(self.group, self.seen, self.now, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
        settle(self.group, self.seen, *clients, now=self.now)
        read = self.group.subscriptions.topic_names()
        wanted = {
            (self.seen[name].topic_id, p) for name in read if name in self.counts for p in range(self.counts[name])
        }
        owned = [places(client.owned) for client in clients]
        assert sum(map(len, owned)) == len(wanted)
        assert set().union(*owned) == wanted
        if len({member.subscription for member in self.group.members.values()}) == 1:
            sizes = [len(share) for share in owned]
            assert max(sizes) - min(sizes) <= 1


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
