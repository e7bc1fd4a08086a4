"""What the broker makes of a registry's answers, and of none."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import pytest

from core_broker.errors import ErrorCode
from core_broker.metrics import BrokerMetrics
from core_broker.schema_guard.registry import Registry, RegistryUnavailable
from core_broker.service.clock import ManualClock
from core_broker.settings import BrokerSettings
from tests.support.fake_registry import FakeRegistry
from tests.support.registry import AVRO, AVRO_KEY, delete_subject

Connect = Callable[..., Registry]
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
async def connect(registry: FakeRegistry, clock: ManualClock) -> AsyncIterator[Connect]:
    made: list[Registry] = []

    def make(*urls: str, **settings: object) -> Registry:
        given = BrokerSettings(confluent_schema_registry_url=urls or (registry.url,)).replace(**settings)
        made.append(Registry(given, clock=clock, metrics=BrokerMetrics()))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def test_an_id_is_registered_under_the_subjects_that_have_it(registry: FakeRegistry, connect: Connect) -> None:
    known = registry.register("orders-value")
    client = connect()
    assert await client.is_registered((known.id, "orders-value")) is True
    assert await client.is_registered((known.id, "other-value")) is None
    assert await client.is_registered((known.id + 1, "orders-value")) is None


@pytest.mark.parametrize("subject", ["a/b", "a b&subject=c", "ä%2F", "a?b#c"])
async def test_subjects_of_any_characters_are_asked_about(
    registry: FakeRegistry, connect: Connect, subject: str
) -> None:
    known = registry.register(subject)
    assert await connect().is_registered((known.id, subject)) is True


async def test_a_deleted_subject_does_not_count(registry: FakeRegistry, connect: Connect) -> None:
    known = registry.register("orders-value")
    delete_subject(registry.url, "orders-value")
    assert await connect().is_registered((known.id, "orders-value")) is None


async def test_a_registry_that_ignores_the_subject_parameter_is_understood(
    registry: FakeRegistry, connect: Connect
) -> None:
    registry.answers["/schemas/ids/1/versions"] = (200, b'[{"subject": "other", "version": 1}]')
    assert await connect().is_registered((1, "orders-value")) is None


async def test_a_guid_stands_for_an_id_of_the_context_we_ask_in(registry: FakeRegistry, connect: Connect) -> None:
    registry.register("orders-key", AVRO_KEY)
    known = registry.register("orders-value", AVRO)
    guid = UUID(known.guid).bytes
    assert await connect().id_of(guid) == known.id
    assert await connect().id_of(bytes(16)) is None
    path = f"/schemas/guids/{known.guid}/ids"
    registry.answers[path] = (200, b'[{"context": ".", "id": 7}, {"context": ".lab", "id": 8}]')
    registry.answers["/contexts/.lab" + path] = registry.answers[path]
    assert await connect().id_of(guid) == 7
    assert await connect(f"{registry.url}/contexts/.lab/").id_of(guid) == 8


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"error_code": 50001}'),
        (404, b"<html>nothing here</html>"),
        (404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}'),
        (401, b'{"error_code": 401}'),
        (200, b"<html>log in</html>"),
        (200, b'{"subject": "orders-value"}'),
        (200, b"[" * 100_000),
        (302, b""),
    ],
)
async def test_an_answer_that_answers_nothing_is_as_good_as_none(
    registry: FakeRegistry, connect: Connect, status: int, body: bytes
) -> None:
    registry.answers["/schemas/ids/1/versions"] = (status, body)
    with pytest.raises(RegistryUnavailable) as refusal:
        await connect().is_registered((1, "orders-value"))
    assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert f"HTTP {status}" in refusal.value.message


async def test_an_endless_answer_is_given_up(registry: FakeRegistry, connect: Connect) -> None:
    registry.answers["/schemas/ids/1/versions"] = (200, b" " * (17 * 1024 * 1024))
    with pytest.raises(RegistryUnavailable, match="more than"):
        await connect().is_registered((1, "orders-value"))


async def test_the_next_address_is_asked_when_one_does_not_answer(registry: FakeRegistry, connect: Connect) -> None:
    known = registry.register("orders-value")
    assert await connect(NOWHERE, registry.url).is_registered((known.id, "orders-value")) is True


async def test_a_slow_registry_is_not_waited_for_longer_than_asked(registry: FakeRegistry, connect: Connect) -> None:
    registry.go.clear()
    client = connect(confluent_schema_validator_request_timeout_ms=50)
    with pytest.raises(RegistryUnavailable, match="no response in time"):
        await client.is_registered((1, "orders-value"))


async def test_a_registry_that_is_down_is_left_alone_for_a_moment(
    registry: FakeRegistry, connect: Connect, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="core_broker")
    known = registry.register("orders-value")
    registry.answers[f"/schemas/ids/{known.id}/versions"] = (503, b"")
    client = connect()
    for _ in range(5):
        with pytest.raises(RegistryUnavailable, match="HTTP 503"):
            await client.is_registered((known.id, "orders-value"))
    assert len(registry.asked) == 1
    clock.advance(1000)
    with pytest.raises(RegistryUnavailable):
        await client.is_registered((known.id, "orders-value"))
    assert len(registry.asked) == 2
    registry.answers.clear()
    clock.advance(1000)
    assert await client.is_registered((known.id, "orders-value")) is True
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_without_an_address_the_setting_is_named(connect: Connect, clock: ManualClock) -> None:
    client = Registry(BrokerSettings(), clock=clock, metrics=BrokerMetrics())
    with pytest.raises(RegistryUnavailable, match="confluent.schema.registry.url"):
        await client.is_registered((1, "orders-value"))


async def test_credentials_come_from_the_address_or_from_the_settings(clock: ManualClock) -> None:
    with FakeRegistry(credentials="broker:s3cret") as registry:
        known = registry.register("orders-value")
        with_user = registry.url.replace("http://", "http://broker:s3cret@")
        for settings in (
            BrokerSettings(confluent_schema_registry_url=(with_user,)),
            BrokerSettings(
                confluent_schema_registry_url=(registry.url,),
                confluent_basic_auth_credentials_source="USER_INFO",
                confluent_basic_auth_user_info="broker:s3cret",
            ),
        ):
            client = Registry(settings, clock=clock, metrics=BrokerMetrics())
            assert await client.is_registered((known.id, "orders-value")) is True
            await client.close()


async def test_a_password_in_an_address_is_never_told(connect: Connect) -> None:
    with pytest.raises(RegistryUnavailable) as refusal:
        await connect("http://broker:s3cret@127.0.0.1:9").is_registered((1, "s"))
    assert "127.0.0.1:9" in refusal.value.message
    assert "s3cret" not in refusal.value.message


async def test_a_file_of_authorities_that_is_missing_is_told(connect: Connect) -> None:
    client = connect("https://127.0.0.1:9", confluent_ssl_truststore_location="/missing.pem")
    with pytest.raises(RegistryUnavailable, match="truststore"):
        await client.is_registered((1, "s"))


async def test_no_more_questions_are_on_their_way_than_allowed(registry: FakeRegistry, connect: Connect) -> None:
    client = connect(confluent_schema_validator_connections_max=2)
    registry.go.clear()
    tasks = [asyncio.ensure_future(client.is_registered((number, "s"))) for number in range(1, 7)]
    for _ in range(2):
        assert await asyncio.to_thread(registry.asked_now.acquire, timeout=10)
    assert not await asyncio.to_thread(registry.asked_now.acquire, timeout=0.2)
    registry.go.set()
    assert await asyncio.gather(*tasks) == [None] * 6


async def test_schemas_name_their_records(registry: FakeRegistry, connect: Connect) -> None:
    client = connect()
    avro = registry.register("a")
    titled = registry.register("j", '{"title": "Order"}', kind="JSON")
    nameless = registry.register("n", "{}", kind="JSON")
    name = await client.record_name_of(avro.id)
    assert name is not None
    assert name(b"") == "shop.Order"
    name = await client.record_name_of(titled.id)
    assert name is not None
    assert name(b"") == "Order"
    name = await client.record_name_of(nameless.id)
    assert name is not None
    with pytest.raises(ValueError, match="no title"):
        name(b"")
    assert await client.record_name_of(99) is None
