"""What brokers that are down mean for a cluster: which partitions go on as before, and which wait for them."""

import msgspec

from deploy.views.cluster import BrokerView, ClusterView
from deploy.views.text import number, plural


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One consequence, as a sentence for people."""

    text: str
    is_outage: bool
    """Whether clients wait or fail, rather than go on with fewer replicas."""


def missing_brokers(found: ClusterView) -> list[BrokerView]:
    """Brokers that the cluster goes on without, or that do not answer."""
    return [broker for broker in found.brokers if broker.fenced or broker.disks is None]


def troubles(found: ClusterView) -> list[Trouble]:
    """What is wrong, the worst first; empty when all brokers and replicas are there."""
    missing = [broker.id for broker in missing_brokers(found)]
    # A broker that has only just stopped still leads, until the controller misses it.
    waiting = sum(broker.leaders for broker in missing_brokers(found))
    offline = {(item.topic, item.partition) for item in found.offline}
    blocked = {(item.topic, item.partition) for item in found.under_min_isr} - offline
    reduced = {(item.topic, item.partition) for item in found.under_replicated} - offline - blocked
    listed = []
    if offline:
        text = f"{_share(len(offline), found)} cannot be read or written: no broker that may lead them is up"
        listed.append(Trouble(text=text, is_outage=True))
    if waiting:
        text = f"{_share(waiting, found)} wait until other brokers lead them, within seconds"
        listed.append(Trouble(text=text, is_outage=True))
    if blocked:
        text = f"{_share(len(blocked), found)} can be read, but writes with acks=all wait: too few replicas are in sync"
        listed.append(Trouble(text=text, is_outage=True))
    if reduced:
        text = (
            f"{_share(len(reduced), found)} are read and written as before, with fewer replicas in sync than they have"
        )
        listed.append(Trouble(text=text, is_outage=False))
    if found.quorum is not None:
        voters = len(found.quorum.voters)
        left = sum(voter.id not in missing for voter in found.quorum.voters)
        majority = voters // 2 + 1
        if left - 1 < majority and left < voters:
            text = f"{left} of {voters} controllers are up: if another one stops, no leader can be elected"
            listed.append(Trouble(text=text, is_outage=False))
    return listed


def _share(partitions: int, found: ClusterView) -> str:
    return f"{number(partitions)} of {plural(found.partitions, 'partition')}"
