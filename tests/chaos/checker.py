"""The offline checker: reads the histories and finds what no Kafka cluster may do.

It knows only what the clients wrote down, and shares no code with the broker. The rules are named S1 to S12 and L1; a
violation counts once for each record, transaction or offset that is wrong.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.chaos.history import describe, read_history
from tests.chaos.topics import INPUT, OUTPUT

UNFINISHED: Final = "read"
"""Stands for a rule where the last read did not finish: the checker could not judge the rest."""
_SHOWN: Final = 5
_FAILOVER_S: Final = 120.0
"""A partition that takes no write for this long after a kill has not failed over."""
_NONE: Final = -1
_FINAL: Final = 1
"""Flag: the final reader saw it, and it read everything."""
_FINAL_COMMITTED: Final = 2
_COMMITTED: Final = 4
"""Flag: a reader of committed records saw it."""

Event = dict[str, Any]
Key = tuple[str, int]
"""Topic and partition."""


@dataclass(slots=True)
class Violations:
    """How often a rule was broken, and the first cases."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        """Note a case."""
        self.count += count
        if len(self.examples) < _SHOWN:
            self.examples.append(example)


@dataclass(slots=True, kw_only=True)
class Report:
    """What the checker found: violations by rule, and how much there was to check."""

    violations: dict[str, Violations] = field(default_factory=lambda: defaultdict(Violations))
    acknowledged: int = 0
    unknown: int = 0
    reads: int = 0
    transactions: Counter[str] = field(default_factory=Counter)
    transformed: int = 0
    watermarks: int = 0
    offset_commits: int = 0
    assignments: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    duplicates: list[tuple[Key, int, int]] = field(default_factory=list)
    """Partition and both offsets of records that are there twice."""
    resent: int = 0
    """Duplicates that a client wrote itself, under a new epoch of its producer."""
    failovers: list["Failover"] = field(default_factory=list)

    def excuse_resent(self, epoch_of: Callable[[Key, int], tuple[int, int]]) -> None:
        """Do not blame the cluster for duplicates whose producer epochs differ.

        librdkafka begins a new epoch when a leader moved while requests to the former one were on their way, and sends
        again what it has no response for: a broker cannot tell that from new records.
        """
        for key, first, second in self.duplicates:
            if epoch_of(key, first) != epoch_of(key, second):
                self.resent += 1
                self.violations["S4"].count -= 1

    def count(self, rule: str) -> int:
        """How often a rule was broken."""
        return self.violations[rule].count


class Failover(NamedTuple):
    """How long a partition took no write after its leader was killed."""

    seconds: float
    partition: str
    was_controller: bool
    """Whether the leader was the controller too: then another controller is elected first, and waits anew."""


class _Log:
    """What readers saw of one partition, by offset."""

    def __init__(self) -> None:
        self.records = array("q")
        self.transactions = array("q")
        self.flags = bytearray()

    def reserve(self, offset: int) -> None:
        missing = offset + 1 - len(self.flags)
        if missing > 0:
            missing += 4096
            self.records.extend([_NONE] * missing)
            self.transactions.extend([_NONE] * missing)
            self.flags.extend(bytes(missing))


class _Kill:
    """A broker that was killed, and when each partition that it led took a write again."""

    def __init__(self, event: Event) -> None:
        self.at: float = event["t"]
        self.was_controller: bool = event["is_controller"]
        self.partitions = {(topic, partition) for topic, partition in event["led"]}
        self.written: dict[Key, float] = {}


class Checker:
    """Takes events one by one; `finish` gives the report."""

    def __init__(self) -> None:
        self.report = Report()
        self._logs: dict[Key, _Log] = defaultdict(_Log)
        self._acks: dict[Key, dict[int, int]] = defaultdict(dict)
        """Acknowledged records by offset."""
        self._last_ack: dict[tuple[int, Key], tuple[int, int]] = {}
        self._rejected: set[int] = set()
        self._begun: dict[int, tuple[str, int]] = {}
        """Topic and number of records of each transaction."""
        self._outcomes: dict[int, str] = {}
        self._readers: dict[tuple[str, Key], int] = {}
        self._jumps: list[tuple[str, str, Key, int, int]] = []
        self._unfinished: set[tuple[str, Key]] = set()
        """Isolations and partitions of which the last reader did not see the end."""
        self._watermarks: dict[tuple[str, Key], int] = {}
        self._commits: dict[tuple[str, Key], list[tuple[float, int]]] = defaultdict(list)
        self._fetched: list[tuple[float, str, Key, int]] = []
        self._owners: dict[tuple[str, int, Key], str] = {}
        self._kills: list[_Kill] = []
        self._invoked: dict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
        """First records of a producer's groups, and when it sent them."""

    def add(self, event: Event) -> None:
        """Take in one event."""
        handler = _HANDLERS.get(event["op"])
        if handler is not None:
            handler(self, event)

    # -- producers --

    def _on_invoke(self, event: Event) -> None:
        firsts, times = self._invoked[event["client"]]
        firsts.append(event["first"])
        times.append(event["t"])

    def _on_ok(self, event: Event) -> None:
        client, topic = event["client"], event["topic"]
        for record, partition, offset in event["acks"]:
            self.report.acknowledged += 1
            key = (topic, partition)
            known = self._acks[key].setdefault(offset, record)
            if known != record:
                self._broken("S3", f"{key} offset {offset} was given to {describe(known)} and {describe(record)}")
            before = self._last_ack.get((client, key))
            if before is not None and (record > before[0]) != (offset > before[1]):
                self._broken("S3", f"{key}: {describe(record)} got {offset}, {describe(before[0])} got {before[1]}")
            self._last_ack[client, key] = (record, offset)
        self._time_failovers(event)

    def _time_failovers(self, event: Event) -> None:
        at = event["t"]
        for kill in self._kills:
            if not kill.at < at < kill.at + _FAILOVER_S:
                continue
            firsts, times = self._invoked[event["client"]]
            for record, partition, _ in event["acks"]:
                key = (event["topic"], partition)
                if key in kill.partitions and at < kill.written.get(key, at + 1):
                    group = bisect_right(firsts, record) - 1
                    if group >= 0 and times[group] > kill.at:
                        kill.written[key] = at

    def _on_fail(self, event: Event) -> None:
        self._rejected.update(event["records"])

    def _on_unknown(self, event: Event) -> None:
        self.report.unknown += len(event["records"])

    # -- transactions --

    def _on_begin(self, event: Event) -> None:
        self._begun[event["transaction"]] = (event["topic"], len(event["records"]))

    def _on_outcome(self, event: Event) -> None:
        self._outcomes[event["transaction"]] = event["op"]

    # -- consumers --

    def _on_read(self, event: Event) -> None:
        topic, isolation, reader = event["topic"], event["isolation"], event["reader"]
        flags = _COMMITTED if isolation == "committed" else 0
        if event.get("final"):
            flags |= _FINAL_COMMITTED if isolation == "committed" else _FINAL
        follows = reader.startswith("reader-")
        for partition, offset, record, transaction in event["records"]:
            key = (topic, partition)
            log = self._logs[key]
            if offset >= len(log.flags):
                log.reserve(offset)
            known = log.records[offset]
            if known == _NONE:
                log.records[offset] = record
                log.transactions[offset] = transaction
            elif known != record or log.transactions[offset] != transaction:
                self._broken("S2", f"{key} offset {offset}: {describe(known)}, then {describe(record)} ({reader})")
            log.flags[offset] |= flags
            if follows:
                self._on_step(reader, isolation, key, offset)
        self.report.reads += len(event["records"])

    def _on_step(self, reader: str, isolation: str, key: Key, offset: int) -> None:
        before = self._readers.get((reader, key), -1)
        if offset <= before:
            self._broken("S8", f"{reader} read {key} offset {offset} after {before}")
        elif offset > before + 1:
            self._jumps.append((reader, isolation, key, before, offset))
        self._readers[reader, key] = offset

    def _on_damaged(self, event: Event) -> None:
        self._broken("S2", f"{event['topic']} {event['partition']} offset {event['offset']}: {event['reason']}")

    def _on_unfinished(self, event: Event) -> None:
        for topic, partition in event["partitions"]:
            self._unfinished.add((event["isolation"], (topic, partition)))
            self._broken(UNFINISHED, f"{(topic, partition)} was not read to the end ({event['isolation']})")

    def _on_watermark(self, event: Event) -> None:
        self.report.watermarks += 1
        key = (event["topic"], event["partition"])
        before = self._watermarks.get((event["reader"], key), -1)
        if event["end"] < before:
            self._broken("S8", f"{key}: the high watermark went from {before} back to {event['end']}")
        self._watermarks[event["reader"], key] = event["end"]

    # -- groups --

    def _on_committed_offsets(self, event: Event) -> None:
        for topic, partition, offset in event["offsets"]:
            self.report.offset_commits += 1
            self._commits[event["group"], (topic, partition)].append((event["t"], offset))

    def _on_fetched_offsets(self, event: Event) -> None:
        for topic, partition, offset in event["offsets"]:
            self._fetched.append((event["asked"], event["group"], (topic, partition), offset))

    def _on_assigned(self, event: Event) -> None:
        for topic, partition in event["partitions"]:
            self.report.assignments += 1
            key = (topic, partition)
            owner = self._owners.setdefault((event["group"], event["generation"], key), event["member"])
            if owner != event["member"]:
                self._broken(
                    "S12", f"{key} belongs to {owner} and {event['member']} in generation {event['generation']}"
                )

    # -- faults and probes --

    def _on_fault(self, event: Event) -> None:
        self.report.faults[f"{event['fault']} {event['target']}".strip()] += 1

    def _on_killed(self, event: Event) -> None:
        if event["is_measured"]:
            self._kills.append(_Kill(event))

    def _on_probe(self, event: Event) -> None:
        if not event["ok"]:
            self._broken(event["rule"], event["what"])

    # -- the end --

    def finish(self) -> Report:
        """Judge everything that needs the whole history."""
        self._check_acknowledged()
        for key, log in self._logs.items():
            self._check_log(key, log)
        self._check_jumps()
        self._check_transactions()
        self._check_transformed()
        self._check_offsets()
        self._finish_failovers()
        return self.report

    def _end_of_last_read(self, key: Key) -> float:
        """Where the last reader of all records stopped; nothing can be said about what follows."""
        if ("uncommitted", key) not in self._unfinished:
            return inf
        flags = self._logs[key].flags
        return next((offset + 1 for offset in reversed(range(len(flags))) if flags[offset] & _FINAL), 0)

    def _has_read_all(self, topic: str, isolation: str) -> bool:
        return all((isolation, topic) != (level, key[0]) for level, key in self._unfinished)

    def _check_acknowledged(self) -> None:
        """S1 and S3: acknowledged records are at their acknowledged offsets."""
        for key, acks in self._acks.items():
            log = self._logs[key]
            end = self._end_of_last_read(key)
            missing: list[tuple[int, int]] = []
            for offset, record in acks.items():
                if offset >= end:
                    continue
                if offset >= len(log.flags) or not log.flags[offset] & _FINAL:
                    missing.append((offset, record))
                elif log.records[offset] != record:
                    self._broken(
                        "S3", f"{key} offset {offset} has {describe(log.records[offset])}, not {describe(record)}"
                    )
                    missing.append((offset, record))
            if not missing:
                continue
            present = {log.records[offset] for offset, flags in enumerate(log.flags) if flags & _FINAL}
            for offset, record in missing:
                if record not in present:
                    self._broken("S1", f"{key}: {describe(record)} was acknowledged at offset {offset} and is lost")

    def _check_log(self, key: Key, log: _Log) -> None:
        """S4, S5 and S8 in one partition."""
        seen: dict[int, int] = {}
        highest: dict[int, int] = {}
        end = self._end_of_last_read(key)
        for offset, flags in enumerate(log.flags):
            record = log.records[offset]
            if record == _NONE or offset >= end:
                continue
            if not flags & _FINAL:
                self._broken("S8", f"{key} offset {offset}: {describe(record)} was read and has vanished")
                continue
            if flags & _COMMITTED:
                self._check_visible(key, offset, record, log.transactions[offset])
            if key[0] == OUTPUT:
                continue  # aborted attempts are repeated there; S7 is about it
            producer = record >> 40
            if record in seen:
                self.report.duplicates.append((key, seen[record], offset))
                self._broken("S4", f"{key} offset {offset}: {describe(record)} is there twice")
            elif record < highest.get(producer, -1):
                self._broken("S4", f"{key} offset {offset}: {describe(record)} after {describe(highest[producer])}")
            seen.setdefault(record, offset)
            highest[producer] = max(record, highest.get(producer, -1))

    def _check_visible(self, key: Key, offset: int, record: int, transaction: int) -> None:
        if record in self._rejected and key[0] == INPUT:
            self._broken("S5", f"{key} offset {offset}: {describe(record)} was rejected and is visible")
        if transaction and self._outcomes.get(transaction) == "aborted":
            self._broken("S5", f"{key} offset {offset}: transaction {describe(transaction)} was aborted and is visible")

    def _check_jumps(self) -> None:
        """S8: what a reader stepped over holds nothing that it should have read."""
        for reader, isolation, key, before, offset in self._jumps:
            log = self._logs[key]
            wanted = _FINAL_COMMITTED if isolation == "committed" else _FINAL
            skipped = [number for number in range(before + 1, offset) if log.flags[number] & wanted]
            if skipped:
                self._broken("S8", f"{reader} skipped {len(skipped)} records of {key} from {skipped[0]}", len(skipped))

    def _check_transactions(self) -> None:
        """S6: all records of a transaction, or none; all if it was committed."""
        visible: Counter[int] = Counter()
        for log in self._logs.values():
            for offset, flags in enumerate(log.flags):
                if flags & _FINAL_COMMITTED and log.transactions[offset]:
                    visible[log.transactions[offset]] += 1
        for transaction, (topic, size) in self._begun.items():
            outcome = self._outcomes.get(transaction, "unknown")
            self.report.transactions[outcome] += 1
            found = visible.pop(transaction, 0)
            if not self._has_read_all(topic, "committed"):
                continue
            if found not in (0, size):
                self._broken("S6", f"{topic} {describe(transaction)} ({outcome}): {found} of {size} records")
            elif outcome == "committed" and not found:
                self._broken("S1", f"{topic}: committed transaction {describe(transaction)} is lost", size)
        for transaction in visible:
            self._broken("S6", f"transaction {describe(transaction)} was never begun")

    def _check_transformed(self) -> None:
        """S7: the output is the input, each record once."""
        read = self._final_records(INPUT, _FINAL)
        written = self._final_records(OUTPUT, _FINAL_COMMITTED)
        if not written and not any(topic == OUTPUT for topic, _ in self._begun.values()):
            return
        self.report.transformed = written.total()
        if not self._has_read_all(INPUT, "uncommitted") or not self._has_read_all(OUTPUT, "committed"):
            return
        for record, count in (written - read).items():
            self._broken("S7", f"{describe(record)} is in the output {count} times too often", count)
        for record, count in (read - written).items():
            self._broken("S7", f"{describe(record)} is missing in the output", count)

    def _final_records(self, topic: str, flag: int) -> Counter[int]:
        found: Counter[int] = Counter()
        for (name, _), log in self._logs.items():
            if name == topic:
                found.update(log.records[offset] for offset, flags in enumerate(log.flags) if flags & flag)
        return found

    def _check_offsets(self) -> None:
        """S12: a group's offset is never lower than one whose commit had been acknowledged when it was asked for."""
        highest: dict[tuple[str, Key], tuple[list[float], list[int]]] = {}
        for name, commits in self._commits.items():
            times, offsets = [], []
            top = -1
            for at, offset in sorted(commits):
                top = max(top, offset)
                times.append(at)
                offsets.append(top)
            highest[name] = (times, offsets)
        for asked, group, key, offset in self._fetched:
            times, offsets = highest.get((group, key), ([], []))
            before = bisect_right(times, asked) - 1
            if before >= 0 and offset < offsets[before]:
                self._broken("S12", f"group {group} had committed {offsets[before]} of {key} and then read {offset}")

    def _finish_failovers(self) -> None:
        for kill in self._kills:
            for key in kill.partitions:
                at = kill.written.get(key)
                if at is None:
                    self._broken("L1", f"{key} took no write after its leader was killed")
                else:
                    failover = Failover(at - kill.at, f"{key[0]}-{key[1]}", kill.was_controller)
                    self.report.failovers.append(failover)

    def _broken(self, rule: str, example: str, count: int = 1) -> None:
        self.report.violations[rule].add(example, count)


_HANDLERS: Final[Mapping[str, Any]] = {
    "invoke": Checker._on_invoke,
    "ok": Checker._on_ok,
    "fail": Checker._on_fail,
    "unknown": Checker._on_unknown,
    "begin": Checker._on_begin,
    "committed": Checker._on_outcome,
    "aborted": Checker._on_outcome,
    "read": Checker._on_read,
    "damaged": Checker._on_damaged,
    "unfinished": Checker._on_unfinished,
    "watermark": Checker._on_watermark,
    "committed offsets": Checker._on_committed_offsets,
    "fetched offsets": Checker._on_fetched_offsets,
    "assigned": Checker._on_assigned,
    "fault": Checker._on_fault,
    "killed": Checker._on_killed,
    "probe": Checker._on_probe,
}


def check(events: Iterable[Event]) -> Report:
    """Check events; those of one client must come in their order."""
    checker = Checker()
    for event in events:
        checker.add(event)
    return checker.finish()


def check_directory(directory: Path) -> Report:
    """Check the histories of a run. Faults come first: failovers are timed while acknowledgements are read."""
    files = sorted(directory.glob("*.jsonl"), key=lambda path: (path.name != "faults.jsonl", path.name))
    return check(event for file in files for event in read_history(file))
