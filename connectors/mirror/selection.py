"""The topics and groups that are mirrored."""

import re
from collections.abc import Iterable

from connectors.mirror.policy import Policy


class Names:
    """Names that a pattern matches in full, and no pattern excludes."""

    def __init__(self, wanted: Iterable[str], *, excluded: Iterable[str]) -> None:
        self._wanted = _any_of(wanted)
        self._excluded = _any_of(excluded)

    def __contains__(self, name: str) -> bool:
        return _matches(self._wanted, name) and not _matches(self._excluded, name)


class Selection:
    """Topics that are mirrored: selected by name, not internal, and not from the target itself."""

    def __init__(
        self,
        policy: Policy,
        *,
        target: str,
        topics: Iterable[str],
        excluded: Iterable[str],
        with_heartbeats: bool,
    ) -> None:
        self._policy = policy
        self._target = target
        self._names = Names(topics, excluded=excluded)
        self._with_heartbeats = with_heartbeats

    def __contains__(self, topic: str) -> bool:
        policy = self._policy
        if policy.is_internal(topic) or policy.comes_from(self._target, topic):
            return False
        return topic in self._names or (self._with_heartbeats and policy.is_heartbeats(topic))

    def has_offsets_of(self, topic: str) -> bool:
        """Whether committed offsets of a topic are translated."""
        return topic in self._names


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    parts = [f"(?:{pattern})" for pattern in patterns if pattern]
    return re.compile("|".join(parts)) if parts else None


def _matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name) is not None
