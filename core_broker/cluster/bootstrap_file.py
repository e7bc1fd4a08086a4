"""`bootstrap.checkpoint`: the SCRAM credentials that a new cluster begins with, as `kafka-storage format` writes it.

Where all listeners ask for a login, the first user cannot be created over the network. So its credential is put here
before the first start; the first active controller writes it into the metadata, and every node removes the file then.
Only credentials are taken from it: the feature levels are those of `initial.release.version`.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from core_broker.cluster import snapshots
from core_broker.cluster.features import METADATA_VERSION, initial_features
from core_broker.cluster.metadata import MetadataImage
from core_broker.cluster.metadata_log import METADATA_DIRECTORY
from core_broker.cluster.metadata_records import UnsupportedRecordError, decode_record, encode_record
from core_broker.cluster.quorum_state import write_durably
from core_broker.cluster.unsupported_data import read_image
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.checkpoints import sync_directory
from core_broker.log.log_directory import LogDirectory
from core_broker.protocol.fields import Message
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import CorruptBatch, Record, build_batch, check_crc, parse_batches, read_records
from core_broker.protocol.stored.control import SnapshotFooterRecord, SnapshotHeaderRecord
from core_broker.protocol.stored.metadata import FeatureLevelRecord, UserScramCredentialRecord
from core_broker.security.sasl.scram import BY_NAME, ITERATIONS_MAX, ITERATIONS_MIN, make_credential
from core_broker.settings import BrokerSettings

log = logging.getLogger(__name__)

FILE_NAME: Final = "bootstrap.checkpoint"
_BYTES_MAX: Final = 64 * 1024 * 1024


class BootstrapFile:
    """The file of one node."""

    def __init__(self, directory: Path) -> None:
        """`directory` is that of the metadata log: metadata.log.dir, or else the first of log.dirs."""
        self.path = directory / FILE_NAME
        self.credentials: Sequence[UserScramCredentialRecord] = ()
        """What was read."""
        self._is_there = False

    def read(self) -> None:
        """Read the file if there is one. Raises BrokerError."""
        self._is_there = self.path.exists()
        self.credentials = [record for record in _read(self.path) if isinstance(record, UserScramCredentialRecord)]

    def remove_after_use(self, image: MetadataImage) -> None:
        """Remove the file once the cluster exists; called with each new image."""
        if METADATA_VERSION not in image.features or not self._is_there:
            return
        self._is_there = False
        unused = {
            record.name for record in self.credentials if ("scram", record.name, record.mechanism) not in image.carried
        }
        if unused:
            extra = {"path": str(self.path), "users": sorted(unused)}
            log.warning("first users were not created, because another controller has formed the cluster", extra=extra)
        try:
            self.path.unlink()
            sync_directory(self.path.parent)
        except OSError as error:
            log.error(
                "first users cannot be removed; delete the file", extra={"path": str(self.path), "reason": str(error)}
            )
        self.credentials = ()


def add_first_user(
    settings: BrokerSettings, name: str, password: str, *, mechanisms: Iterable[str], iterations: int = ITERATIONS_MIN
) -> Path:
    """Store the credentials of a user for the first start of a controller; returns the file. Raises BrokerError.

    With several controllers this is done for each, since any of them may be the first active one.
    """
    wanted = list(dict.fromkeys(mechanisms))
    _check(settings, name, password, wanted, iterations)
    directory = Path(settings.metadata_log_dir or settings.log_dirs[0])
    with closing(LogDirectory(directory)):  # locked, so that no node uses it meanwhile
        if _has_cluster(directory / METADATA_DIRECTORY):
            text = f"{directory} belongs to a cluster that exists; create users there with a running broker"
            raise BrokerError(ErrorCode.INVALID_REQUEST, text)
        file = BootstrapFile(directory)
        file.read()
        kept = {(record.name, record.mechanism): record for record in file.credentials}
        for mechanism in wanted:
            credential = make_credential(password, mechanism, iterations)
            record = UserScramCredentialRecord(
                name=name,
                mechanism=BY_NAME[mechanism].number,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )
            kept[record.name, record.mechanism] = record
        features = initial_features(settings.initial_release_version).items()
        _write(file.path, [*(FeatureLevelRecord(*feature) for feature in features), *kept.values()])
    return file.path


def _check(settings: BrokerSettings, name: str, password: str, mechanisms: Sequence[str], iterations: int) -> None:
    """Raise BrokerError unless the user can be created on this node."""
    unknown = [mechanism for mechanism in mechanisms if mechanism not in BY_NAME]
    if not settings.is_controller:
        reason = "process.roles has no controller; do this on each controller"
    elif not name:
        reason = "the name of a user must not be empty"
    elif not password:
        reason = "the password must not be empty"
    elif unknown or not mechanisms:
        reason = f"mechanisms are {' and '.join(BY_NAME)}, not {', '.join(unknown) or 'none'}"
    elif not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        reason = f"iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}, not {iterations}"
    else:
        return
    raise BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)


def _has_cluster(metadata: Path) -> bool:
    """Whether there is metadata of a cluster, committed or not. Raises BrokerError."""
    try:
        return metadata.is_dir() and METADATA_VERSION in read_image(metadata).features
    except UnsupportedRecordError as error:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{metadata} cannot be read: {error}") from error


def _read(path: Path) -> list[Message]:
    """The records in the file; none without it. Raises BrokerError."""
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise DecodeError(f"it has more than {_BYTES_MAX} bytes")
        data = path.read_bytes()
        found: list[Message] = []
        for header in parse_batches(data):
            if not check_crc(data, header):
                raise CorruptBatch(f"the batch at byte {header.position} has a wrong checksum")
            if not header.is_control:
                found += [decode_record(record.value or b"") for record in read_records(data, header)]
    except FileNotFoundError:
        return []
    except (CorruptBatch, DecodeError, OSError) as error:
        text = f"{path} cannot be read: {error}; delete it, and create the first users again"
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
    return found


def _write(path: Path, records: Sequence[Message]) -> None:
    """Replace the file, which only its owner may read: with a credential, a password can be guessed."""
    level = next(record.feature_level for record in records if isinstance(record, FeatureLevelRecord))
    first = snapshots.control_record(snapshots.CONTROL_SNAPSHOT_HEADER, SnapshotHeaderRecord(), timestamp_ms=0)
    last = snapshots.control_record(snapshots.CONTROL_SNAPSHOT_FOOTER, SnapshotFooterRecord(), timestamp_ms=0)
    data = build_batch([first], is_control=True)
    data += build_batch([Record(timestamp=0, value=encode_record(record, level)) for record in records], base_offset=1)
    data += build_batch([last], base_offset=1 + len(records), is_control=True)
    temporary = path.with_name(f"{path.name}.part")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    write_durably(path, data, temporary=temporary)
