"""Histories: what each client tried and saw, one JSON document per line, appended and never changed.

Every line has `t` (the machine's monotonic clock, the same for all processes) and `op`. A record is identified by one
number, its producer's number and its sequence; so is a transaction, by its client's number and a count.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec

_SEQUENCE_BITS: Final = 40
_FILLER_BYTES: Final = 40


class History:
    """Appends to one file; several threads may write."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def write(self, op: str, **fields: object) -> None:
        """Add an event. It is in the file, and so survives a kill of this process, when this returns."""
        line = self._encoder.encode({"t": round(time.monotonic(), 4), "op": op, **fields}) + b"\n"
        with self._lock:
            self._file.write(line)


def read_history(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a file in their order; a last line that was cut off by a kill is left out."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decoder.decode(line)


def identify(client: int, count: int) -> int:
    """The number of a client's record or transaction."""
    return client << _SEQUENCE_BITS | count


def describe(number: int) -> str:
    """A record or transaction for people: `client:count`."""
    return f"{number >> _SEQUENCE_BITS}:{number & (1 << _SEQUENCE_BITS) - 1}"


def encode_value(record: int, transaction: int = 0) -> bytes:
    """The value of a record: its number, the transaction that wrote it, and filler that shows damage."""
    return b"%d:%d:%s" % (record, transaction, b"x" * _filler_bytes(record))


def decode_value(value: bytes) -> tuple[int, int]:
    """The record and the transaction in a value; raises ValueError if a single byte is not as it was written."""
    record, transaction, filler = value.split(b":")
    found = int(record), int(transaction)
    if filler.count(b"x") != len(filler) or len(filler) != _filler_bytes(found[0]):
        raise ValueError(f"damaged value of record {describe(found[0])}")
    return found


def _filler_bytes(record: int) -> int:
    return _FILLER_BYTES + record % 61
