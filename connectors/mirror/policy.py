"""Names of topics in another cluster, and where a topic comes from by its name."""

from dataclasses import dataclass
from typing import Final

from typing_extensions import override


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Copies have the alias of their source in front: `source.orders`."""

    source: str
    separator: str = "."
    internal_separator: str = "."
    heartbeats: str = "heartbeats"

    def remote(self, topic: str) -> str:
        """The name in the target of a topic of the source."""
        return f"{self.source}{self.separator}{topic}"

    def origin(self, topic: str) -> str | None:
        """The alias of the cluster that a topic was mirrored from; None when it was not."""
        parts = topic.split(self.separator)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream(self, topic: str) -> str | None:
        """The name of a mirrored topic in the cluster that it was mirrored from; None when it was not mirrored."""
        origin = self.origin(topic)
        return None if origin is None else topic[len(origin) + len(self.separator) :]

    def original(self, topic: str) -> str:
        """The name of a topic where it was first written."""
        upstream = self.upstream(topic)
        return topic if upstream is None or upstream == topic else self.original(upstream)

    def comes_from(self, alias: str, topic: str) -> bool:
        """Whether a topic was mirrored from a cluster, directly or through others."""
        origin, upstream = self.origin(topic), self.upstream(topic)
        if origin is None or upstream is None:
            return False
        return origin == alias or (upstream != topic and self.comes_from(alias, upstream))

    def is_heartbeats(self, topic: str) -> bool:
        """Whether a topic holds heartbeats, of any cluster."""
        return self.original(topic) == self.heartbeats

    def is_internal(self, topic: str) -> bool:
        """Whether a topic holds no data of users."""
        own = f"{self.internal_separator}internal"
        return topic.startswith(("__", ".")) or topic.endswith(("-internal", ".internal", own))

    def offset_syncs_topic(self, alias: str) -> str:
        """The topic that maps offsets of the source to offsets of the target."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self.internal_separator}internal"

    def checkpoints_topic(self) -> str:
        """The topic with the committed offsets of the source's groups, translated to the target."""
        return f"{self.source}{self.internal_separator}checkpoints{self.internal_separator}internal"


class IdentityPolicy(Policy):
    """Copies have the names of their originals, except heartbeats, so names do not show where a topic comes from."""

    __slots__ = ()

    @override
    def remote(self, topic: str) -> str:
        return Policy.remote(self, topic) if self._is_named_heartbeats(topic) else topic

    @override
    def origin(self, topic: str) -> str | None:
        return Policy.origin(self, topic) if self._is_named_heartbeats(topic) else self.source

    @override
    def upstream(self, topic: str) -> str | None:
        return Policy.upstream(self, topic) if self._is_named_heartbeats(topic) else topic

    def _is_named_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats)


POLICIES: Final[dict[str, type[Policy]]] = {
    "DefaultReplicationPolicy": Policy,
    "IdentityReplicationPolicy": IdentityPolicy,
}


def policy_of(class_name: str, *, source: str, separator: str, internal_separator: str, heartbeats: str) -> Policy:
    """The policy of a Java class name; only its last part counts, since the package has changed over time."""
    chosen = POLICIES[class_name.rpartition(".")[2]]
    return chosen(source=source, separator=separator, internal_separator=internal_separator, heartbeats=heartbeats)
