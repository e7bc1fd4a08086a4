"""Documents of one JSON Schema as columns; they are not checked against it, as Connect does not by default."""

from typing import Any

import msgspec
import pyarrow as pa

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow.extraction import extracted, plain
from schema_registry.serdes.arrow.json_columns import Exact, column_plan, column_type
from schema_registry.serdes.arrow.reading import Bad, Read, SchemaReader, bodies_list, merged
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_plan import Plan
from schema_registry.serdes.json_values import reader

_FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def json_schema_reader(schema: JsonSchema) -> SchemaReader:
    """What reads documents of a schema; raises UnusableSchema."""
    return _JsonSchemaReader(column_plan(schema))


class _JsonSchemaReader:
    def __init__(self, plan: Plan) -> None:
        self.type = column_type(plan)
        exact = Exact(plan)
        self._extract = exact.extract
        self._decode = msgspec.json.Decoder(exact.type).decode
        self._read = reader(plan)

    def read(self, bodies: pa.Array) -> Read:
        """Read documents."""
        records = bodies_list(bodies)
        try:
            return extracted(list(map(self._decode, records)), range(len(records)), self._extract)
        except _FAULTS:
            return self._mixed(records)

    def _mixed(self, records: list[bytes]) -> Read:
        """Some documents are no JSON, or not of exactly the types that the schema says."""
        documents: list[Any] = []
        rows: list[int] = []
        others: list[int] = []
        for row, record in enumerate(records):
            try:
                documents.append(self._decode(record))
                rows.append(row)
            except _FAULTS:
                others.append(row)
        return merged(extracted(documents, rows, self._extract), self._careful(records, others))

    def _careful(self, records: list[bytes], rows: list[int]) -> Read:
        values: list[Any] = []
        good: list[int] = []
        bad: Bad = []
        for row in rows:
            try:
                values.append(self._read(records[row], 0))
                good.append(row)
            except InvalidData as error:
                bad.append((row, error))
        read = extracted(values, good, plain(self.type))
        return read._replace(bad=bad + read.bad)
