"""The part of `make run` that Connect plays: a topic becomes a table, and a record that cannot is kept, with why."""

import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import httpx2

from core_broker.client.producer import Producer
from core_broker.client.records import OutgoingRecord
from core_broker.client.settings import ClientSettings
from core_broker.service.clock import SystemClock
from deploy.output import done

NAME = "orders-to-sqlite"
DEAD_LETTERS = "orders-dead-letters"
_PATIENCE_SECONDS = 30.0


def show(*, worker: str, registry: str, settings: ClientSettings, folder: Path, count: int) -> None:
    """Stream the orders into SQLite, spoil the topic with a record that is no Avro, and show where it went."""
    clock = SystemClock()
    database = folder.resolve() / "orders.db"
    begun = clock.monotonic()
    with httpx2.Client(base_url=worker, timeout=30) as client:
        client.put(f"/connectors/{NAME}/config", json=_config(database, registry)).raise_for_status()
        done(f"connector [bold]{NAME}[/] configured with JSON")
        rows = _awaited(lambda: _rows(database), lambda found: len(found) >= count, "no rows came")
        done(f"{len(rows)} rows in SQLite after {clock.monotonic() - begun:.1f} s")
        for row in rows:
            sys.stdout.write(f"    {row}\n")
        sys.stdout.flush()
        with Producer(settings) as producer:
            producer.send(OutgoingRecord(topic="orders", key=None, value=b"this is no Avro"))
        letters = _awaited(lambda: _letters(client), bool, "the bad record did not become a dead letter")
        done("a record that is no Avro did not stop it, and was not lost")
        error = letters[-1]["error"]
        sys.stdout.write(f"    {letters[-1]['value']!r} → {DEAD_LETTERS}: {error['stage']}: {error['message']}\n\n")
        sys.stdout.flush()


def _config(database: Path, registry: str) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": "orders",
        "connection.url": f"jdbc:sqlite:{database}",
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "auto.create": "true",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": registry,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": DEAD_LETTERS,
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def _rows(database: Path) -> list[Any]:
    if not database.exists():
        return []
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT * FROM orders ORDER BY id").fetchall()
    except sqlite3.OperationalError:
        return []  # the table is not there yet
    finally:
        connection.close()


def _letters(client: httpx2.Client) -> list[Any]:
    answer = client.get(f"/connectors/{NAME}/dlq")
    found: list[Any] = answer.raise_for_status().json()["records"]
    return found


def _awaited(ask: Any, accept: Any, otherwise: str) -> Any:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = ask()
        if accept(found):
            return found
        if time.monotonic() > deadline:
            raise RuntimeError(f"{otherwise} in {_PATIENCE_SECONDS:.0f} s; see connect.log beside the data")
        time.sleep(0.05)
