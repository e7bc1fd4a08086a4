import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from core_broker.client.reachability import Reachability
from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.produce.producers import STRONGEST, Guarantees, Producers
from rest_proxy.settings import ProxySettings
from tests.support.broker import BrokerProcess


@pytest.mark.parametrize(
    "acks,idempotence,expected",
    [
        (None, None, STRONGEST),
        ("all", None, STRONGEST),
        ("-1", "true", STRONGEST),
        ("ALL", "False", Guarantees("all", False)),
        ("1", None, Guarantees("1", False)),
        ("0", "false", Guarantees("0", False)),
        (None, "false", Guarantees("all", False)),
    ],
)
def test_guarantees_are_read_from_the_query(acks: str | None, idempotence: str | None, expected: Guarantees) -> None:
    assert Guarantees.parse(acks, idempotence) == expected


@pytest.mark.parametrize(
    "acks,idempotence,words",
    [("2", None, "acks='2'"), (None, "maybe", "idempotence='maybe'"), ("1", "true", "needs acks=all")],
)
def test_guarantees_that_cannot_be_are_refused(acks: str | None, idempotence: str | None, words: str) -> None:
    with pytest.raises(ProxyError, match=words) as caught:
        Guarantees.parse(acks, idempotence)
    assert caught.value.status == 400


@pytest.fixture
async def producers(broker: BrokerProcess) -> AsyncIterator[Producers]:
    settings = ProxySettings(bootstrap_servers=(broker.bootstrap,), produce_in_flight_max_records=100)
    made = Producers(settings, Reachability(settings.kafka()))
    yield made
    await made.close()


async def test_errors_keep_their_place_among_the_outcomes(producers: Producers, name: str) -> None:
    good, bad = OutgoingRecord(topic=name, value=b"x"), ProxyError(42203, "no")
    outcomes = await producers.send_all([bad, good, bad, good])
    assert [type(outcome) for outcome in outcomes] == [ProxyError, Delivery, ProxyError, Delivery]
    assert await producers.send_all([bad]) == [bad]


@pytest.mark.parametrize("guarantees", [STRONGEST, Guarantees("all", False), Guarantees("1", False)])
async def test_every_guarantee_has_a_producer_of_its_own(
    producers: Producers, guarantees: Guarantees, name: str
) -> None:
    outcome = await producers.send(OutgoingRecord(topic=name, value=b"x"), guarantees)
    assert isinstance(outcome, Delivery)
    assert outcome.offset == 0


async def test_more_than_may_be_in_flight_is_answered_with_429(producers: Producers, name: str) -> None:
    record = OutgoingRecord(topic=name, value=b"x")
    await producers.send(record)
    first = asyncio.ensure_future(producers.send_all([record] * 90))
    await asyncio.sleep(0)
    with pytest.raises(ProxyError, match="produce.in.flight.max.records=100") as caught:
        await producers.send_all([record] * 11)
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 1)
    assert len(await first) == 90
    assert len(await producers.send_all([record] * 11)) == 11


async def test_a_cluster_that_is_not_there_is_answered_with_503_and_its_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        settings = ProxySettings(bootstrap_servers=(address,))
        producers = Producers(settings, Reachability(settings.kafka(), patience_seconds=0.2))
        with pytest.raises(ProxyError, match=address) as caught:
            await producers.send(OutgoingRecord(topic="t", value=b"x"))
        assert (caught.value.status, caught.value.retry_after_seconds) == (503, 1)
        await producers.close()
