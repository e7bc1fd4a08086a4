"""The SCRAM credentials by which others log in here: those of the metadata, and at the start those on the disk.

Controllers that log in at each other by SCRAM could not form a quorum otherwise. Before there is one, a node does not
know which of the last records of its log are committed, and a new cluster has no records, only its first users.
"""

from collections.abc import Iterable, Mapping, Sequence

from core_broker.cluster.carried_records import CarriedKey, carried
from core_broker.cluster.features import METADATA_VERSION
from core_broker.cluster.metadata_records import decode_record
from core_broker.cluster.quorum import MetadataQuorum
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import DecodeError


class LoginRecords:
    """Call it for the records of credentials that count at the time."""

    def __init__(self, metadata: MetadataQuorum, first_records: Sequence[Message]) -> None:
        self._metadata = metadata
        self._at_start: Mapping[CarriedKey, Message] = _kept({}, first_records)

    def read_disk(self) -> None:
        """Take what the log has beyond the image, whether committed or not; call it once the log is open."""
        metadata = self._metadata
        if self._is_cluster_known:
            return
        found = dict(self._at_start)
        found.update(metadata.image.carried)
        for _, records in metadata.log.read_records(metadata.image.offset + 1, metadata.end_offset):
            found = _kept(found, (message for record in records for message in _decoded(record.value)))
        self._at_start = found

    def __call__(self) -> Mapping[CarriedKey, Message]:
        """The records, by what they are about."""
        if not self._is_cluster_known:
            return self._at_start
        self._at_start = {}
        return self._metadata.image.carried

    @property
    def _is_cluster_known(self) -> bool:
        """Whether the image has everything committed, of a cluster that exists."""
        metadata = self._metadata
        return metadata.caught_up.is_set() and METADATA_VERSION in metadata.image.features


def _kept(before: Mapping[CarriedKey, Message], records: Iterable[Message]) -> dict[CarriedKey, Message]:
    found = dict(before)
    for record in records:
        entry = carried(record)
        if entry is not None:
            key, kept = entry
            found.pop(key, None)
            if kept is not None:
                found[key] = kept
    return found


def _decoded(value: bytes | memoryview | None) -> Iterable[Message]:
    try:
        return [decode_record(value or b"")]
    except DecodeError:
        return []  # reported when it is applied
