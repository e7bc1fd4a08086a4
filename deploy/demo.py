"""`make run`: starts broker, registry, REST proxy, Connect and Spark, and shows records on their way through them.

On a terminal they keep running until Ctrl-C; with ONCE=1, or when stdin is no terminal, they stop after the round
trips. Data goes to ./caudal-data/demo, or to a passing folder when the demo ends by itself.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx2

from core_broker.client.admin import Admin
from core_broker.client.consumer import Consumer
from core_broker.client.errors import AlreadyExists, ClientError
from core_broker.client.producer import Producer
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings
from core_broker.service.clock import SystemClock
from deploy import demo_connect, demo_spark
from deploy.output import done, err, failure, note
from deploy.record_text import formatter
from streams.settings import SparkSettings

TOPIC = "greetings"
GREETINGS = {"pt": "olá, rio", "en": "hello, river", "es": "hola, río", "fr": "bonjour, rivière", "de": "hallo, Fluss"}
ORDERS = [{"id": 1, "item": "canoe"}, {"id": 2, "item": "paddle"}, {"id": 3, "item": "rope"}]
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "river",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
_AVRO = "application/vnd.kafka.avro.v2+json"
_BROKER_PORT, _REGISTRY_PORT, _PROXY_PORT, _CONNECT_PORT = 9092, 8081, 8082, 8083
_SPARK_PORT = 15002
_STOP_SECONDS = 15
_ADDRESS = re.compile(r"listeners=\w+://\S*?:(\d+)")


def main() -> int:
    """Run the demo."""
    once = bool(os.environ.get("ONCE")) or not sys.stdin.isatty()
    err.print(
        "\n[bold]Caudal[/]  [dim]broker, schema registry, REST proxy, Connect, Spark, and records through them[/]\n"
    )
    try:
        with _data_folder(passing=once) as folder, ExitStack() as running:
            spark = _spark(folder)
            places = _start_all(folder, running, spark)
            settings = ClientSettings(bootstrap_servers=places.bootstrap, properties={"log_level": "0"})
            _round_trip(settings)
            _round_trip_over_http(places)
            demo_connect.show(
                worker=places.connect, registry=places.registry, settings=settings, folder=folder, count=len(ORDERS)
            )
            demo_spark.show(
                worker=places.connect, registry=places.registry, settings=SparkSettings.parse(spark), count=len(ORDERS)
            )
            if not once:
                _stay(places, spark["spark.caudal.data.dir"])
    except (ClientError, RuntimeError, httpx2.HTTPError) as error:
        failure(str(error))
        return 1
    done("all stopped cleanly")
    return 0


class Places(NamedTuple):
    """Where the services are."""

    bootstrap: str
    registry: str
    proxy: str
    connect: str


def _start_all(folder: Path, running: ExitStack, spark: Mapping[str, str]) -> Places:
    def start(service: str, port: int, settings: Mapping[str, str]) -> int:
        return running.enter_context(_running(service, folder, {"logging.format": "text", **settings}, port=port))

    broker = {"listeners": f"PLAINTEXT://:{_free(_BROKER_PORT)}", "log.dirs": str(folder / "data")}
    broker["group.initial.rebalance.delay.ms"] = "0"  # nobody else is about to join
    bootstrap = f"localhost:{start('broker', _BROKER_PORT, broker)}"
    database = f"sqlite:///{folder.resolve()}/registry.db"
    registry = {"listeners": f"http://:{_free(_REGISTRY_PORT)}", "database.url": database}
    registry_url = f"http://localhost:{start('registry', _REGISTRY_PORT, registry)}"
    proxy = {
        "listeners": f"http://:{_free(_PROXY_PORT)}",
        "bootstrap.servers": bootstrap,
        "schema.registry.url": registry_url,
        "state.dir": str(folder / "rest-proxy"),
    }
    proxy_url = f"http://localhost:{start('rest-proxy', _PROXY_PORT, proxy)}"
    connect = {"listeners": f"http://:{_free(_CONNECT_PORT)}", "bootstrap.servers": bootstrap, **spark}
    return Places(bootstrap, registry_url, proxy_url, f"http://localhost:{start('connect', _CONNECT_PORT, connect)}")


def _spark(folder: Path) -> dict[str, str]:
    """Settings of Spark, the same for Connect and for whoever asks it."""
    return {
        "spark.caudal.data.dir": str(folder.resolve() / "spark"),
        "spark.caudal.connect.port": str(_free(_SPARK_PORT)),
    }


def _round_trip(settings: ClientSettings) -> None:
    clock = SystemClock()
    try:
        Admin(settings).create_topic(TOPIC, partitions=3)
        done(f"topic [bold]{TOPIC}[/] created with 3 partitions")
    except AlreadyExists:
        done(f"topic [bold]{TOPIC}[/] is there from the last run")
    deliveries: list[Delivery | ClientError] = []
    begun = clock.monotonic()
    with Producer(settings) as producer:
        for language, text in GREETINGS.items():
            producer.send(OutgoingRecord(topic=TOPIC, key=language.encode(), value=text.encode()), deliveries.append)
    sent = [outcome for outcome in deliveries if isinstance(outcome, Delivery)]
    if len(sent) < len(GREETINGS):
        raise RuntimeError(f"not every record was acknowledged: {deliveries}")
    done(f"{len(sent)} records sent and acknowledged in {(clock.monotonic() - begun) * 1000:.0f} ms")
    _read_back(settings, sent)


def _read_back(settings: ClientSettings, sent: list[Delivery]) -> None:
    first: dict[tuple[str, int], int] = {}
    for delivery in sent:
        place = (delivery.topic, delivery.partition)
        first[place] = min(first.get(place, delivery.offset), delivery.offset)
    write = formatter("text", colour=sys.stdout.isatty())
    waited = 0
    with Consumer(settings) as consumer:
        consumer.assign(first)
        seen = 0
        while seen < len(sent) and waited < 100:
            records = consumer.read(len(sent), timeout_ms=100)
            waited += not records
            seen += len(records)
            for record in records:
                sys.stdout.write(f"    {write(record)}\n")
        sys.stdout.flush()
    if seen < len(sent):
        raise RuntimeError(f"only {seen} of {len(sent)} records came back")
    done(f"{seen} records read back\n")


def _round_trip_over_http(places: Places) -> None:
    """Avro through the REST proxy, whose first record also registers the schema, and back as JSON."""
    clock = SystemClock()
    records = {"value_schema": json.dumps(ORDER), "records": [{"value": order} for order in ORDERS]}
    with httpx2.Client(base_url=places.proxy, timeout=30) as client:
        begun = clock.monotonic()
        answer = client.post("/topics/orders", content=json.dumps(records), headers={"content-type": _AVRO})
        if answer.status_code != 200 or any(offset["error"] for offset in answer.json()["offsets"]):
            raise RuntimeError(f"the REST proxy refused the orders: {answer.text}")
        told = answer.json()
        done(
            f"{len(ORDERS)} orders in Avro sent over HTTP in {(clock.monotonic() - begun) * 1000:.0f} ms, "
            f"by schema {told['value_schema_id']} of the registry"
        )
        first = told["offsets"][0]
        page = client.get(
            f"/topics/orders/partitions/{first['partition']}/records",
            params={"offset": first["offset"], "timeout": 5000},
            headers={"accept": _AVRO},
        )
        for record in page.raise_for_status().json():
            sys.stdout.write(f"    {json.dumps(record['value'])}\n")
        sys.stdout.flush()
        done("and read back over HTTP\n")


def _stay(places: Places, spark: str) -> None:
    err.print("They keep running; Ctrl-C stops them. In another terminal:\n")
    option = "" if places.bootstrap.endswith(f":{_BROKER_PORT}") else f" -b {places.bootstrap}"
    for command in (
        f".venv/bin/caudal topic produce {TOPIC} 'your words'{option}",
        f".venv/bin/caudal topic consume {TOPIC} --from -5 --follow{option}",
        f"kcat -b {places.bootstrap} -t {TOPIC} -C -e",
        f"curl {places.registry}/subjects",
        f"curl -N {places.proxy}/topics/orders/records -H 'Accept: application/x-ndjson'",
        f".venv/bin/caudal connector status {demo_connect.NAME} --connect {places.connect}",
        f".venv/bin/caudal dlq list {demo_connect.NAME} --connect {places.connect}",
        f".venv/bin/caudal spark sql 'SELECT * FROM {demo_spark.TABLE}' --set spark.caudal.data.dir={spark}",
    ):
        note(f"    {command}")
    err.print(f"\nTheir HTTP APIs, to read and to try: {places.proxy}/docs and {places.connect}/docs\n")
    with suppress(KeyboardInterrupt):
        signal.pause()


@contextmanager
def _data_folder(*, passing: bool) -> Iterator[Path]:
    if not passing:
        yield Path("caudal-data", "demo")
        return
    with tempfile.TemporaryDirectory(prefix="caudal-") as folder:
        yield Path(folder)


@contextmanager
def _running(service: str, folder: Path, settings: Mapping[str, str], *, port: int) -> Iterator[int]:
    """A service as a process of its own, with its log beside its data; gives its port."""
    clock = SystemClock()
    begun = clock.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    arguments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    log_file = folder / f"{service}.log"
    with log_file.open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy.cli", service, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C is ours; the services are stopped by us
        )
        assert process.stdout is not None
        try:
            ready = process.stdout.readline().strip()
            found = _ADDRESS.search(ready)
            if not found:
                raise RuntimeError(f"the {service} did not start; see {log_file}:\n{log_file.read_text()[-2000:]}")
            taken = "" if int(found[1]) == port else f" [dim](port {port} is taken)[/]"
            done(f"{service} ready after {clock.monotonic() - begun:.2f} s on port {found[1]}{taken}")
            yield int(found[1])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_SECONDS)
            process.stdout.close()


def _free(port: int) -> int:
    """The port that people know when it is free, else any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return 0
    return port


if __name__ == "__main__":
    sys.exit(main())
