"""A process that keeps sending orders, and writes down what was acknowledged where; the judge makes the same again.

`python -m tests.support.spark_load BOOTSTRAP REGISTRY TOPIC FILE RATE` sends until its standard input is closed.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import TextIOBase
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from tests.support.service import REPOSITORY
from tests.support.spark_records import Making, Oracle, OrderRecord, Place, Spoiling, made
from tests.support.spark_senders import Serializing

SPOILINGS: Final[tuple[Spoiling, ...]] = ("no magic byte", "truncated", "unknown schema id")
_SEED: Final = 11
_BLOCK: Final = 1000
_KEYS: Final = 300
_PAUSE_S: Final = 0.02
_PATIENCE_S: Final = 240.0


def block(number: int) -> Iterator[OrderRecord]:
    """A thousand records; later ones have later versions of the schema."""
    version = min(3, 1 + number // 4)
    making = Making(format="avro", version=version, spoilings=SPOILINGS, keys=_KEYS, tombstone_share=0.05)
    return made(making, seed=_SEED, first=number * _BLOCK, count=_BLOCK)


class Load:
    """The process, as a test has it."""

    def __init__(self, *, bootstrap: str, registry: str, topic: str, folder: Path, rate: int) -> None:
        self.topic = topic
        self._notes = folder / "acknowledged.txt"
        self._log = folder / "load.log"
        self._command = [sys.executable, "-m", "tests.support.spark_load", bootstrap, registry, topic]
        self._command += [str(self._notes), str(rate)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to send."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=REPOSITORY
            )

    def stop(self) -> None:
        """Send no more, and wait until everything was acknowledged."""
        process = self._process
        if process is None:
            return
        self._process = None
        assert process.stdin is not None
        process.stdin.close()
        try:
            code = process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        assert code == 0, self._log.read_text()[-3000:]

    def oracle(self) -> Oracle:
        """All that was acknowledged."""
        records: dict[int, OrderRecord] = {}
        oracle = Oracle()
        for line in self._notes.read_text().splitlines():
            number, partition, offset = map(int, line.split())
            if number not in records:
                records.update((record.number, record) for record in block(number // _BLOCK))
            oracle.learn([(Place(self.topic, partition, offset), records.pop(number))])
        return oracle


class _Sender:
    """Sends at a steady rate, and never has more than some records on their way."""

    def __init__(self, bootstrap: str, registry: str, topic: str, notes: TextIOBase) -> None:
        self._topic = topic
        self._notes = notes
        self._serializing = Serializing(registry)
        self._failures: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "partitioner": "murmur2_random",
                "delivery.timeout.ms": 230_000,
                "queue.buffering.max.messages": 20_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )

    def run(self, rate: int, stopping: threading.Event) -> None:
        """Until it shall stop."""
        records = (record for number in range(10**9) for record in block(number))
        began, sent = time.monotonic(), 0
        while not stopping.wait(_PAUSE_S):
            due = int((time.monotonic() - began) * rate)
            while sent < due and len(self._producer) < 10_000:
                self._send(next(records))
                sent += 1
            began = max(began, time.monotonic() - (sent + rate) / rate)  # What could not be sent is not made up for.
            self._producer.poll(0)
            self._notes.flush()
        assert self._producer.flush(_PATIENCE_S) == 0, "records were never acknowledged"
        assert not self._failures, self._failures[:3]

    def _send(self, record: OrderRecord) -> None:
        self._producer.produce(
            self._topic,
            key=self._serializing.key(record, self._topic),
            value=self._serializing.value(record, self._topic),
            headers=list(record.headers),
            on_delivery=self._report(record.number),
        )

    def _report(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failures.append(error)
            else:
                self._notes.write(f"{number} {message.partition()} {message.offset()}\n")

        return delivered


def main(bootstrap: str, registry: str, topic: str, notes: str, rate: str) -> None:
    """Send until standard input is closed."""
    stopping = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with Path(notes).open("a") as file:
        _Sender(bootstrap, registry, topic, file).run(int(rate), stopping)


if __name__ == "__main__":
    main(*sys.argv[1:])
