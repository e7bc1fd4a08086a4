"""Refuses data that this broker cannot keep, before anything on disk is changed.

Data directories may come from Apache Kafka or from a newer release. Most of it is the same, byte for byte; what this
broker does not know would be missing in its next snapshot of the metadata, or be taken for damage and cut off. So
everything is read once before the first file is touched, and the error says what stands in the way.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from core_broker.cluster import snapshots
from core_broker.cluster.features import unsupported
from core_broker.cluster.metadata import MetadataDraft, MetadataImage, ResourceType
from core_broker.cluster.metadata_log import METADATA_DIRECTORY
from core_broker.cluster.metadata_records import UnsupportedRecordError, decode_record
from core_broker.cluster.quorum_state import QuorumStateError, UnsupportedQuorumStateError, read_quorum_state
from core_broker.errors import BrokerError, ErrorCode
from core_broker.log.log_directory import parse_partition_name
from core_broker.log.log_file import LogFile
from core_broker.log.scan import scan
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.records import (
    LENGTH_BYTES,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    CorruptBatch,
    Record,
    check_crc,
    read_records,
)
from core_broker.settings import BrokerSettings

_TIERED: Final = "remote.storage.enable"
_NAMES_SHOWN: Final = 5


def refuse_unsupported_data(settings: BrokerSettings) -> None:
    """Raise BrokerError if a data directory holds what this broker does not support; changes nothing."""
    directory = Path(settings.metadata_log_dir or settings.log_dirs[0]) / METADATA_DIRECTORY
    if directory.is_dir():
        try:
            _check_quorum_state(directory)
            image = read_image(directory)
        except (UnsupportedRecordError, UnsupportedQuorumStateError) as error:
            raise _refusal(directory, str(error), "use the software that wrote it, or a newer Caudal") from error
        _check_features(directory, image)
        _check_tiered_topics(directory, image, settings)
    for log_dir in map(Path, settings.log_dirs):
        _check_record_format(log_dir)


def _check_quorum_state(directory: Path) -> None:
    try:
        read_quorum_state(directory)
    except UnsupportedQuorumStateError:
        raise
    except QuorumStateError:
        pass  # damaged, which the start deals with


def _check_features(directory: Path, image: MetadataImage) -> None:
    for name, level, supported in unsupported(image.features):
        verb = "downgrade" if level > supported else "upgrade"
        command = f"`kafka-features.sh --bootstrap-server … {verb} --feature {name}={supported}`"
        reason = f"the cluster uses {name}={level}, which this broker does not support"
        raise _refusal(directory, reason, f"start Apache Kafka, run {command}, and stop it")


def _check_tiered_topics(directory: Path, image: MetadataImage, settings: BrokerSettings) -> None:
    tiered = [
        name
        for name, topic in sorted(image.topics.items())
        if image.config_of(ResourceType.TOPIC, name).get(_TIERED) == "true"
        and (settings.is_controller or any(settings.node_id in p.replicas for p in topic.partitions.values()))
    ]
    if tiered:
        reason = f"tiered storage is not supported, but {_TIERED}=true for {_shown(tiered)}"
        raise _refusal(directory, reason, "start Apache Kafka, disable it for these topics, and stop it")


def _check_record_format(log_dir: Path) -> None:
    """The oldest batch of each log shows it: Kafka has written the current format since 0.11."""
    old = [path.name for path in _partition_directories(log_dir) if _first_magic(path) in range(MAGIC)]
    if old:
        reason = f"records from before Kafka 0.11, whose format is not supported, are in {_shown(sorted(old))}"
        raise _refusal(log_dir, reason, "start Apache Kafka, copy these topics or delete these records, and stop it")


def _refusal(directory: Path, reason: str, advice: str) -> BrokerError:
    text = f"{directory} cannot be used, and nothing in it was changed: {reason}; {advice}"
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, text)


def _shown(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


# -- reading -----------------------------------------------------------------------------------------------------------


def read_image(directory: Path) -> MetadataImage:
    """The state at the end of the metadata log, committed or not; without what is damaged, which the start reports."""
    newest = MetadataImage(cluster_id="")
    for snapshot in reversed(snapshots.list_snapshots(directory)):
        try:
            newest = snapshots.decode_snapshot((directory / snapshot.file_name).read_bytes(), snapshot, "").image
            break
        except UnsupportedRecordError:
            raise
        except (CorruptBatch, DecodeError, OSError):
            continue
    draft = MetadataDraft(newest)
    try:
        for header, record in _records_after(directory, newest.offset):
            if header.is_control:
                snapshots.voters_in(record)
            else:
                draft.apply(decode_record(record.value or b""))
    except UnsupportedRecordError:
        raise
    except (CorruptBatch, DecodeError):
        pass
    return draft.finish(offset=newest.offset, epoch=newest.epoch)


def _records_after(directory: Path, offset: int) -> Iterator[tuple[BatchHeader, Record]]:
    for path in sorted(directory.glob("*.log")):
        for _, fields, batch in scan(LogFile(path), 0, path.stat().st_size):
            header = BatchHeader(0, *fields)
            if header.last_offset <= offset:
                continue
            if not check_crc(batch, header):
                raise CorruptBatch(f"{path}: the checksum of the batch at offset {header.base_offset} does not match")
            for record in read_records(batch, header):
                yield header, record


def _partition_directories(log_dir: Path) -> Iterator[Path]:
    try:
        with os.scandir(log_dir) as entries:
            yield from (Path(entry.path) for entry in entries if parse_partition_name(entry.name) is not None)
    except (FileNotFoundError, NotADirectoryError):
        return


def _first_magic(partition: Path) -> int | None:
    """The format of the first batch of a log; None if it has none."""
    with os.scandir(partition) as entries:
        first = min((entry.name for entry in entries if entry.name.endswith(".log")), default=None)
    if first is None:
        return None
    fd = os.open(partition / first, os.O_RDONLY | os.O_CLOEXEC)
    try:
        start = os.pread(fd, MAGIC_POSITION + 1, 0)
    finally:
        os.close(fd)
    has_batch = len(start) > MAGIC_POSITION and int.from_bytes(start[LENGTH_BYTES - 4 : LENGTH_BYTES], "big") > 0
    return start[MAGIC_POSITION] if has_batch else None
