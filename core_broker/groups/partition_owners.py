"""The owners of partitions in a KIP-848 group, so that none ever has two owners.

A member owns a partition from its assignment until it has confirmed the revocation, has left, or was fenced. It still
owns partitions that it has yet to revoke.
"""

from core_broker.groups.assignors import Assignment


class PartitionOwners:
    """The owners by topic id and partition."""

    def __init__(self) -> None:
        self._owners: dict[bytes, dict[int, str]] = {}

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        """The member that owns a partition, if any does."""
        owners = self._owners.get(topic_id)
        return None if owners is None else owners.get(partition)

    def is_free_for(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """Whether no other member owns it."""
        return self.owner_of(topic_id, partition) in (None, member_id)

    def take(self, member_id: str, *assignments: Assignment) -> None:
        """Make a member the owner of partitions."""
        for assignment in assignments:
            for topic_id, partitions in assignment.items():
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def release(self, member_id: str, *assignments: Assignment) -> None:
        """Free partitions that the member owns; those owned by others are not affected."""
        for assignment in assignments:
            for topic_id, partitions in assignment.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)
