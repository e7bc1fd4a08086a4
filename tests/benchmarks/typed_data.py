"""A record of 15 fields as bytes of Avro, Protobuf and JSON Schema, and back: in each shape, on one core.

It needs no server but a registry of a few lines, so two checkouts can be compared by running it in turns.
"""

import datetime as dt
import random
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal,
    struct,
)
from connect.converters.avro.converter import AvroConverter
from connect.converters.json_schema.converter import JsonSchemaConverter
from connect.converters.protobuf.converter import ProtobufConverter
from schema_registry.client.registry_client import RegistryClient
from schema_registry.serdes.arrow.schemas import add_prefix, column_reader, column_writer
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.serializer import writer_by
from schema_registry.serdes.settings import parse
from streams.spark.decoding.registry import RegistryDecoder
from streams.spark.decoding.spec import DecoderSpec
from tests.benchmarks.measure import Row, Sizes
from tests.support.fake_registry import FakeRegistry

_CONVERTERS: Final = {
    "avro": ("Avro", AvroConverter),
    "protobuf": ("Protobuf", ProtobufConverter),
    "json_schema": ("JSON Schema", JsonSchemaConverter),
}
_ORDER: Final = {
    "id": INT64,
    "customer": STRING,
    "street": STRING,
    "city": OPTIONAL_STRING,
    "quantity": INT32,
    "weight": FLOAT64,
    "is_paid": BOOLEAN,
    "signature": BYTES,
    "ordered_at": TIMESTAMP,
    "due": DATE,
    "coupon": OPTIONAL_STRING,
    "parent": OPTIONAL_INT64,
    "tags": array(STRING),
}
_FULL: Final = struct({**_ORDER, "opens": TIME, "price": decimal(2)}, name="Order")
_PLAIN: Final = struct({**_ORDER, "opens": STRING, "price": FLOAT64}, name="Order")
"""JSON Schema has no columns for decimals."""


def typed_data(directory: Path, sizes: Sizes) -> Iterator[Row]:
    """Time per record, in each format and shape."""
    count = max(sizes.connect_records // 25, 100)
    with FakeRegistry() as registry:
        for name in _CONVERTERS:
            yield from _format(name, registry.url, count)


def _format(name: str, url: str, count: int) -> Iterator[Row]:
    label, kind = _CONVERTERS[name]
    schema = _PLAIN if name == "json_schema" else _FULL
    values = [_value(random.Random(number), is_plain=schema is _PLAIN) for number in range(count)]
    topic = f"orders-{name}"
    converter = kind({"schema.registry.url": url}, is_key=False)
    written = [converter.from_connect(topic, schema, value) for value in values]
    records: list[bytes] = [data for data in written if data is not None]
    yield _row(
        f"{label}: Connect value to bytes", lambda: [converter.from_connect(topic, schema, v) for v in values], count
    )
    yield _row(
        f"{label}: bytes to Connect value", lambda: [converter.to_connect(topic, data) for data in records], count
    )
    converter.close()

    settings, _ = parse({"schema.registry.url": url})
    with RegistryClient(settings) as client:
        reader = Deserializer(client)
        views = [found.value for data in records if (found := reader.deserialize_json(data)) is not None]
        registered = reader.reader(int.from_bytes(records[0][1:5], "big")).registered
        writer = writer_by(registered, client)
        codec, schema_of_data, start = writer.codec, writer.schema, len(writer.prefix)
        yield _row(f"{label}: JSON to bytes", lambda: [codec.encode_json(view) for view in views], count)
        yield _row(f"{label}: bytes to JSON", lambda: [reader.deserialize_json(data) for data in records], count)

    decoder = RegistryDecoder(DecoderSpec.of(name, {"schema.registry.url": url}))
    column = pa.array(records, pa.binary())
    yield _row(f"{label}: bytes to Arrow", lambda: decoder.decode(column, topic), count)
    decoder.close()
    rows = column_reader(schema_of_data).read(pa.array([data[start:] for data in records], pa.binary())).data
    columns = column_writer(schema_of_data)
    yield _row(f"{label}: Arrow to bytes", lambda: add_prefix(columns.write(rows), writer.prefix), count)


def _row(what: str, action: Callable[[], object], count: int) -> Row:
    """The best of several runs: whatever else the machine does can only make one slower."""
    action()
    times = []
    for _ in range(7):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    how = f"{count:,} records of 15 fields, processor time, best of 7 runs"
    return Row(what=what, result=f"{min(times) / count * 1e6:.2f} µs", how=how)


def _value(chance: random.Random, *, is_plain: bool) -> dict[str, Any]:
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=chance.randrange(10**10))
    opening, cents = moment.time(), Decimal(chance.randrange(10**6)).scaleb(-2)
    return {
        "id": chance.getrandbits(40),
        "customer": f"customer {chance.randrange(10**6)}",
        "street": f"{chance.randrange(200)} Long Street",
        "city": chance.choice(["Lisboa", "Porto", None]),
        "quantity": chance.randrange(100),
        "weight": chance.random() * 100,
        "is_paid": chance.random() < 0.5,
        "signature": chance.randbytes(16),
        "ordered_at": moment,
        "due": moment.date(),
        "coupon": None,
        "parent": chance.choice([None, chance.getrandbits(30)]),
        "tags": [f"tag{number}" for number in range(chance.randrange(4))],
        "opens": opening.isoformat() if is_plain else opening,
        "price": float(cents) if is_plain else cents,
    }
