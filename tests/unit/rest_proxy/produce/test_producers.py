import asyncio
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.client.reachability import Reachability
from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError
from rest_proxy.produce.producers import STRONGEST, Guarantees, Producers
from rest_proxy.settings import ProxySettings
from tests.support.admin import eventually
from tests.support.broker import BrokerProcess

pytestmark = pytest.mark.processes


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
def test_guarantees_are_parsed_from_the_query(acks: str | None, idempotence: str | None, expected: Guarantees) -> None:
    assert Guarantees.parse(acks, idempotence) == expected


@pytest.mark.parametrize(
    "acks,idempotence,words",
    [("2", None, "acks='2'"), (None, "maybe", "idempotence='maybe'"), ("1", "true", "needs acks=all")],
)
def test_invalid_guarantees_are_refused(acks: str | None, idempotence: str | None, words: str) -> None:
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


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[tuple[BrokerProcess, Producers]]:
    """Producers, and a broker to be treated badly."""
    with BrokerProcess(tmp_path / "broker") as broker:
        settings = ProxySettings(bootstrap_servers=(broker.bootstrap,), kafka_timeout_ms=60_000)
        made = Producers(settings, Reachability(settings.kafka()))
        yield broker, made
        await made.close()


async def test_brokers_that_fall_silent_are_noticed_though_connections_stay(
    own: tuple[BrokerProcess, Producers],
) -> None:
    broker, producers = own
    record = OutgoingRecord(topic="t", value=b"x")
    weak = Guarantees("1", False)
    assert isinstance(await producers.send(record), Delivery)
    assert isinstance(await producers.send(record, weak), Delivery)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        sent = asyncio.ensure_future(producers.send(record))
        await asyncio.to_thread(eventually, lambda: producers.is_gone, timeout_s=40)  # less than a record is waited for
        for guarantees in (STRONGEST, weak):
            with pytest.raises(ProxyError, match=broker.bootstrap) as caught:
                await producers.send(record, guarantees)
            assert caught.value.status == 503
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert isinstance(await sent, Delivery)
    await asyncio.to_thread(eventually, lambda: not producers.is_gone)
    assert isinstance(await producers.send(record, weak), Delivery)


async def test_a_producer_that_has_failed_for_good_is_replaced(
    own: tuple[BrokerProcess, Producers], tmp_path: Path
) -> None:
    """The broker's log was set back: it ends before the last record that the producer knows of."""
    broker, producers = own
    record = OutgoingRecord(topic="t", value=b"x")
    assert isinstance(await producers.send(record), Delivery)
    broker.stop()
    shutil.copytree(broker.data, tmp_path / "older")
    broker.start()
    assert isinstance((await until_reachable(producers, record)), Delivery)
    assert isinstance(await producers.send(record), Delivery)
    broker.kill()
    shutil.rmtree(broker.data)
    shutil.copytree(tmp_path / "older", broker.data)
    broker.start()
    refused = await until_reachable(producers, record)
    assert isinstance(refused, ProxyError)
    assert refused.status == 503
    assert "replaced" in refused.message
    assert isinstance(await producers.send(record), Delivery)


async def until_reachable(producers: Producers, record: OutgoingRecord) -> Delivery | ProxyError:
    """What becomes of a record once the cluster answers again."""
    while True:
        try:
            outcome = await producers.send(record)
        except ProxyError:
            await asyncio.sleep(0.1)
            continue
        if isinstance(outcome, Delivery) or "No broker" not in outcome.message:
            return outcome
