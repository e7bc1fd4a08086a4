"""What must never happen, checked while it could: on the real objects of all nodes at once.

The world knows what no node knows: what was ever committed (`Committed`). From that follow the rules that matter most:
every replica that leads or may lead has all committed records, and no two replicas commit different bytes at an offset.

| | asserted in |
|---|---|
| I1 | `_check_leader`, `_check_image`, `refusals.py` |
| I2 | `_check_follower`, `_check_content` |
| I3 | `_check_partition`, `_check_leader` |
| I4 | `_check_partition`, `_check_advance` |
| I5 | `_check_image`; S10 at the end: all are in sync |
| I6 | `watch` (`propose_once`) |
| I7 | `World.check_acknowledged`, `refusals.py` |
| I8, I9 | `_check_leader`, `_check_image` |
| I10 | `_check_metadata`, `Producer._begin` |
| I11 | `refusals.py` |
| I12 | `Consumer._take` |
| I13 | `_check_partition`, `World.check_answers` |
| S1-S4, S10 | `World._check_agreement`, `_check_content`, `Producer._send` |
| S5, S6, S12 | `transactions.py` |
| S9 | `_check_leader`, `_check_controller`, `_check_role` |

For each there is a rule of the product in `broken_rules.py` without which some seed fails.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core_broker.cluster.metadata import MetadataImage, PartitionImage
from core_broker.cluster.partition import Partition
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.cluster.replicas.leader import IsrProposal, LeaderReplica
from core_broker.raft.node import RaftNode
from core_broker.raft.voters import ReplicaKey
from tests.simulation import refusals
from tests.simulation.determinism import replace
from tests.simulation.virtual_loop import LIFE

if TYPE_CHECKING:
    from tests.simulation.cluster import World

Key = tuple[bytes, int]
"""Topic id and partition."""


class Committed:
    """Every batch of a partition that was ever below the high watermark of a leader."""

    def __init__(self) -> None:
        self.end = 0
        self.batches: dict[int, bytes] = {}
        """By the offset of the first record."""
        self.leaders: dict[int, int] = {}
        """By leader epoch."""
        self.partition_epoch = -1
        self.leader_epoch = -1


class Invariants:
    """Watches the objects of all nodes."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.committed: dict[Key, Committed] = {}
        self.newest = MetadataImage(cluster_id="")
        """The newest metadata that any node has applied."""
        self._controllers: dict[int, int] = {}
        self._metadata: dict[int, MetadataImage] = {}
        self._applied: dict[int, tuple[MetadataQuorum, int]] = {}
        """By id: a node's quorum, and the offset up to which it has applied the metadata."""
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        """By voter and epoch of the quorum."""
        self._epochs: dict[ReplicaKey, int] = {}
        """The newest epoch of the quorum that a node, with this disk, was in."""
        self._checked: dict[int, tuple[Partition, int, int]] = {}
        """By id: the partition, its high watermark when it was last checked, and its leader epoch then."""

    def watch(self) -> None:
        """Check every change of every partition and of the metadata from now on."""
        after_partition = ("__init__", "append", "reconsider", "replicate", "update", "truncate", "restart_at")
        for name in after_partition:
            self._after(Partition, name, self._check_partition)
        self._after(MetadataQuorum, "_publish", self._check_metadata)
        self._after(RaftNode, "_become", self._check_role)
        self._after(MetadataQuorum, "_call_leadership_listeners", self._check_controller)
        propose = LeaderReplica._propose

        def propose_once(replica: LeaderReplica, isr: tuple[int, ...]) -> IsrProposal:
            if replica.proposal is not None:
                self.fail("I6", f"a second change of the ISR while {replica.proposal} is on its way")
            return propose(replica, isr)

        replace(LeaderReplica, "_propose", propose_once)
        fetched = Partition.follower_fetched

        def check_fetch(partition: Partition, follower: int, offset: int, **options: Any) -> None:
            self._check_follower(partition, follower, offset)
            fetched(partition, follower, offset, **options)

        replace(Partition, "follower_fetched", check_fetch)
        refusals.watch(self.fail)

    def _after(self, owner: type, name: str, check: Callable[..., None]) -> None:
        original = getattr(owner, name)

        def checked(instance: object, *arguments: Any, **options: Any) -> Any:
            result = original(instance, *arguments, **options)
            if LIFE.get() is not None:
                check(instance, *arguments)
            return result

        replace(owner, name, checked)

    def fail(self, rule: str, text: str) -> None:
        """Report a violation; the run ends with it."""
        life = LIFE.get()
        self.world.fail(f"{rule}: {text} (on {life.name if life else 'no node'})")

    def of(self, key: Key) -> Committed:
        """What was committed of a partition."""
        return self.committed.setdefault(key, Committed())

    # -- partitions --

    def _check_partition(self, partition: Partition, *_: object) -> None:
        life = LIFE.get()
        number = 0 if life is None else life.number
        committed = self.of((partition.topic_id, partition.index))
        known = self._checked.get(id(partition))
        start = partition.log.start_offset if known is None else known[1]
        epoch = -1 if known is None else known[2]
        high_watermark = partition.high_watermark
        where = f"{partition.topic}-{partition.index} on node {number}"
        if high_watermark > partition.log.end_offset:
            self.fail("I3", f"{where} has high watermark {high_watermark} and end {partition.log.end_offset}")
        if known is not None and partition.is_leader and high_watermark < known[1]:
            self.fail("I4", f"the high watermark of leader {where} fell from {known[1]} to {high_watermark}")
        if partition.is_leader and partition.leader_epoch != epoch:
            self._check_leader(partition, committed, number)
        if not partition.is_leader and any(not waiter.done() for _, waiter in partition._commits._waiting):
            self.fail("I13", f"{where} no longer leads, and a producer still waits for it")
        if high_watermark > start:
            self._check_content(partition, committed, start, number)
        self._checked[id(partition)] = (partition, high_watermark, partition.leader_epoch)

    def _check_leader(self, partition: Partition, committed: Committed, number: int) -> None:
        epoch = partition.leader_epoch
        where = f"{partition.topic}-{partition.index}"
        if committed.leaders.setdefault(epoch, number) != number:
            text = f"{where} has leaders {committed.leaders[epoch]} and {number} in epoch {epoch}"
            self.fail("I1", text)
        # A node that was cut off replays how it was elected, after others have been elected and committed more.
        if epoch == committed.leader_epoch and partition.log.end_offset < committed.end:
            text = f"node {number} leads {where} in epoch {epoch} and ends at {partition.log.end_offset}"
            self.fail("I8", f"{text}, but {committed.end} records are committed")
        # A leader that stays in a new epoch may have appended in the meantime.
        if not 0 <= partition.log.epochs.start_offset_of(epoch) <= partition.log.end_offset:
            self.fail("I3", f"leader epoch {epoch} of {where} has no start on node {number}")

    def _check_content(self, partition: Partition, committed: Committed, start: int, number: int) -> None:
        """Compare what the partition now takes for committed with what was committed before."""
        end = partition.high_watermark
        where = f"{partition.topic}-{partition.index} on node {number}"
        if end > committed.end:
            if not partition.is_leader:
                self.fail("I4", f"follower {where} takes {end} for committed, its leaders only {committed.end}")
            self._check_advance(partition, number)
        for header, batch in partition.log.read_batches(start, end):
            data = bytes(batch)
            known = committed.batches.get(header.base_offset)
            if known is None and header.base_offset >= committed.end:
                committed.batches[header.base_offset] = data
            elif known != data:
                self.fail("S2", f"{where} has other bytes at offset {header.base_offset} than were committed")
                return
        committed.end = max(committed.end, end)

    def _check_advance(self, partition: Partition, number: int) -> None:
        """A leader takes more for committed: every in-sync replica must have it."""
        where = f"{partition.topic}-{partition.index}"
        if len(partition.isr) < partition.min_in_sync_replicas:
            self.fail("I4", f"leader {number} of {where} commits with ISR {partition.isr}")
        if not set(partition.isr) <= set(partition.replicas):
            self.fail("I8", f"ISR {partition.isr} of {where} is not within {partition.replicas}")
        topic = self.newest.topics_by_id.get(partition.topic_id)
        newest = topic.partitions.get(partition.index) if topic is not None else None
        # A leader that was cut off may not know yet that a replica has crashed, lost records, and left the ISR.
        for replica in [r for r in partition.isr if newest is None or r in newest.isr]:
            node = self.world.nodes.get(replica)
            found = node and node.partition(partition.topic, partition.index, partition.topic_id)
            if found and found.log.end_offset < partition.high_watermark:
                text = f"leader {number} of {where} commits {partition.high_watermark}"
                self.fail("I4", f"{text}, but in-sync replica {replica} ends at {found.log.end_offset}")

    def _check_follower(self, partition: Partition, follower: int, offset: int) -> None:
        """A fetch counts as progress: then the follower's log is the beginning of the leader's."""
        node = self.world.nodes.get(follower)
        found = node and node.partition(partition.topic, partition.index, partition.topic_id)
        if not found or found.leader_epoch != partition.leader_epoch or not 0 < offset <= found.log.end_offset:
            return
        own, theirs = (p.log.epochs.epoch_for_offset(offset - 1) for p in (partition, found))
        if own != theirs and min(own, theirs) >= 0:
            text = f"follower {follower} of {partition.topic}-{partition.index} counts up to {offset}"
            self.fail("I2", f"{text}, where it has epoch {theirs} and the leader {own}")

    # -- metadata --

    def _check_controller(self, quorum: MetadataQuorum, **_: object) -> None:
        if quorum.is_leader and self._controllers.setdefault(quorum.leader_epoch, quorum.node_id) != quorum.node_id:
            text = f"{self._controllers[quorum.leader_epoch]} and {quorum.node_id}"
            self.fail("S9", f"two controllers in epoch {quorum.leader_epoch}: {text}")

    def _check_role(self, node: RaftNode[Any], *_: object) -> None:
        """A node votes once in an epoch, and never returns to an earlier one, even if it crashes in between."""
        state = node._state
        if state.epoch < self._epochs.get(node.key, 0):
            self.fail("S9", f"node {node.key.id} went back from epoch {self._epochs[node.key]} to {state.epoch}")
        self._epochs[node.key] = state.epoch
        if state.voted is not None and self._votes.setdefault((node.key, state.epoch), state.voted) != state.voted:
            self.fail("S9", f"node {node.key.id} voted twice in epoch {state.epoch}")

    def _check_metadata(self, quorum: MetadataQuorum, image: MetadataImage, *_: object) -> None:
        if image.offset <= self._applied.get(id(quorum), (quorum, -1))[1]:
            self.fail("I10", f"node {quorum.node_id} applied metadata offset {image.offset} after a later one")
        self._applied[id(quorum)] = quorum, image.offset
        known = self._metadata.setdefault(image.offset, image)
        if known is not image and known != image:
            self.fail("I10", f"node {quorum.node_id} has other metadata at offset {image.offset} than another node")
        if image.offset <= self.newest.offset:
            return
        before, self.newest = self.newest, image
        for topic in image.topics.values():
            known_topic = before.topics_by_id.get(topic.topic_id)
            for index, partition in topic.partitions.items():
                changed = known_topic is None or known_topic.partitions.get(index) is not partition
                if changed or before.brokers is not image.brokers:
                    self._check_image(image, topic.name, (topic.topic_id, index), partition)

    def _check_image(self, image: MetadataImage, topic: str, key: Key, partition: PartitionImage) -> None:
        where = f"{topic}-{key[1]} at metadata offset {image.offset}"
        committed = self.of(key)
        isr, elr = partition.isr, partition.elr
        if partition.leader_epoch < committed.leader_epoch or partition.partition_epoch < committed.partition_epoch:
            self.fail("I1", f"an epoch of {where} went back: {partition}")
        committed.leader_epoch, committed.partition_epoch = partition.leader_epoch, partition.partition_epoch
        members = {*isr, *elr}
        if not members <= set(partition.replicas) or len(members) != len(isr) + len(elr):
            self.fail("I8", f"ISR {isr} and ELR {elr} of {where} do not fit replicas {partition.replicas}")
        if partition.leader_id >= 0 and partition.leader_id not in isr:
            self.fail("I8", f"leader {partition.leader_id} of {where} is not in ISR {isr}")
        for replica in isr:
            if (broker := image.brokers.get(replica)) is not None and broker.is_fenced:
                self.fail("I8", f"fenced broker {replica} is in the ISR of {where}")
        for replica in (*isr, *elr):
            node = self.world.nodes.get(replica)
            found = node and node.partition(topic, key[1], key[0])
            if found and found.log.end_offset < committed.end:
                text = f"replica {replica} of {where} is in ISR {isr} or ELR {elr} and ends at {found.log.end_offset}"
                self.fail("I5", f"{text}, but {committed.end} records are committed")
