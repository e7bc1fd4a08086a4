"""`make run`: starts a broker and shows a round trip of records through it.

On a terminal the broker keeps running until Ctrl-C; with ONCE=1, or when stdin is no terminal, it stops after the
round trip. Data goes to ./caudal-data/demo, or to a passing folder when the demo ends by itself.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core_broker.client.admin import Admin
from core_broker.client.consumer import Consumer
from core_broker.client.errors import AlreadyExists, ClientError
from core_broker.client.producer import Producer
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings
from core_broker.service.clock import SystemClock
from deploy.output import done, err, failure, note
from deploy.record_text import formatter

TOPIC = "greetings"
GREETINGS = {"pt": "olá, rio", "en": "hello, river", "es": "hola, río", "fr": "bonjour, rivière", "de": "hallo, Fluss"}
_PORT = 9092
_STOP_SECONDS = 15


def main() -> int:
    """Run the demo."""
    once = bool(os.environ.get("ONCE")) or not sys.stdin.isatty()
    clock = SystemClock()
    started = clock.monotonic()
    err.print("\n[bold]Caudal[/]  [dim]one broker, one topic, a round trip[/]\n")
    try:
        with _data_folder(passing=once) as folder, _running_broker(folder) as (process, ready):
            done(f"broker ready after {clock.monotonic() - started:.2f} s  [dim]{ready}[/]")
            bootstrap = _bootstrap(ready)
            _round_trip(ClientSettings(bootstrap_servers=bootstrap, properties={"log_level": "0"}))
            if not once:
                _stay(process, bootstrap)
    except (ClientError, RuntimeError) as error:
        failure(str(error))
        return 1
    done("broker stopped cleanly")
    return 0


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


def _stay(process: "subprocess.Popen[str]", bootstrap: str) -> None:
    err.print("The broker keeps running; Ctrl-C stops it. In another terminal:\n")
    for command in (
        f"caudal topic produce {TOPIC} 'your words'",
        f"caudal topic consume {TOPIC} --from -5 --follow",
        "caudal cluster info",
        f"kcat -b {bootstrap} -t {TOPIC} -C -e",
    ):
        option = "" if bootstrap.endswith(f":{_PORT}") or command.startswith("kcat") else f" -b {bootstrap}"
        note(f"    {'' if command.startswith('kcat') else '.venv/bin/'}{command}{option}")
    err.print()
    with suppress(KeyboardInterrupt):
        process.wait()


@contextmanager
def _data_folder(*, passing: bool) -> Iterator[Path]:
    if not passing:
        yield Path("caudal-data", "demo")
        return
    with tempfile.TemporaryDirectory(prefix="caudal-") as folder:
        yield Path(folder)


@contextmanager
def _running_broker(folder: Path) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """The broker as a process of its own, with its log beside its data."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"listeners": f"PLAINTEXT://:{_free_port()}", "log.dirs": str(folder / "data"), "logging.format": "text"}
    arguments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    log_file = folder / "broker.log"
    with log_file.open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy.cli", "broker", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C is ours; the broker is stopped by us
        )
        assert process.stdout is not None
        try:
            ready = process.stdout.readline().strip()
            if not ready:
                raise RuntimeError(f"the broker did not start; see {log_file}:\n{log_file.read_text()[-2000:]}")
            yield process, ready
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_SECONDS)
            process.stdout.close()


def _free_port() -> int:
    """Kafka's port when it is free, else any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", _PORT))
        except OSError:
            return 0
    return _PORT


def _bootstrap(ready_line: str) -> str:
    found = re.search(r"PLAINTEXT://\S*?:(\d+)", ready_line)
    if not found:
        raise RuntimeError(f"cannot read the broker's address from: {ready_line}")
    return f"localhost:{found[1]}"


if __name__ == "__main__":
    sys.exit(main())
