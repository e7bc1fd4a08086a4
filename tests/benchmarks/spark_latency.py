"""How long a record takes from its sending to a file of a table."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow.parquet as pq

_LOOK_SECONDS = 0.02
_WARM_SECONDS = 5.0


class Sender:
    """Sends records at a rate, each with the moment of its sending."""

    def __init__(self, bootstrap: str, topic: str, *, rate: int) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._topic = topic
        self._rate = rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._thread.join(10)
        self._producer.flush(10)

    def _send(self) -> None:
        began, sent = time.monotonic(), 0
        while not self._stopping.wait(0.01):
            while sent < (time.monotonic() - began) * self._rate:
                document = {"number": sent, "sent": time.monotonic(), "text": "x" * 60}
                self._producer.produce(self._topic, json.dumps(document).encode())
                sent += 1
            self._producer.poll(0)


def watched(folder: Path, seconds: float) -> list[float]:
    """How old rows are when a file of the table is first seen that has them; the first seconds do not count."""
    known: set[str] = set()
    waits: list[float] = []
    began = time.monotonic()
    while (now := time.monotonic()) < began + _WARM_SECONDS + seconds:
        new = [path for path in folder.glob("*.parquet") if path.name not in known]
        for path in new:
            known.add(path.name)
            sent: Any = pq.read_table(path, columns=["sent"]).column("sent").to_pylist()
            if now > began + _WARM_SECONDS:
                waits += [now - moment for moment in sent]
        time.sleep(_LOOK_SECONDS)
    return waits
