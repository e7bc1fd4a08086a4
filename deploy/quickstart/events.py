"""The step that produces: orders and payments over HTTP, and a record that is not an order."""

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2

from core_broker.client.consumer import Consumer
from core_broker.client.errors import NotFound
from deploy.quickstart import screen
from deploy.quickstart.addresses import path_word
from deploy.quickstart.tour import Sent, StepFailed, Tour

FIRST_ORDER: Final = 1001
_ORDERS: Final = (
    {"customer": "Ana", "item": "canoe", "quantity": 1, "price_cents": 64900, "country": "PT"},
    {"customer": "Bruno", "item": "paddle", "quantity": 2, "price_cents": 3900, "country": "PT"},
    {"customer": "Chloé", "item": "rope", "quantity": 3, "price_cents": 1250, "country": "FR"},
    {"customer": "Diego", "item": "tent", "quantity": 1, "price_cents": 18900, "country": "ES"},
    {"customer": "Elena", "item": "lamp", "quantity": 2, "price_cents": 1990, "country": "ES"},
    {"customer": "Freyja", "item": "raft", "quantity": 1, "price_cents": 89900, "country": "IS"},
)
"""The last one is from a country that the shop does not deliver to."""
_METHODS: Final = ("card", "transfer", "card", "wallet", "card")
_GARBLED: Final = b"this is not Avro"
_TIMEOUT_S: Final = 60.0
"""Longer than the proxy waits for brokers to replace one that has died."""
_MORE: Final = "more-orders.json"

# Topic, format as the media type names it, and the file with the body that is sent.
_REQUESTS: Final = (
    ("orders", "avro", "orders.json"),
    ("payments", "protobuf", "payments.json"),
    ("orders", "binary", "no-order.json"),
)


def produce_by_hand(tour: Tour) -> list[str]:
    """The commands of `produce`."""
    return [
        f"{tour.addresses.curl} {tour.addresses.proxy}/topics/{topic} -H 'Content-Type: {_media_type(format_)}' "
        f"--data-binary @{path_word(tour.addresses.folder / file)}"
        for topic, format_, file in _REQUESTS
    ]


def produce(tour: Tour) -> None:
    """Send the records of the files; each is acknowledged by itself."""
    # Orders are numbered by the records of the topic, so that no two tours have the same numbers.
    with Consumer(tour.addresses.cluster()) as consumer, suppress(NotFound):
        ends = [consumer.bounds("orders", partition)[1] for partition in consumer.partitions_of("orders")]
        tour.first_order = FIRST_ORDER + sum(ends)
    tour.first_order = tour.first_order or FIRST_ORDER
    _write_bodies(tour)
    sent = {
        file: _post(tour, topic, _media_type(format_), tour.addresses.folder / file)
        for topic, format_, file in _REQUESTS
    }
    numbers = tuple(range(tour.first_order, tour.first_order + len(_ORDERS)))
    tour.good_orders, tour.refused_order = numbers[:-1], numbers[-1]
    tour.refused = sent["orders.json"][-1]
    (tour.garbled,) = sent["no-order.json"]
    screen.success("acknowledged, each record with its partition and offset:")
    screen.rows(
        ["topic", "format", "records#", "partition and offsets"],
        [
            (topic, format_, len(records), _extent(records))
            for (topic, format_, _), records in zip(_REQUESTS, sent.values(), strict=True)
        ],
    )
    screen.remark(f"order {tour.refused_order} goes to Iceland, and the last record is not an order at all: see below")


def produce_more_by_hand(tour: Tour) -> list[str]:
    """The command of `produce_more`."""
    url, file = f"{tour.addresses.proxy}/topics/orders", path_word(tour.addresses.folder / _MORE)
    return [f"{tour.addresses.curl} {url} -H 'Content-Type: {_media_type('avro')}' --data-binary @{file}"]


def produce_more(tour: Tour) -> int:
    """Send one more order; returns its number."""
    order = {"id": tour.refused_order + 1, **_ORDERS[0]}
    file = tour.addresses.folder / _MORE
    file.write_text(_body([order], tour.schema_ids["orders"]), encoding="utf-8")
    _post(tour, "orders", _media_type("avro"), file)
    return tour.refused_order + 1


def _write_bodies(tour: Tour) -> None:
    """Write the bodies of the requests to files, for users to look at and send by hand."""
    orders: list[dict[str, Any]] = [{"id": tour.first_order + index, **order} for index, order in enumerate(_ORDERS)]
    payments = [
        {"order_id": order["id"], "method": method, "amount_cents": order["quantity"] * order["price_cents"]}
        for order, method in zip(orders, _METHODS, strict=False)
    ]
    tour.addresses.folder.mkdir(parents=True, exist_ok=True)
    for file, body in (
        ("orders.json", _body(orders, tour.schema_ids["orders"])),
        ("payments.json", _body(payments, tour.schema_ids["payments"])),
        ("no-order.json", _body([base64.b64encode(_GARBLED).decode()], None)),
    ):
        (tour.addresses.folder / file).write_text(body, encoding="utf-8")


def _body(values: list[Any], schema_id: int | None) -> str:
    """A request with a record to a line."""
    head = "" if schema_id is None else f'"value_schema_id": {schema_id}, '
    records = ",\n".join(f"  {json.dumps({'value': value}, ensure_ascii=False)}" for value in values)
    return f'{{{head}"records": [\n{records}\n]}}\n'


def _post(tour: Tour, topic: str, media_type: str, file: Path) -> list[Sent]:
    url, login = f"{tour.addresses.proxy}/topics/{topic}", tour.addresses.login()
    authorization = login.authorization(url)
    answer = httpx2.post(
        url,
        content=file.read_bytes(),
        headers={"content-type": media_type, **({"authorization": authorization} if authorization else {})},
        timeout=_TIMEOUT_S,
        trust_env=False,
        verify=login.tls() if url.startswith("https:") else True,
    )
    if answer.status_code != 200:
        raise StepFailed(
            f"the REST proxy refused {file.name}: {answer.status_code} {answer.text}",
            log=tour.addresses.logs.get("rest-proxy"),
        )
    outcomes = answer.json()["offsets"]
    if bad := [outcome for outcome in outcomes if outcome.get("error") or outcome.get("error_code")]:
        raise StepFailed(f"records of {file.name} were refused: {bad}", log=tour.addresses.logs.get("rest-proxy"))
    return [Sent(topic=topic, partition=outcome["partition"], offset=outcome["offset"]) for outcome in outcomes]


def _media_type(format_: str) -> str:
    return f"application/vnd.kafka.{format_}.v2+json"


def _extent(records: list[Sent]) -> str:
    """`0: 3–8`, for each partition."""
    offsets: dict[int, list[int]] = {}
    for record in records:
        offsets.setdefault(record.partition, []).append(record.offset)
    return ", ".join(
        f"{partition}: {found[0]}" if len(found) == 1 else f"{partition}: {min(found)}–{max(found)}"
        for partition, found in sorted(offsets.items())
    )
