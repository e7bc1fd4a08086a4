"""What readers of one schema share: values to arrays, and which of them do not fit."""

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from schema_registry.serdes.arrow.binary import Rows

Bad = list[tuple[int, Exception]]
NOT_FITTING = (pa.ArrowException, ArithmeticError, TypeError, ValueError)
"""What Arrow raises about values that do not fit."""


class Read(NamedTuple):
    """What became of the data of one schema."""

    data: pa.Array
    rows: Rows
    """Which of the given are in `data`, in ascending order."""
    bad: Bad


class SchemaReader(Protocol):
    """Reads data of one schema."""

    @property
    def type(self) -> pa.DataType:
        """What the data becomes."""
        ...

    def read(self, bodies: pa.Array) -> Read:
        """Read binary values without nulls, which begin behind what names the schema."""
        ...


def all_rows(count: int) -> Rows:
    """All of so many."""
    return np.arange(count, dtype=np.int64)


def bodies_list(bodies: pa.Array) -> list[bytes]:
    """Binary values as bytes: several times as fast as `to_pylist`."""
    made: list[bytes] = bodies.to_numpy(zero_copy_only=False).tolist()
    return made


def merged(first: Read, second: Read) -> Read:
    """Two that were read in different ways, in the order of their rows."""
    bad = first.bad + second.bad
    if not len(second.rows):
        return first._replace(bad=bad)
    rows = np.concatenate([first.rows, second.rows])
    order = np.argsort(rows, kind="stable")
    return Read(pa.concat_arrays([first.data, second.data]).take(pa.array(order)), rows[order], bad)
