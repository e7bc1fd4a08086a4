"""kcat of Debian 12: librdkafka 2.0.2, which is easily put off by what a broker advertises."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from tests.support.clients.model import TIMEOUT_S, NotEnoughRecords, Received, Sent, Transaction
from tests.support.cluster_security import connection

KCAT: Final = shutil.which("kcat")
# Of several characters: a record may contain any single byte, such as the 30 of a schema's id.
_KEY_DELIMITER: Final = "\x1f<value>"
_RECORD_DELIMITER: Final = "\x1e<record>"
_INTERRUPTED_INPUT_BYTES: Final = 1 << 20


class KcatClient:
    """kcat as a process for each call; keys and values must be text."""

    name = "kcat"
    codecs = frozenset({"none", "gzip", "snappy", "lz4", "zstd"})
    sets_timestamps = False

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        """Send records and wait until all are acknowledged; headers and partition are one process each."""
        options = ["-X", f"acks={acks}", "-X", f"enable.idempotence={str(idempotent).lower()}"]
        options += ["-X", f"compression.codec={codec}"]
        for (headers, partition), group in groupby(records, key=lambda record: (record.headers, record.partition)):
            placed = [] if partition is None else ["-p", str(partition)]
            labels = [word for key, value in headers for word in ("-H", f"{key}={value.decode()}")]
            run(["-P", *_connected(bootstrap), "-t", topic, *options, *placed, *labels], records=list(group))

    def consume(self, bootstrap: str, topic: str, count: int, *, isolation: str = "read_uncommitted") -> list[Received]:
        """Read from the beginning of every partition to its end."""
        options = ["-X", f"isolation.level={isolation}", "-X", "check.crcs=true"]
        lines = run(["-C", *_connected(bootstrap), "-t", topic, "-o", "beginning", "-e", "-q", "-J", *options])
        records = [received(line) for line in lines.splitlines()]
        if len(records) < count:
            raise NotEnoughRecords(f"{len(records)} of {count} records came")
        return records

    def consume_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[Received]:
        """Join a group, read, commit and leave."""
        options = ["-X", "auto.offset.reset=earliest", "-c", str(count), "-J"]
        lines = run([*_connected(bootstrap), *options, "-G", group, topic])
        return [received(line) for line in lines.splitlines() if line.startswith("{")]

    def transact(self, bootstrap: str, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """Run transactions, a process for each: committed at the end of the input, aborted by SIGINT."""
        for transaction in transactions:
            command = [
                "-P",
                *_connected(bootstrap),
                "-t",
                topic,
                "-X",
                f"transactional.id={transactional_id}",
                "-m",
                "30",
            ]
            if transaction.commit:
                run(command, records=list(transaction.records))
            else:
                run_and_interrupt(command, list(transaction.records), bootstrap=bootstrap, topic=topic)


def _connected(bootstrap: str) -> list[str]:
    """Options that say how to connect."""
    settings = connection(bootstrap)
    address = settings.pop("bootstrap.servers")
    return ["-b", address, *(word for key, value in settings.items() for word in ("-X", f"{key}={value}"))]


def run(arguments: list[str], *, records: Sequence[Sent] = ()) -> str:
    """Run kcat to its end with records as its input."""
    framing = _framing(records)
    done = subprocess.run(
        [str(KCAT), *framing, *arguments],
        input=_input(records),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"kcat {' '.join(arguments)} ended with {done.returncode}: {done.stderr.decode()}"
    return done.stdout.decode()


def run_and_interrupt(arguments: list[str], records: Sequence[Sent], *, bootstrap: str, topic: str) -> None:
    """Give kcat its records, wait until the broker has some, and interrupt it before its input ends.

    kcat reads its input in large blocks, so the records are repeated until they fill several.
    """
    command = [str(KCAT), *_framing(records), *arguments]
    before = _written(bootstrap, topic)
    once = _input(records) + _RECORD_DELIMITER.encode()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(once * (_INTERRUPTED_INPUT_BYTES // len(once)))
        process.stdin.flush()
        deadline = time.monotonic() + TIMEOUT_S
        while _written(bootstrap, topic) == before:
            assert time.monotonic() < deadline, "kcat did not send its records"
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        process.wait(TIMEOUT_S)


def _written(bootstrap: str, topic: str) -> int:
    """Offsets given out in all partitions of a topic."""
    everything = ["-X", "isolation.level=read_uncommitted"]
    lines = run(
        [
            "-Q",
            *_connected(bootstrap),
            *everything,
            *(word for n in range(3) for word in ("-t", f"{topic}:{n}:-1")),
        ]
    )
    return sum(int(line.rpartition(" ")[2]) for line in lines.splitlines())


def _framing(records: Sequence[Sent]) -> list[str]:
    if not records:
        return []
    keys = ["-K", _KEY_DELIMITER] if any(record.key is not None for record in records) else []
    return ["-Z", "-D", _RECORD_DELIMITER, *keys]


def _input(records: Sequence[Sent]) -> bytes:
    keyed = any(record.key is not None for record in records)
    parts = []
    for record in records:
        key = (record.key or b"") + _KEY_DELIMITER.encode() if keyed else b""
        parts.append(key + (record.value or b""))
    return _RECORD_DELIMITER.encode().join(parts)


def received(line: str) -> Received:
    """A line of `kcat -J` in our shape."""
    fields = json.loads(line)
    pairs = fields.get("headers") or []
    headers = tuple((pairs[n], (pairs[n + 1] or "").encode()) for n in range(0, len(pairs), 2))
    key, value = fields["key"], fields["payload"]
    return Received(
        partition=fields["partition"],
        offset=fields["offset"],
        key=None if key is None else key.encode(),
        value=None if value is None else value.encode(),
        headers=headers,
        timestamp_ms=fields["ts"],
    )
