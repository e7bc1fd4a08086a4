"""The interface of all formats for many records at once, and what serves those that have nothing faster."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from schema_registry.serdes.arrow.reading import bodies_list
from streams.formats.arrays import array_of, bounded_type, values_of
from streams.formats.fitting import as_unfit, fitting, nullable
from streams.formats.layout import Layout
from streams.formats.parts import PartCodec


class DecodedPart(NamedTuple):
    """Columns with a row for each record, null where that is bad, and why it is."""

    columns: list[pa.Array]
    bad: dict[int, str]


class PartColumns(Protocol):
    """Reads and writes keys or values, many at once."""

    def decode(self, data: pa.Array) -> DecodedPart:
        """Decode binary values without nulls."""
        ...

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """The bytes of rows; raises ValueError or ArrowException."""
        ...


class ByRecord:
    """One record after the other, by the codec for single records."""

    def __init__(self, layout: Layout, codec: PartCodec) -> None:
        self._kinds = [bounded_type(column.sql_type) for column in layout.columns]
        self._fits = [nullable(fitting(kind)) for kind in self._kinds]
        self._codec = codec

    def decode(self, data: pa.Array) -> DecodedPart:
        """Decode records."""
        nothing = [None] * len(self._kinds)
        rows: list[Sequence[object]] = []
        bad: dict[int, str] = {}
        for row, record in enumerate(bodies_list(data)):
            try:
                values = self._codec.decode(record)
                # A decimal may have more digits than Spark holds.
                rows.append(nothing if values is None else [f(v) for f, v in zip(self._fits, values, strict=True)])
            except (ValueError, ArithmeticError) as error:
                rows.append(nothing)
                bad[row] = str(as_unfit(error)) if isinstance(error, ValueError) else str(error)
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in self._kinds]
        return DecodedPart([array_of(kind, column) for kind, column in zip(self._kinds, columns, strict=True)], bad)

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Encode rows."""
        values = [values_of(kind, column) for kind, column in zip(self._kinds, columns, strict=True)]
        return pa.array([self._codec.encode(row) for row in zip(*values, strict=True)], pa.binary())
