"""Limits for moving replicas: the same configs as those of `kafka-reassign-partitions --throttle`, set and removed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deploy.terminal.output import failure, note
from deploy.views.text import size

if TYPE_CHECKING:
    from core_broker.client.admin import Admin
    from deploy.views.replica_plan import Move

ThrottleOption = Annotated[
    int | None,
    typer.Option(
        "--throttle",
        metavar="BYTES",
        min=1,
        help="Bytes per second copied from and to each broker. Partitions that are written faster never arrive.",
        show_default="no limit",
    ),
]

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
LISTS: Final = (LEADERS, FOLLOWERS)
_EVERY_REPLICA: Final = "*"
_OWN: Final = "DYNAMIC_BROKER_CONFIG"
_UNLIMIT: Final = "remove the limit once nothing moves:  `caudal cluster reassign watch`"


@contextmanager
def throttled(client: "Admin", moves: "Sequence[Move]", rate: int | None) -> Iterator[None]:
    """Limit the moves of the block, and remove the limits at its end.

    If it fails, the limits stay, since replicas may still move.
    """
    if rate is None or not moves:
        yield
        return
    brokers = _live_brokers(client) & {broker for move in moves for broker in (*move.before, *move.after)}
    lists = throttled_replicas(moves)
    # A topic that limits all its replicas already is left as it is, now and afterwards.
    lists = {topic: lists[topic] for topic in lists.keys() - _lists_of(client, lists, every_replica=True).keys()}
    try:
        for broker in brokers:
            client.alter_broker_configs(broker, put=dict.fromkeys(RATES, str(rate)))
        _change_topics(client, {topic: (values, ()) for topic, values in lists.items()})
        yield
    except BaseException:
        failure(f"the limit of {size(rate)}/s for replicas that move stays in place", [_UNLIMIT])
        raise
    _remove(client, brokers, lists)


def remove_leftovers(client: "Admin") -> None:
    """Remove the limits that an interrupted command has left, unless something still moves."""
    from core_broker.client.errors import NotAllowed

    if client.reassignments():
        return
    try:
        configs = client.configs_of_brokers(_live_brokers(client))
    except NotAllowed:  # then this user has not set any either
        return
    brokers = [
        broker
        for broker, found in configs.items()
        if any(config.key in RATES and config.source == _OWN for config in found)
    ]
    lists = _lists_of(client, client.topic_names(), every_replica=False)
    if brokers or lists:
        _remove(client, brokers, lists)
        note("replication is no longer limited")


def throttled_replicas(moves: "Iterable[Move]") -> dict[str, dict[str, str]]:
    """What each topic has to list: the replicas that may be copied from, and those that are new."""
    pairs: dict[str, dict[str, list[str]]] = {}
    for move in moves:
        if set(move.after) <= set(move.before):
            continue
        of_topic = pairs.setdefault(move.topic, {LEADERS: [], FOLLOWERS: []})
        of_topic[LEADERS] += [f"{move.partition}:{broker}" for broker in move.before]
        of_topic[FOLLOWERS] += [f"{move.partition}:{broker}" for broker in move.after if broker not in move.before]
    return {topic: {key: ",".join(found) for key, found in lists.items()} for topic, lists in pairs.items()}


def _live_brokers(client: "Admin") -> set[int]:
    return {broker.id for broker in client.maintenance.registered_brokers() if not broker.is_fenced}


def _lists_of(client: "Admin", topics: Iterable[str], *, every_replica: bool) -> dict[str, list[str]]:
    """The keys of the lists that topics have: those that name every replica, or the others."""
    found = {
        topic: [
            config.key
            for config in configs
            if config.key in LISTS and config.value and (config.value == _EVERY_REPLICA) == every_replica
        ]
        for topic, configs in client.configs_of_topics(topics).items()
    }
    return {topic: keys for topic, keys in found.items() if keys}


def _remove(client: "Admin", brokers: Iterable[int], lists: Mapping[str, Iterable[str]]) -> None:
    """Remove rates and lists. A broker that does not answer keeps its rate, which limits nothing without the lists."""
    from core_broker.client.errors import Unreachable

    _change_topics(client, {topic: ({}, keys) for topic, keys in lists.items()})
    for broker in brokers:
        try:
            client.alter_broker_configs(broker, put={}, remove=RATES)
        except Unreachable as error:
            failure(f"broker {broker} keeps its limit: {error}", [_UNLIMIT])


def _change_topics(client: "Admin", changes: "Mapping[str, tuple[Mapping[str, str], Iterable[str]]]") -> None:
    """Change the configs of topics; those that were deleted meanwhile are skipped."""
    from core_broker.client.errors import NotFound

    outcome = client.alter_configs_of_topics(changes) if changes else {}
    for error in outcome.values():
        if error is not None and not isinstance(error, NotFound):
            raise error
