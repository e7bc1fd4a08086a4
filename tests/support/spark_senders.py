"""Ways of orders into topics: Confluent's serializers and client, and both APIs of the REST proxy."""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, Self

import httpx2
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.spark_orders import AVRO_KEY, Format, message_class, schema, view
from tests.support.spark_records import OrderRecord, Place, Spoiling

Acknowledged = tuple[Place, OrderRecord]
_TIMEOUT_S: Final = 60.0
_PREFIX: Final = 5
_UNKNOWN_ID: Final = (2**31 - 7).to_bytes(4, "big")
_V2: Final = {"avro": "avro", "protobuf": "protobuf", "json": "jsonschema"}
_V3: Final = {"avro": "AVRO", "protobuf": "PROTOBUF", "json": "JSONSCHEMA"}


class Serializing:
    """Keys and values as Confluent's serializers write them, and spoiled where they are to be bad."""

    def __init__(self, registry: str) -> None:
        self._registry = SchemaRegistryClient({"url": registry})
        self._serializers: dict[tuple[Format, int], Callable[..., bytes]] = {}
        self._keys = AvroSerializer(self._registry, AVRO_KEY)

    def close(self) -> None:
        """Leave no connection open."""
        self._registry.close()

    def key(self, record: OrderRecord, topic: str) -> bytes | None:
        """The bytes of a record's key."""
        if record.key is None or isinstance(record.key, str):
            return record.key.encode() if record.key is not None else None
        data: bytes = self._keys(record.key, SerializationContext(topic, MessageField.KEY))
        return data

    def value(self, record: OrderRecord, topic: str) -> bytes | None:
        """The bytes of a record's value."""
        if record.fields is None:
            return None
        where = SerializationContext(topic, MessageField.VALUE)
        if record.format == "protobuf":
            data = self._serializer(record)(message_class(record.version)(**record.fields), where)
        else:
            data = self._serializer(record)(dict(record.fields), where)
        return spoil(data, record.spoiled)

    def _serializer(self, record: OrderRecord) -> Callable[..., bytes]:
        key = (record.format, record.version)
        if key not in self._serializers:
            self._serializers[key] = self._new_serializer(*key)
        return self._serializers[key]

    def _new_serializer(self, format_: Format, version: int) -> Callable[..., bytes]:
        makers: dict[Format, Callable[[], Any]] = {
            "avro": lambda: AvroSerializer(self._registry, schema("avro", version)),
            "json": lambda: JSONSerializer(schema("json", version), self._registry),
            "protobuf": lambda: ProtobufSerializer(message_class(version), self._registry),
        }
        serializer: Callable[..., bytes] = makers[format_]()
        return serializer


def spoil(data: bytes, how: Spoiling | None) -> bytes:
    """Data that is bad in a way."""
    match how:
        case "no magic byte":
            return b"\x7f" + data[1:]
        case "truncated":
            return data[:-1]
        case "unknown schema id":
            return data[:1] + _UNKNOWN_ID + data[_PREFIX:]
        case "wrong type":
            return data[:_PREFIX] + json.dumps({**json.loads(data[_PREFIX:]), "id": "no integer"}).encode()
        case _:
            return data


class ConfluentSender:
    """confluent-kafka with Confluent's serializers: the only one that sends bad records."""

    def __init__(self, bootstrap: str, registry: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
                "partitioner": "murmur2_random",  # As the REST proxy and all of Java: a key is in one partition.
            }
        )
        self._serializing = Serializing(registry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._serializing.close()

    def send(self, topic: str, records: Iterable[OrderRecord]) -> list[Acknowledged]:
        """Send records and wait until all are acknowledged."""
        sent: list[Acknowledged] = []
        failures: list[KafkaError] = []

        def when_delivered(record: OrderRecord) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failures.append(error)
                else:
                    sent.append((Place(topic, message.partition() or 0, message.offset() or 0), record))

            return delivered

        for record in records:
            self._producer.produce(
                topic,
                key=self._serializing.key(record, topic),
                value=self._serializing.value(record, topic),
                headers=list(record.headers),
                on_delivery=when_delivered(record),
            )
            self._producer.poll(0)
        assert self._producer.flush(_TIMEOUT_S) == 0, "records were not acknowledged in time"
        assert not failures, failures[:3]
        return sent


class RestSender:
    """Both APIs of the REST proxy."""

    def __init__(self, proxy: str) -> None:
        self._http = httpx2.Client(base_url=proxy, timeout=_TIMEOUT_S)
        self._cluster: str = self._http.get("/v3/clusters").json()["data"][0]["cluster_id"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send_v2(self, topic: str, records: Sequence[OrderRecord]) -> list[Acknowledged]:
        """API v2, records of one version in one request; it has no headers, and keys are of the values' format."""
        sent: list[Acknowledged] = []
        for (format_, version), group in groupby(records, lambda record: (record.format, record.version)):
            some = list(group)
            body: dict[str, Any] = {"value_schema": schema(format_, version)}
            if format_ == "avro":
                body["key_schema"] = AVRO_KEY
            body["records"] = [{"key": record.key, "value": _view(record)} for record in some]
            kind = {"Content-Type": f"application/vnd.kafka.{_V2[format_]}.v2+json"}
            answer = self._http.post(f"/topics/{topic}", content=json.dumps(body).encode(), headers=kind)
            assert answer.is_success, answer.text
            offsets = answer.json()["offsets"]
            assert len(offsets) == len(some)
            assert all(told.get("error") is None for told in offsets), offsets
            places = [Place(topic, told["partition"], told["offset"]) for told in offsets]
            sent += zip(places, some, strict=True)
        return sent

    def send_v3(self, topic: str, records: Sequence[OrderRecord]) -> list[Acknowledged]:
        """API v3, many records in one body."""
        content = "".join(json.dumps(_body_v3(record)) for record in records).encode()
        path = f"/v3/clusters/{self._cluster}/topics/{topic}/records"
        answer = self._http.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.is_success, answer.text
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["error_code"] for line in lines] == [200] * len(records), lines[-1]
        places = [Place(topic, line["partition_id"], line["offset"]) for line in lines]
        return list(zip(places, records, strict=True))


def _view(record: OrderRecord) -> dict[str, Any] | None:
    return None if record.fields is None else view(record.fields, record.format)


def _body_v3(record: OrderRecord) -> dict[str, Any]:
    value = {"type": _V3[record.format], "schema": schema(record.format, record.version), "data": _view(record)}
    body: dict[str, Any] = {"value": value if record.fields is not None else {"type": "BINARY", "data": None}}
    if isinstance(record.key, str):
        body["key"] = {"type": "STRING", "data": record.key}
    elif record.key is not None:
        body["key"] = {"type": "AVRO", "schema": AVRO_KEY, "data": record.key}
    body["headers"] = [{"name": name, "value": base64.b64encode(data).decode()} for name, data in record.headers]
    return body
