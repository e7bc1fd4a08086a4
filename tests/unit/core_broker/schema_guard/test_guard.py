"""Which batches of guarded topics are refused, and for which records."""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator, Iterable
from uuid import UUID

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from core_broker.errors import RECORD_ERRORS_MAX, ErrorCode, RecordsRefused
from core_broker.metrics import BrokerMetrics
from core_broker.protocol.records import Record
from core_broker.schema_guard.guard import Inspection, SchemaGuard
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings, TopicSettings
from core_broker.settings.schema_guard import RECORD_NAME, TOPIC_RECORD_NAME
from tests.support.fake_registry import FakeRegistry
from tests.support.registry import AVRO_KEY, Registered, delete_subject

VALUES = TopicSettings(confluent_value_schema_validation=True)
KEYS = TopicSettings(confluent_key_schema_validation=True)


def framed(schema_id: int, payload: bytes = b"payload") -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def values(*payloads: bytes | None) -> list[Record]:
    return [Record(value=payload) for payload in payloads]


@pytest.fixture
async def guard(settings: BrokerSettings, clock: ManualClock) -> AsyncIterator[SchemaGuard]:
    guard = SchemaGuard(settings, clock=clock, metrics=BrokerMetrics())
    yield guard
    await guard.close()


async def inspected(guard: SchemaGuard, settings: TopicSettings, records: Iterable[Record]) -> Inspection:
    inspection = guard.inspect("orders", settings, records)
    await guard.resolve([inspection])
    return inspection


async def refused(guard: SchemaGuard, settings: TopicSettings, records: Iterable[Record]) -> dict[int, str]:
    refusal = (await inspected(guard, settings, records)).refusal
    if refusal is None:
        return {}
    assert isinstance(refusal, RecordsRefused), refusal
    return dict(refusal.records)


async def test_each_record_without_a_registered_schema_is_named(guard: SchemaGuard, registry: FakeRegistry) -> None:
    good = registry.register("orders-value").id
    other = registry.register("customers-value", AVRO_KEY).id
    batch = values(framed(good), b"plain", framed(other), None, framed(99), framed(good, b""))
    inspection = await inspected(guard, VALUES, batch)
    refusal = inspection.refusal
    assert isinstance(refusal, RecordsRefused)
    assert refusal.code is ErrorCode.INVALID_RECORD
    assert refusal.records == [
        (1, "value begins with byte 112, not with a zero byte and the id of its schema"),
        (2, f"value: schema {other} is not registered under subject orders-value"),
        (4, "value: schema 99 is not registered under subject orders-value"),
    ]
    assert refusal.message.startswith("record 1: value begins with byte 112")
    assert "; record 4: value: schema 99" in refusal.message


async def test_what_is_remembered_is_decided_at_once(guard: SchemaGuard, registry: FakeRegistry) -> None:
    good = registry.register("orders-value").id
    assert guard.inspect("orders", VALUES, values(framed(good))).claims
    assert await refused(guard, VALUES, values(framed(good), framed(good))) == {}
    assert not guard.inspect("orders", VALUES, values(*[framed(good)] * 100)).claims
    assert len(registry.asked) == 1


async def test_batches_that_wait_for_the_same_answer_ask_once(guard: SchemaGuard, registry: FakeRegistry) -> None:
    good = registry.register("orders-value").id
    registry.go.clear()
    batches = [guard.inspect("orders", VALUES, values(framed(good))) for _ in range(20)]
    waiting = asyncio.ensure_future(guard.resolve(batches))
    assert await asyncio.to_thread(registry.asked_now.acquire, timeout=10)
    registry.go.set()
    await waiting
    assert all(batch.refusal is None for batch in batches)
    assert len(registry.asked) == 1


