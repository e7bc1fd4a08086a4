import json
from pathlib import Path
from typing import Any

import pytest

from deploy.quickstart import events
from deploy.quickstart.addresses import PlatformAddresses
from deploy.quickstart.tour import Sent, Tour


@pytest.fixture
def bodies(tmp_path: Path) -> dict[str, Any]:
    """What a tour whose first order is number 1008 would send."""
    addresses = PlatformAddresses(
        data=tmp_path,
        bootstrap="",
        registry="",
        proxy="http://localhost:8082",
        connect="",
        streams="",
        spark_data=tmp_path,
        spark_port=1,
        logs={},
    )
    tour = Tour(addresses=addresses, schema_ids={"orders": 5, "payments": 6}, first_order=1008)
    events._write_bodies(tour)
    return {path.name: json.loads(path.read_text()) for path in addresses.folder.iterdir()}


def test_orders_are_numbered_on_and_carry_the_id_of_their_schema(bodies: dict[str, Any]) -> None:
    orders = bodies["orders.json"]

    assert orders["value_schema_id"] == 5
    assert [record["value"]["id"] for record in orders["records"]] == [*range(1008, 1014)]


def test_all_orders_but_the_one_that_is_refused_are_paid_in_full(bodies: dict[str, Any]) -> None:
    due = {
        record["value"]["id"]: record["value"]["quantity"] * record["value"]["price_cents"]
        for record in bodies["orders.json"]["records"]
    }
    paid = {
        record["value"]["order_id"]: record["value"]["amount_cents"] for record in bodies["payments.json"]["records"]
    }

    assert paid == {number: due[number] for number in range(1008, 1013)}


def test_the_record_that_is_no_order_has_no_schema(bodies: dict[str, Any]) -> None:
    assert bodies["no-order.json"].keys() == {"records"}


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [([(0, 3)], "0: 3"), ([(0, 3), (0, 4), (0, 5)], "0: 3–5"), ([(1, 7), (0, 3), (1, 8)], "0: 3, 1: 7–8")],
)
def test_offsets_are_shown_by_partition(addresses: list[tuple[int, int]], expected: str) -> None:
    sent = [Sent(topic="orders", partition=partition, offset=offset) for partition, offset in addresses]

    assert events._extent(sent) == expected
