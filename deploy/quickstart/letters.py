"""Steps about dead letters: showing them, repairing the cause, and sending one again."""

import sqlite3
from contextlib import closing
from typing import Any, Final

from core_broker.client.consumer import Consumer
from deploy.clients.connect import ConnectClient
from deploy.quickstart import screen
from deploy.quickstart.addresses import path_word, shell_quote
from deploy.quickstart.connectors import SPARK, SQL
from deploy.quickstart.tables import orders_in_shop
from deploy.quickstart.tour import Sent, StepFailed, Tour, ensure, wait_for
from deploy.views.dead_letters import letter_name

_REPAIR: Final = "INSERT INTO countries VALUES ('IS', 'Iceland')"
_SHOWN: Final = (
    "topic",
    "partition",
    "offset",
    "connector.name",
    "task.id",
    "stage",
    "class.name",
    "exception.class.name",
    "exception.message",
)
_HEADERS: Final = "__connect.errors."
_LETTERS_MAX: Final = 1000
_TIMEOUT_S: Final = 60.0


def look_by_hand(tour: Tour) -> list[str]:
    """The commands of `look`."""
    return [
        tour.addresses.caudal(f"dlq list {SQL}", "connect"),
        tour.addresses.caudal(f"topic consume {SQL}-dead-letters --format json", "cluster"),
    ]


def look(tour: Tour) -> None:
    """Find the two bad records of this tour among the dead letters, each with its reason."""
    assert tour.refused is not None
    assert tour.garbled is not None
    with tour.addresses.connect_client() as client:
        garbled, refused = _letter_of(client, tour, SQL, tour.garbled), _letter_of(client, tour, SQL, tour.refused)
        if tour.spark_problem is None:
            _letter_of(client, tour, SPARK, tour.garbled)
    ensure(garbled["error"]["stage"] == "VALUE_CONVERTER", f"the garbled record failed elsewhere: {garbled}")
    ensure(refused["error"]["stage"] == "TASK_PUT", f"the order to Iceland failed elsewhere: {refused}")
    tour.refused_letter = (refused["partition"], refused["offset"])
    screen.success(f"two records did not stop {SQL}, and are not lost:")
    screen.rows(
        ["letter", "stage", "message"],
        [
            (letter_name(letter), letter["error"]["stage"], _brief(letter["error"]["message"]))
            for letter in sorted((garbled, refused), key=lambda letter: letter["offset"])
        ],
    )
    headers = _headers(tour, tour.refused_letter)
    ensure(
        (headers.get("topic"), headers.get("offset")) == ("orders", str(tour.refused.offset)),
        f"the dead letter of order {tour.refused_order} has other headers: {headers}",
    )
    screen.success(f"order {tour.refused_order} is kept in {SQL}-dead-letters as it was; its headers say the rest:")
    screen.pairs([(f"{_HEADERS}{name}", _brief(headers[name])) for name in _SHOWN if name in headers])


def redrive_by_hand(tour: Tour) -> list[str]:
    """The commands of `redrive`."""
    return [
        f"sqlite3 {path_word(tour.addresses.shop)} {shell_quote(_REPAIR)}",
        tour.addresses.caudal(f"dlq redrive {SQL} {'-'.join(map(str, tour.refused_letter or ()))} --yes", "connect"),
    ]


def redrive(tour: Tour) -> None:
    """Let the shop deliver to Iceland, send the order through the connector again, and find it in the table once."""
    assert tour.refused_letter is not None
    with closing(sqlite3.connect(tour.addresses.shop, timeout=_TIMEOUT_S)) as shop, shop:
        shop.execute(_REPAIR)
    partition, offset = tour.refused_letter
    body = {"selection": {"offsets": [{"partition": partition, "offset": offset}]}, "max_records": 1}
    with tour.addresses.connect_client() as client:
        outcome = client.redrive(SQL, body)
        ensure(outcome["redriven"] == 1, f"the letter was not sent: {outcome}", log=tour.addresses.logs.get("connect"))
        with screen.progress("waiting for the row"):
            rows = wait_for(
                lambda: [row for row in orders_in_shop(tour) if row[0] == tour.refused_order],
                bool,
                otherwise=f"order {tour.refused_order} is not in {tour.addresses.shop}",
                log=tour.addresses.logs.get("connect"),
            )
        ensure(len(rows) == 1, f"order {tour.refused_order} is in the table more than once: {rows}")
        screen.success(f"order {tour.refused_order} has arrived:")
        screen.rows(["id#", "customer", "item", "quantity#", "price_cents#", "country"], rows)
        again = client.redrive(SQL, body)
        ensure(again["redriven"] == 0, f"the letter was sent a second time: {again}")
    screen.success("a second redrive sends nothing: each letter is sent once")


def _letter_of(client: ConnectClient, tour: Tour, connector: str, record: Sent) -> Any:
    """The dead letter that a record has become."""

    def found() -> list[Any]:
        page = client.dead_letters(connector, {"limit": _LETTERS_MAX})
        return [
            letter
            for letter in page["records"]
            if (letter["error"]["partition"], letter["error"]["offset"]) == (record.partition, record.offset)
        ]

    letters = wait_for(
        found,
        bool,
        otherwise=f"{record} has not become a dead letter of {connector}",
        log=tour.addresses.logs.get("connect"),
    )
    if len(letters) > 1:
        raise StepFailed(f"{record} has become {len(letters)} dead letters of {connector}")
    return letters[0]


def _headers(tour: Tour, place: tuple[int, int]) -> dict[str, str]:
    """The error headers of a letter, as any Kafka client reads them, without their common prefix."""
    partition, offset = place
    with Consumer(tour.addresses.cluster()) as consumer:
        consumer.assign({(f"{SQL}-dead-letters", partition): offset})
        records = wait_for(
            lambda: consumer.read(1, timeout_ms=500),
            bool,
            otherwise=f"the dead letter {partition}-{offset} cannot be read",
            log=tour.addresses.logs.get("broker"),
        )
    return {
        name.removeprefix(_HEADERS): (value or b"").decode(errors="replace")
        for name, value in records[0].headers
        if name.startswith(_HEADERS)
    }


def _brief(message: str | None) -> str:
    """The first line, cut to the width of a terminal."""
    first = (message or "–").partition("\n")[0]
    return first if len(first) <= 150 else f"{first[:149]}…"