async def test_a_flood_of_invented_ids_does_not_become_a_flood_of_questions(
    guard: SchemaGuard, registry: FakeRegistry
) -> None:
    bad = await refused(guard, VALUES, values(*(framed(number) for number in range(1, 1001))))
    assert len(bad) == 32
    assert len(registry.asked) == 32
    await refused(guard, VALUES, values(framed(1)))
    assert len(registry.asked) == 32


async def test_a_schema_that_is_registered_later_is_accepted_after_a_second(
    guard: SchemaGuard, registry: FakeRegistry, clock: ManualClock
) -> None:
    assert await refused(guard, VALUES, values(framed(1))) != {}
    assert registry.register("orders-value").id == 1
    assert await refused(guard, VALUES, values(framed(1))) != {}
    clock.advance(1000)
    assert await refused(guard, VALUES, values(framed(1))) == {}


async def test_a_schema_that_is_deleted_is_refused_once_it_is_forgotten(
    guard: SchemaGuard, registry: FakeRegistry, clock: ManualClock
) -> None:
    good = registry.register("orders-value").id
    assert await refused(guard, VALUES, values(framed(good))) == {}
    delete_subject(registry.url, "orders-value")
    assert await refused(guard, VALUES, values(framed(good))) == {}
    clock.advance(300_000)
    assert await refused(guard, VALUES, values(framed(good))) != {}


async def test_keys_and_values_have_subjects_of_their_own(guard: SchemaGuard, registry: FakeRegistry) -> None:
    key = registry.register("orders-key", AVRO_KEY).id
    value = registry.register("orders-value").id
    both = TopicSettings(confluent_key_schema_validation=True, confluent_value_schema_validation=True)
    batch = [
        Record(key=framed(key), value=framed(value)),
        Record(key=framed(value), value=framed(value)),
        Record(key=framed(key), value=framed(key)),
        Record(key=None, value=None),
    ]
    assert await refused(guard, both, batch) == {
        1: f"key: schema {value} is not registered under subject orders-key",
        2: f"value: schema {key} is not registered under subject orders-value",
    }
    assert await refused(guard, KEYS, [Record(key=framed(key), value=b"plain")]) == {}


async def test_headers_name_schemas_by_guid_or_id(guard: SchemaGuard, registry: FakeRegistry) -> None:
    good = registry.register("orders-value")
    by_guid = b"\x01" + UUID(good.guid).bytes

    def record(header: bytes) -> Record:
        return Record(value=b"plain", headers=(("__value_schema_id", header),))

    batch = [record(by_guid), record(framed(good.id, b"")), record(b"\x01" + bytes(16)), record(b"x")]
    assert await refused(guard, VALUES, batch) == {
        2: "value: no schema has the GUID 00000000-0000-0000-0000-000000000000",
        3: "header __value_schema_id contains neither the id nor the GUID of a schema",
    }


@pytest.mark.parametrize(
    ("strategy", "subject"), [(RECORD_NAME, "shop.Order"), (TOPIC_RECORD_NAME, "orders-shop.Order")]
)
async def test_subjects_may_be_named_after_the_record(
    guard: SchemaGuard, registry: FakeRegistry, strategy: str, subject: str
) -> None:
    settings = VALUES.replace(confluent_value_subject_name_strategy=strategy)
    good = registry.register(subject).id
    wrong = registry.register("orders-value", AVRO_KEY).id
    prefix = "" if strategy == RECORD_NAME else "orders-"
    batch = values(framed(good, b"one"), framed(wrong), framed(good, b"another"), framed(99))
    assert await refused(guard, settings, batch) == {
        1: f"value: schema {wrong} is not registered under subject {prefix}shop.OrderKey",
        3: "value: schema 99 is not registered",
    }


def protobuf(registry: FakeRegistry, subject: str) -> Registered:
    file = FileDescriptorProto(
        package="shop", message_type=[DescriptorProto(name="Order"), DescriptorProto(name="Customer")]
    )
    return registry.register(subject, base64.b64encode(file.SerializeToString()).decode(), kind="PROTOBUF")


