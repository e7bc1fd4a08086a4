"""The part of `make run` that Spark plays: a topic becomes a Spark table, and SQL reads it while it grows."""

import os
import sys
import time
from typing import Any, Final

import httpx2

from core_broker.service.clock import SystemClock
from deploy.output import done, note
from streams.errors import EngineError, JavaMissing
from streams.settings import SparkSettings
from streams.spark.engine.client import Engine
from streams.spark.java import find_java

NAME: Final = "orders-to-spark"
TABLE: Final = "orders"
_PATIENCE_SECONDS: Final = 180.0


def show(*, worker: str, registry: str, settings: SparkSettings, count: int) -> None:
    """Stream the orders into a Spark table, and ask for them in SQL."""
    try:
        find_java(os.environ)
    except JavaMissing as error:
        note(f"Spark is left out: {error}")
        return
    clock = SystemClock()
    begun = clock.monotonic()
    note("    Spark starts on first need, which takes some seconds")
    httpx2.put(f"{worker}/connectors/{NAME}/config", json=_config(registry), timeout=30).raise_for_status()
    done(f"connector [bold]{NAME}[/] configured with JSON")
    with Engine.connect(settings) as engine:
        rows = _awaited(engine, count)
        done(f"{len(rows)} rows in the Spark table [bold]{TABLE}[/] after {clock.monotonic() - begun:.1f} s")
        for row in rows:
            sys.stdout.write(f"    {row}\n")
        sys.stdout.flush()
        done(f"and a notebook may attach to {engine.info.connect_url}\n")


def _config(registry: str) -> dict[str, str]:
    return {
        "connector.class": "SparkSink",
        "topics": "orders",
        "table": TABLE,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": registry,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "orders-to-spark-dead-letters",
        "errors.deadletterqueue.context.headers.enable": "true",
    }


def _awaited(engine: Engine, count: int) -> list[Any]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        rows = _rows(engine)
        if len(rows) >= count:
            return rows
        if time.monotonic() > deadline:
            raise RuntimeError(f"no rows came in {_PATIENCE_SECONDS:.0f} s; see {engine.info.log} and connect.log")
        time.sleep(0.2)


def _rows(engine: Engine) -> list[Any]:
    try:
        answer = engine.call("sql", statement=f"SELECT id, item, _offset FROM {TABLE} ORDER BY id LIMIT 20", limit=20)
    except EngineError:
        return []  # the table is not there yet
    rows: list[Any] = answer["rows"]
    return rows
