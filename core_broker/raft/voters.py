"""Who votes in the metadata quorum (KIP-853)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from core_broker.protocol.primitives import ZERO_UUID

NO_NODE: Final = -1
"""The id of a leader or of a vote that does not exist."""


class ReplicaKey(NamedTuple):
    """A node and the log directory with its copy of the metadata log.

    A node that lost its disk returns with another directory, and must not count as the voter that it was. The zero
    directory stands for an unknown one: voters from `controller.quorum.voters` have no other.
    """

    id: int
    directory: bytes = ZERO_UUID

    def matches(self, other: "ReplicaKey") -> bool:
        """Whether both may be the same replica."""
        return self.id == other.id and (
            self.directory == other.directory or ZERO_UUID in (self.directory, other.directory)
        )


class Endpoint(NamedTuple):
    """Where a controller listens."""

    host: str
    port: int


class Voter(msgspec.Struct, frozen=True):
    """A replica that votes, and its endpoints by listener name."""

    key: ReplicaKey
    endpoints: tuple[tuple[str, Endpoint], ...] = ()
    kraft_versions: tuple[int, int] = (0, 1)
    """The lowest and highest `kraft.version` that it supports."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """Its endpoint of a listener."""
        return dict(self.endpoints).get(listener)


class VoterSet:
    """The voters at one point of the log. Never changes."""

    __slots__ = ("_by_id",)

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self._by_id: Mapping[int, Voter] = {voter.key.id: voter for voter in voters}

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._by_id == other._by_id

    def __hash__(self) -> int:
        return hash(tuple(self._by_id.values()))

    def __repr__(self) -> str:
        return f"VoterSet({list(self)})"

    def get(self, node_id: int) -> Voter | None:
        """The voter with this id."""
        return self._by_id.get(node_id)

    def has(self, key: ReplicaKey) -> bool:
        """Whether the replica votes."""
        voter = self._by_id.get(key.id)
        return voter is not None and voter.key.matches(key)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self._by_id) // 2 + 1

    def with_voter(self, voter: Voter) -> "VoterSet":
        """These voters and another, which replaces one of the same id."""
        return VoterSet({**self._by_id, voter.key.id: voter}.values())

    def without(self, node_id: int) -> "VoterSet":
        """These voters without one."""
        return VoterSet(voter for voter in self if voter.key.id != node_id)