async def test_a_protobuf_record_is_named_by_the_message_it_points_at(
    guard: SchemaGuard, registry: FakeRegistry
) -> None:
    settings = VALUES.replace(confluent_value_subject_name_strategy=RECORD_NAME)
    good = protobuf(registry, "shop.Order")
    by_guid = (("__value_schema_id", b"\x01" + UUID(good.guid).bytes + b"\x00"),)
    batch = [
        *values(framed(good.id, b"\x00bytes"), framed(good.id, b"\x02\x02bytes"), framed(good.id, b"\x02\x08bytes")),
        Record(value=b"bytes", headers=by_guid),
    ]
    assert await refused(guard, settings, batch) == {
        1: f"value: schema {good.id} is not registered under subject shop.Customer",
        2: f"value: schema {good.id}: the Protobuf schema has no message with index 4 at this level",
    }
    assert any("format=serialized" in path for path in registry.asked)


async def test_without_a_registry_nothing_is_called_bad(guard: SchemaGuard, registry: FakeRegistry) -> None:
    registry.stop()
    refusal = (await inspected(guard, VALUES, values(framed(1)))).refusal
    assert refusal is not None
    assert refusal.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert refusal.code.retriable


async def test_a_record_that_no_registry_could_save_is_refused_without_one(
    guard: SchemaGuard, registry: FakeRegistry
) -> None:
    registry.stop()
    assert list(await refused(guard, VALUES, values(framed(1), b"plain"))) == [1]


async def test_a_batch_does_not_wait_for_ever(registry: FakeRegistry, clock: ManualClock) -> None:
    settings = BrokerSettings(confluent_schema_registry_url=(registry.url,), confluent_schema_validator_timeout_ms=50)
    guard = SchemaGuard(settings, clock=clock, metrics=BrokerMetrics())
    registry.go.clear()
    refusal = (await inspected(guard, VALUES, values(framed(1)))).refusal
    assert refusal is not None
    assert refusal.code is ErrorCode.NOT_ENOUGH_REPLICAS
    registry.go.set()
    await guard.close()


async def test_no_more_bad_records_are_named_than_an_answer_may_hold(guard: SchemaGuard) -> None:
    refusal = (await inspected(guard, VALUES, values(*[b"plain"] * (RECORD_ERRORS_MAX + 5)))).refusal
    assert isinstance(refusal, RecordsRefused)
    assert len(refusal.records) == RECORD_ERRORS_MAX
    assert f"and at least {RECORD_ERRORS_MAX - 3} more" in refusal.message


async def test_a_title_that_is_too_long_for_a_subject_is_refused_briefly(
    guard: SchemaGuard, registry: FakeRegistry
) -> None:
    settings = VALUES.replace(confluent_value_subject_name_strategy=RECORD_NAME)
    schema = registry.register("any", json.dumps({"title": "t" * 1_000_000}), kind="JSON")
    bad = await refused(guard, settings, values(framed(schema.id), framed(schema.id)))
    assert list(bad) == [0, 1]
    assert len(bad[0]) < 300


async def test_many_schemas_in_one_batch_are_all_asked_about(guard: SchemaGuard, registry: FakeRegistry) -> None:
    ids = [registry.register("orders-value", json.dumps({"title": str(n)}), kind="JSON").id for n in range(100)]
    assert await refused(guard, VALUES, values(*map(framed, ids))) == {}
    assert len(registry.asked) == 100
    assert not guard.inspect("orders", VALUES, values(*map(framed, ids))).claims


async def test_a_batch_that_names_thousands_of_schemas_is_refused_without_asking(
    guard: SchemaGuard, registry: FakeRegistry
) -> None:
    batch = values(*(framed(number) for number in range(1, 100_001)))
    refusal = (await inspected(guard, VALUES, batch)).refusal
    assert refusal is not None
    assert refusal.code is ErrorCode.INVALID_RECORD
    assert refusal.message == "the batch has more than 1000 schemas"
    assert registry.asked == []
