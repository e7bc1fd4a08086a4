"""Which topics the members of a KIP-848 group read: named ones, and those that match a regular expression.

Expressions are evaluated here and not by the client, so they come from strangers: RE2 runs in time linear in the
input and refuses expressions that would need much memory, where Python's `re` could be made to run for years.

An expression is resolved in the heartbeat that brings it, so that the first assignment is whole. Kafka resolves it on
another thread and gives the matching topics with a second assignment, a moment later; but there, too, an expression
that another member brought before counts at once. Members must therefore take both, and one assignment less is a
rebalance less.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Protocol, TypeAlias

import re2

from core_broker.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

_EXPRESSION_BYTES_MAX: Final = 8192
_EXPRESSION_MEMORY_MAX_BYTES: Final = 1 << 20
_COMPILED_MAX: Final = 128


class Topic(Protocol):
    """What is asked of a topic in the cluster's metadata."""

    @property
    def topic_id(self) -> bytes:
        """The id that tells it from a topic of the same name that was deleted."""

    @property
    def partitions(self) -> Sized:
        """Its partitions, numbered from zero."""


Topics: TypeAlias = Mapping[str, Topic]
"""All topics by name. Never changed in place: another state of the cluster is another mapping."""


class Pattern(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str) -> object | None:
        """Something when the whole text matches."""


class Subscriptions:
    """The topics that the members of one group read, all together."""

    def __init__(self) -> None:
        self.resolved: dict[str, frozenset[str]] = {}
        """The topics that each expression matched when it was last looked at."""
        self._names: Counter[str] = Counter()
        self._expressions: Counter[str] = Counter()

    def add(self, names: Iterable[str], expression: str) -> None:
        """Count the subscription of one member; an empty expression is none."""
        self._names.update(names)
        if expression:
            self._expressions[expression] += 1

    def remove(self, names: Iterable[str], expression: str) -> None:
        """Count one member less."""
        for name in names:
            _count_down(self._names, name)
        if expression:
            _count_down(self._expressions, expression)

    def resolve(self, topics: Topics, *, again: bool) -> set[str]:
        """Match expressions that are new, or all of them, and forget unused ones; returns those that changed."""
        changed = {expression for expression in self.resolved if expression not in self._expressions}
        for expression in changed:
            del self.resolved[expression]
        for expression in self._expressions:
            if again or expression not in self.resolved:
                matching = _matching_or_none(expression, topics)
                if self.resolved.get(expression) != matching:
                    self.resolved[expression] = matching
                    changed.add(expression)
        return changed

    def topic_names(self) -> set[str]:
        """All topics that some member reads; they need not exist."""
        return set(self._names).union(*self.resolved.values())

    def topic_ids(self, names: frozenset[str], expression: str, topics: Topics) -> frozenset[bytes]:
        """The topics of one member's subscription that exist."""
        wanted = names | self.resolved.get(expression, frozenset())
        return frozenset(topics[name].topic_id for name in wanted if name in topics)

    def includes(self, topic: str) -> bool:
        """True when some member reads the topic."""
        return topic in self._names or any(topic in matching for matching in self.resolved.values())


def _matching_or_none(expression: str, topics: Topics) -> frozenset[str]:
    """What matches; nothing for an expression that another broker has accepted and stored, but this one cannot read."""
    try:
        return matching_topics(expression, topics)
    except BrokerError:
        log.warning("stored expression cannot be read, it matches nothing", extra={"expression": expression})
        return frozenset()


def _count_down(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]


def compile_expression(expression: str) -> Pattern:
    """Check an expression; raises INVALID_REGULAR_EXPRESSION with the reason."""
    length = len(expression.encode())
    if length > _EXPRESSION_BYTES_MAX:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has {length} bytes; at most {_EXPRESSION_BYTES_MAX} are allowed.",
        )
    return _compile(expression)


def matching_topics(expression: str, topics: Topics) -> frozenset[str]:
    """The topics whose whole name matches, as Kafka matches them; `.*` finds internal topics too."""
    pattern = compile_expression(expression)
    return frozenset(name for name in topics if pattern.fullmatch(name) is not None)


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A number that changes when one of these topics is created, deleted, re-created or grows; 0 when none exists.

    It is stored with the group, so that a coordinator sees after a restart whether the topics changed meanwhile.
    """
    present = sorted(name for name in names if name in topics)
    if not present:
        return 0
    digest = blake2b(digest_size=8)
    for name in present:
        topic = topics[name]
        digest.update(f"{name}\0{len(topic.partitions)}\0".encode())
        digest.update(topic.topic_id)
    return int.from_bytes(digest.digest(), "big", signed=True)


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
