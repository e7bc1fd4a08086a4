"""The topics that the members of a KIP-848 group subscribe to, by name or by regular expression.

Expressions are evaluated by the broker and not by the client, so they are untrusted: RE2 runs in linear time and
rejects expressions that would need much memory, while Python's `re` could be made to run for years.

An expression is resolved in the heartbeat that contains it, so that the first assignment is complete. Kafka resolves it
on another thread and sends the matching topics with a second assignment, a moment later; but there, too, an expression
that another member sent before is resolved at once. Members must therefore handle both, and one assignment less is one
rebalance less.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import lru_cache
from struct import pack
from typing import Final, Protocol, TypeAlias

import re2
from xxhash import xxh3_64

from core_broker.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

_EXPRESSION_BYTES_MAX: Final = 8192
_EXPRESSION_MEMORY_MAX_BYTES: Final = 1 << 20
_COMPILED_MAX: Final = 128


class Topic(Protocol):
    """What is needed of a topic in the metadata."""

    @property
    def topic_id(self) -> bytes:
        """The id, which differs from that of a deleted topic of the same name."""

    @property
    def partitions(self) -> Sized:
        """Its partitions, numbered from zero."""


Topics: TypeAlias = Mapping[str, Topic]
"""All topics by name. Never changed in place: a new state of the cluster is a new mapping."""


TopicFilter: TypeAlias = Callable[[str], bool]
"""Whether a client may know of a topic."""


def every_topic(_name: str) -> bool:
    """Without an authorizer, clients may know of all topics."""
    return True


class Pattern(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str) -> object | None:
        """A match if the whole text matches, else None."""


class Subscriptions:
    """The subscriptions of all members of one group together."""

    def __init__(self) -> None:
        self.resolved: dict[str, frozenset[str]] = {}
        """The topics that each expression matched when it was last resolved."""
        self._names: Counter[str] = Counter()
        self._expressions: Counter[str] = Counter()

    def add(self, names: Iterable[str], expression: str) -> None:
        """Add the subscription of one member; an empty expression means none."""
        self._names.update(names)
        if expression:
            self._expressions[expression] += 1

    def remove(self, names: Iterable[str], expression: str) -> None:
        """Remove the subscription of one member."""
        for name in names:
            _count_down(self._names, name)
        if expression:
            _count_down(self._expressions, expression)

    def resolve(self, topics: Topics, may_describe: TopicFilter = every_topic, *, again: bool) -> set[str]:
        """Match new expressions, or all of them, and drop unused ones; returns those that changed.

        As in Kafka, members with the same expression have the same topics: those of the one that had it matched last.
        """
        changed = {expression for expression in self.resolved if expression not in self._expressions}
        for expression in changed:
            del self.resolved[expression]
        for expression in self._expressions:
            if again or expression not in self.resolved:
                matching = frozenset(filter(may_describe, _match_leniently(expression, topics)))
                if self.resolved.get(expression) != matching:
                    self.resolved[expression] = matching
                    changed.add(expression)
        return changed

    def topic_names(self) -> set[str]:
        """All topics that a member subscribes to; they need not exist."""
        return set(self._names).union(*self.resolved.values())

    def topic_ids(self, names: frozenset[str], expression: str, topics: Topics) -> frozenset[bytes]:
        """The topics of one member's subscription that exist."""
        wanted = names | self.resolved.get(expression, frozenset())
        return frozenset(topics[name].topic_id for name in wanted if name in topics)

    def includes(self, topic: str) -> bool:
        """Whether a member subscribes to the topic."""
        return topic in self._names or any(topic in matching for matching in self.resolved.values())


def _match_leniently(expression: str, topics: Topics) -> frozenset[str]:
    """The matching topics; none for a stored expression of another broker that this one cannot compile."""
    try:
        return matching_topics(expression, topics)
    except BrokerError:
        log.warning("stored expression cannot be compiled and matches nothing", extra={"expression": expression})
        return frozenset()


def _count_down(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]


def compile_expression(expression: str) -> Pattern:
    """Compile an expression; raises INVALID_REGULAR_EXPRESSION with the reason."""
    length = len(expression.encode())
    if length > _EXPRESSION_BYTES_MAX:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has {length} bytes; at most {_EXPRESSION_BYTES_MAX} are allowed.",
        )
    return _compile(expression)


def matching_topics(expression: str, topics: Topics) -> frozenset[str]:
    """The topics whose whole name matches, as in Kafka; `.*` matches internal topics, too."""
    pattern = compile_expression(expression)
    return frozenset(name for name in topics if pattern.fullmatch(name) is not None)


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A number that changes when one of these topics is created, deleted, recreated or grows; 0 if none exists.

    It is stored with the group, so that the next coordinator notices that the topics have changed; in a cluster with
    Apache Kafka it computes the same number, unless its brokers have racks, which enter there, too.
    """
    present = sorted(name for name in names if name in topics)
    if not present:
        return 0
    return _signed(xxh3_64(b"".join(_topic_hash(name, topics[name]) for name in present)).intdigest())


def _topic_hash(name: str, topic: Topic) -> bytes:
    """The hash of a topic in the order of bytes in which it enters that of a group."""
    utf16, count = name.encode("utf-16-le"), len(topic.partitions)
    digest = xxh3_64(b"\0")  # the version of this layout
    digest.update(topic.topic_id[7::-1] + topic.topic_id[:7:-1])  # two numbers, the lowest byte first
    digest.update(utf16 + pack("<ii", len(utf16) // 2, count))
    digest.update(pack(f"<{count}i", *range(count)))
    return digest.intdigest().to_bytes(8, "little")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


@lru_cache(maxsize=_COMPILED_MAX)
def _compile(expression: str) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _EXPRESSION_MEMORY_MAX_BYTES
    try:
        pattern: Pattern = re2.compile(expression, options)
    except re2.error as error:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {_reason(error)}.",
        ) from None
    return pattern


def _reason(error: Exception) -> str:
    detail = error.args[0] if error.args else error
    return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
