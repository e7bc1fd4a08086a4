"""Schemas of rows that do not fit their tables: written by the driver, read by executors."""

from collections.abc import Iterable

import msgspec

from connectors.spark.spec import SinkFolders
from streams.spark.commits.executor_files import open_input
from streams.spark.files import Files


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with this schema cannot be written to this table."""

    table: str
    fingerprint: str
    reason: str


Reasons = dict[tuple[str, str], str]
"""Why rows are refused, by table and fingerprint of the schema."""


def refused_schemas(folders: SinkFolders) -> Reasons:
    """The refusals as executors see them."""
    try:
        with open_input(folders.refused) as stream:
            return _parse(stream.read())
    except FileNotFoundError:
        return {}


class Refusals:
    """The refusals of one run, on the driver; tables may have changed before the next run."""

    def __init__(self, files: Files, folders: SinkFolders) -> None:
        self._files = files
        self._path = folders.refused

    def add(self, refused: Iterable[Refusal]) -> None:
        """Refuse more schemas."""
        known = _parse(self._files.read(self._path)) if self._files.exists(self._path) else {}
        known.update({(refusal.table, refusal.fingerprint): refusal.reason for refusal in refused})
        refusals = [Refusal(table=key[0], fingerprint=key[1], reason=reason) for key, reason in known.items()]
        self._files.write(self._path, msgspec.json.encode(refusals))

    def clear(self) -> None:
        """Refuse nothing any more."""
        self._files.delete(self._path)


def _parse(data: bytes) -> Reasons:
    refused = msgspec.json.decode(data, type=list[Refusal])
    return {(refusal.table, refusal.fingerprint): refusal.reason for refusal in refused}
