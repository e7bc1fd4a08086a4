"""The quorum-state file of the metadata log: leader, epoch and vote, in Kafka's JSON format."""

import base64
import os
from pathlib import Path
from typing import Final

import msgspec

from core_broker.protocol.primitives import ZERO_UUID
from core_broker.protocol.stored.quorum_state import QuorumStateData

FILE_NAME: Final = "quorum-state"
_VERSIONS_READ: Final = (0, 1)


class QuorumStateError(ValueError):
    """The file cannot be read; without it an epoch could be used twice."""


class UnsupportedQuorumStateError(QuorumStateError):
    """The file has the format of newer software."""


class _QuorumStateFile(msgspec.Struct, rename="camel"):
    leader_id: int = -1
    leader_epoch: int = 0
    voted_id: int = -1
    voted_directory_id: str = ""
    data_version: int = msgspec.field(default=1, name="data_version")


def read_quorum_state(directory: Path) -> QuorumStateData | None:
    """The stored state, None before the first start. Raises QuorumStateError."""
    path = directory / FILE_NAME
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_QuorumStateFile)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise QuorumStateError(f"{path} cannot be read: {error}") from error
    if stored.data_version not in _VERSIONS_READ:
        text = f"{path} has data_version {stored.data_version}; versions 0 and 1 are supported"
        raise UnsupportedQuorumStateError(text)
    try:
        voted_directory = base64.urlsafe_b64decode(stored.voted_directory_id + "==") or ZERO_UUID
    except ValueError as error:
        raise QuorumStateError(f"{path} cannot be read: votedDirectoryId is not an id") from error
    return QuorumStateData(
        leader_id=stored.leader_id,
        leader_epoch=stored.leader_epoch,
        voted_id=stored.voted_id,
        voted_directory_id=voted_directory,
    )


def write_quorum_state(directory: Path, state: QuorumStateData) -> None:
    """Replace the file atomically; on return the new state is on disk."""
    text = msgspec.json.encode(
        _QuorumStateFile(
            leader_id=state.leader_id,
            leader_epoch=state.leader_epoch,
            voted_id=state.voted_id,
            voted_directory_id=base64.urlsafe_b64encode(state.voted_directory_id or ZERO_UUID).decode().rstrip("="),
        )
    )
    write_durably(directory / FILE_NAME, text, temporary=directory / f"{FILE_NAME}.tmp")


def write_durably(path: Path, data: bytes | bytearray, *, temporary: Path) -> None:
    """Write a file so that after a crash there is either the old version or the new one."""
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
