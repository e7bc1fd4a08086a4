"""Shapes of rows that do not fit into their tables: told by the driver, minded by executors."""

from collections.abc import Iterable

import msgspec

from connectors.spark.spec import SinkFolders
from connectors.spark.staging import opened_for_reading
from streams.spark.files import Files


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of this shape cannot be written to this table."""

    table: str
    fingerprint: str
    reason: str


def refused_in(folders: SinkFolders) -> dict[tuple[str, str], str]:
    """The reasons by table and shape, as an executor reads them."""
    try:
        with opened_for_reading(folders.refused) as stream:
            return _reasons(stream.read())
    except FileNotFoundError:
        return {}


class Refusals:
    """What is refused during one run; a table may be another one when the next begins. For the driver."""

    def __init__(self, files: Files, folders: SinkFolders) -> None:
        self._files = files
        self._path = folders.refused

    def read(self) -> dict[tuple[str, str], str]:
        """The reasons, by table and shape."""
        if not self._files.exists(self._path):
            return {}
        return _reasons(self._files.read(self._path))

    def add(self, refused: Iterable[Refusal]) -> None:
        """Refuse more."""
        known = {key: Refusal(table=key[0], fingerprint=key[1], reason=reason) for key, reason in self.read().items()}
        known.update({(refusal.table, refusal.fingerprint): refusal for refusal in refused})
        self._files.write(self._path, msgspec.json.encode(list(known.values())))

    def clear(self) -> None:
        """Refuse nothing any more."""
        self._files.delete(self._path)


def _reasons(data: bytes) -> dict[tuple[str, str], str]:
    refused = msgspec.json.decode(data, type=list[Refusal])
    return {(refusal.table, refusal.fingerprint): refusal.reason for refusal in refused}
