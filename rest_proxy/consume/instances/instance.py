"""One consumer instance: what it reads, what it has fetched, and where its client stands. Calls may block."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import re2

from core_broker.client.consumer import Place
from core_broker.client.errors import ClientError
from core_broker.client.group_consumer import BEGINNING, END, Commit, GroupConsumer
from core_broker.client.records import IncomingRecord
from rest_proxy.consume.instances import errors
from rest_proxy.consume.instances.page import size
from rest_proxy.consume.instances.positions import Positions
from rest_proxy.consume.instances.state import InstanceFiles, SavedInstance
from rest_proxy.errors import ProxyError, topic_not_found

log = logging.getLogger(__name__)

Connect = Callable[[], GroupConsumer]
IsLost = Callable[[], bool]
"""Whether an answer is known not to have arrived."""

PAGE_RECORDS_MAX = 10_000
"""Most records in one answer."""
_QUIET_MS, _GATHER_SECONDS = 10, 0.05
"""Once there is enough for an answer, what comes within moments comes with it."""
_LOOK_FOR_TOPICS_SECONDS, _LOOK_FOR_FIRST_SECONDS = 30.0, 1.0
_SETTLED_SECONDS, _SETTLED_BYTES = 1.0, 64 * 1024
"""An answer this small that was handed over this long ago is out of the proxy's hands."""
_TOLD_TOPICS_MAX = 10
_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class Instance:
    """A consumer instance; one thread at a time may call it."""

    def __init__(self, saved: SavedInstance, *, connect: Connect, files: InstanceFiles) -> None:
        self.group, self.name, self.config = saved.group, saved.name, saved.config
        self._files = files
        self._topics = list(saved.topics)
        self._pattern = saved.pattern
        self._chosen: list[Place] = list(saved.assigned)
        self._positions = Positions(saved.positions)
        self._fetched: deque[IncomingRecord] = deque()
        self._fetched_bytes = self._answer_bytes = 0
        self._handed_over: list[tuple[dict[Place, int], IsLost]] = []
        """Where the answers began that nobody has asked on after."""
        self._looked_at = float("-inf")
        self.purges = 0
        """Counts how often fetched records were dropped, because partitions were sought or taken away."""
        self._consumer = connect()
        self._connect = connect
        self._go_on()

    def _go_on(self) -> None:
        """Read what was read before, for an instance that was written down."""
        if self._chosen:
            self._begin_chosen()
        elif self._topics:
            self._join()

    def reopen(self) -> None:
        """Make a new consumer in place of one that cannot go on."""
        self._purge(self._consumer.assigned)
        self._consumer.close()
        self._consumer = self._connect()
        self._go_on()

    # --- subscription ---

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics, as a member of the group; none to end that."""
        if self._pattern is not None or self._chosen:
            raise errors.exclusive()
        if not topics:
            self.unsubscribe()
            return
        for topic in topics:
            if topic.startswith("^") or "\0" in topic:  # The library would take it for a pattern, or for another name.
                raise errors.no_topic_name(topic)
        self._topics = list(dict.fromkeys(topics))
        self._join()
        self.save()

    def subscribe_to_pattern(self, pattern: str) -> None:
        """Read the topics whose whole names match, as a member of the group."""
        if (self._topics and self._pattern is None) or self._chosen:
            raise errors.exclusive()
        compiled(pattern)
        self._pattern, self._topics, self._looked_at = pattern, [], float("-inf")
        self._look_for_topics()
        self.save()

    def unsubscribe(self) -> None:
        """Read nothing any more."""
        self._commit_by_itself(is_waiting=True)
        self._topics, self._pattern, self._chosen = [], None, []
        self._consumer.unsubscribe()
        self._purge(None)
        self._positions.keep_only(())
        self.save()

    @property
    def topics(self) -> list[str]:
        """The topics that are subscribed to."""
        return self._topics

    def _join(self) -> None:
        self._consumer.subscribe(self._topics, starts=self._starts, revoked=self._revoked)

    def _look_for_topics(self) -> None:
        """Subscribe to topics that match the pattern now, or that were missing, if it is time to look."""
        missing = self._consumer.unknown_topics
        pause = _LOOK_FOR_TOPICS_SECONDS if self._topics and not missing else _LOOK_FOR_FIRST_SECONDS
        if time.monotonic() - self._looked_at < pause or not (missing or self._pattern is not None):
            return
        self._looked_at = time.monotonic()
        found = self._consumer.topics()
        if self._pattern is not None:
            self._subscribe_to_matching(found, compiled(self._pattern))
        elif not missing.isdisjoint(found):
            self._join()

    def _subscribe_to_matching(self, found: Sequence[str], pattern: "re2._Regexp[str]") -> None:
        matching = sorted(topic for topic in found if topic not in _INTERNAL_TOPICS and pattern.fullmatch(topic))
        if matching != self._topics:
            self._topics = matching
            if matching:
                self._join()
            else:
                self._consumer.unsubscribe()

    # --- partitions ---

    def assign(self, places: Sequence[Place]) -> None:
        """Read these partitions, whatever the group does; none to end that."""
        if self._topics or self._pattern is not None:
            raise errors.exclusive()
        chosen = sorted(set(places))
        self._consumer.check(chosen)
        self._purge([place for place in self._chosen if place not in chosen])
        self._positions.keep_only(chosen)
        self._chosen = chosen
        self._begin_chosen()
        self.save()

    def _begin_chosen(self) -> None:
        starts = {place: self._positions.start(place, None) for place in self._chosen}
        fresh = [place for place, offset in starts.items() if offset is None]
        starts.update(self._resolved(fresh) if fresh else {})
        # What was fetched already is not fetched again.
        starts.update({(record.topic, record.partition): record.offset + 1 for record in self._fetched})
        self._consumer.assign(starts)

    @property
    def assigned(self) -> Sequence[Place]:
        """The partitions that are read."""
        return self._consumer.assigned

    @property
    def is_waiting_for_group(self) -> bool:
        """Whether the group has yet to say which partitions are read."""
        return bool(self._topics) and not self._consumer.has_joined and not self._is_without_topics

    @property
    def _is_without_topics(self) -> bool:
        """Whether none of the topics is there: then the group has nothing to give."""
        return bool(self._topics) and self._consumer.unknown_topics.issuperset(self._topics)

    def _starts(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """Where partitions begin that the group gives: called while the consumer reads."""
        try:
            return self._resolved(places)
        except ClientError as error:
            log.warning("where partitions begin is left to the client library", extra={"reason": str(error)})
            return {}

    def _resolved(self, places: Sequence[Place]) -> dict[Place, int]:
        """Where partitions begin. Their first offsets are looked up and kept, so that a restart skips nothing."""
        committed = self._consumer.committed(places)
        starts: dict[Place, int] = {}
        for place in places:
            start = self._positions.start(place, committed[place].offset if place in committed else None)
            if start is not None:
                starts[place] = start
        unknown = [place for place in places if place not in starts]
        if unknown and self.config.auto_offset_reset != "error":
            which = BEGINNING if self.config.auto_offset_reset == "earliest" else END
            starts |= self._consumer.offsets_at(dict.fromkeys(unknown, which))
        self._positions.begin(starts)
        return starts

    def _revoked(self, places: Sequence[Place]) -> None:
        self._purge(places)
        self._positions.revoke(places)

    # --- records ---

    def fetch(self, *, arrived_at: float, wanted_bytes: int, timeout_ms: int) -> None:
        """The client has come back for more: wait for records, at most this long."""
        self._come_back(arrived_at)
        self._commit_by_itself(is_waiting=False)
        self._look_for_topics()
        self._check_reading()
        self._consumer.resume()
        try:
            self._read_until_quiet(wanted_bytes, timeout_ms=timeout_ms)
        finally:
            self._save_changes()
        if self._is_without_topics and not self._fetched:
            raise topic_not_found(", ".join(self._topics[:_TOLD_TOPICS_MAX]))

    def _read_until_quiet(self, wanted_bytes: int, *, timeout_ms: int) -> None:
        gather_until = time.monotonic() + timeout_ms / 1000 + _GATHER_SECONDS
        while not self.has_fetched(wanted_bytes):
            records = self._consumer.read(PAGE_RECORDS_MAX - len(self._fetched), timeout_ms=timeout_ms)
            self._fetched.extend(records)
            self._fetched_bytes += sum(size(record) for record in records)
            if not records or time.monotonic() > gather_until:
                break
            timeout_ms = _QUIET_MS

    def _check_reading(self) -> None:
        if not (self._topics or self._chosen or self._pattern is not None):
            raise errors.illegal_state("Consumer is not subscribed to any topics or assigned any partitions")

    def has_fetched(self, enough_bytes: int) -> bool:
        """Whether there is enough for an answer."""
        return self._fetched_bytes >= enough_bytes or len(self._fetched) >= PAGE_RECORDS_MAX

    def page(self, max_bytes: int) -> list[IncomingRecord]:
        """The next records to be answered, one at least if there are any; they stay until they are answered."""
        page: list[IncomingRecord] = []
        total = 0
        for record in self._fetched:
            total += size(record)
            if page and (total > max_bytes or len(page) >= PAGE_RECORDS_MAX):
                break
            page.append(record)
        return page

    def answer(self, count: int, is_lost: IsLost = lambda: False) -> None:
        """So many of the next records are handed over to the client; `is_lost` tells later if it did not get them."""
        page = [self._fetched.popleft() for _ in range(count)]
        self._answer_bytes = sum(size(record) for record in page)
        self._fetched_bytes -= self._answer_bytes
        if page:
            self._positions.answer(page, now=time.monotonic())
            starts = {(record.topic, record.partition): record.offset for record in reversed(page)}
            self._handed_over.append((starts, is_lost))

    def _purge(self, places: Sequence[Place] | None) -> None:
        """Drop what was fetched of some partitions, or of all."""
        gone = None if places is None else set(places)
        kept = [r for r in self._fetched if gone is not None and (r.topic, r.partition) not in gone]
        self._fetched = deque(kept)
        self._fetched_bytes = sum(size(record) for record in kept)
        self._handed_over = [
            ({place: offset for place, offset in starts.items() if gone is not None and place not in gone}, is_lost)
            for starts, is_lost in self._handed_over
        ]
        self.purges += 1

    # --- positions and commits ---

    def seek(self, *, offsets: Mapping[Place, int], times: Mapping[Place, int], arrived_at: float) -> None:
        """Read on elsewhere: at offsets, or at times (ms, or BEGINNING, or END)."""
        for place in (*offsets, *times):
            if place not in self._consumer.assigned:
                raise errors.not_assigned(place)
        self._come_back(arrived_at)
        found = {**offsets, **(self._consumer.offsets_at(times) if times else {})}
        self._consumer.seek(found)
        self._purge(list(found))
        self._positions.seek(found)
        self.save()

    def commit(self, *, commits: Mapping[Place, Commit] | None, arrived_at: float) -> None:
        """Commit what is listed, or else all that was answered."""
        self._come_back(arrived_at)
        if commits is None:
            commits = {place: Commit(offset) for place, offset in self._positions.uncommitted.items()}
        else:
            self._consumer.check(commits)
        if commits:
            self._consumer.commit(commits)
            self._positions.committed({place: commit.offset for place, commit in commits.items()})
        self._save_changes()

    def committed(self, places: Sequence[Place]) -> dict[Place, Commit]:
        """What the group has committed."""
        if not places:
            return {}
        self._consumer.check(places)
        return self._consumer.committed(places)

    def _come_back(self, arrived_at: float) -> None:
        """The client sends a request: what was handed over before has arrived, unless it is known to be lost."""
        if arrived_at > self._positions.answered_at:
            self._take_back_what_was_lost()
            self._handed_over.clear()
        self._positions.come_back(arrived_at)

    def _take_back_what_was_lost(self) -> None:
        starts: dict[Place, int] = {}
        is_lost_by_now = False
        for places, is_lost in self._handed_over:
            is_lost_by_now = is_lost_by_now or is_lost()
            if is_lost_by_now:
                starts = places | starts
        starts = {place: offset for place, offset in starts.items() if place in self._consumer.assigned}
        if starts:
            self._consumer.seek(starts)
            self._purge(list(starts))
            self._positions.take_back(starts)

    def _commit_by_itself(self, *, is_waiting: bool) -> None:
        """Commit what has surely arrived, if the client leaves that to us; what fails is tried again later."""
        offsets = self._positions.uncommitted
        if not (self.config.auto_commit_enable and offsets):
            return
        commits = {place: Commit(offset) for place, offset in offsets.items()}
        try:
            if is_waiting:
                self._consumer.commit(commits)
            else:
                self._consumer.commit_later(commits)
        except ClientError as error:
            log.warning("offsets are not committed", extra={"group": self.group, "reason": str(error)})
        else:
            self._positions.committed(offsets)

    # --- life ---

    def tend(self, *, is_resting: bool) -> None:
        """Let the group go on while no request is there: a member that is silent would stop all the others."""
        if is_resting and self._fetched:
            # The next poll has something to answer at once: there is no need to fetch until then.
            self._consumer.pause()
        if self._topics or (self._chosen and not self._fetched):
            records = self._consumer.read(1, timeout_ms=0)
            self._fetched.extend(records)
            self._fetched_bytes += sum(size(record) for record in records)
        since = time.monotonic() - self._positions.answered_at
        is_lost = any(is_lost() for _, is_lost in self._handed_over)
        is_small = self._answer_bytes <= _SETTLED_BYTES
        if self._handed_over and since > _SETTLED_SECONDS and is_small and not is_lost:
            self.save(with_answered=True)
            self._answer_bytes = _SETTLED_BYTES + 1  # Once is enough.
        self._save_changes()

    def close(self, *, arrived_at: float | None = None) -> None:
        """Leave the group; a client that asks for it (then) has got all answers before."""
        if arrived_at is not None:
            self._come_back(arrived_at)
            self._commit_by_itself(is_waiting=True)
        self._consumer.close()

    def save(self, *, with_answered: bool = False) -> None:
        """Write the instance down."""
        self._positions.is_changed = False
        self._files.save(
            SavedInstance(
                group=self.group,
                name=self.name,
                config=self.config,
                topics=self._topics,
                pattern=self._pattern,
                assigned=self._chosen,
                positions=self._positions.saved(with_answered=with_answered),
            )
        )

    def _save_changes(self) -> None:
        if self._positions.is_changed:
            self.save()


def compiled(pattern: str) -> "re2._Regexp[str]":
    """A pattern of topics; raises ProxyError if it is none. To match takes time in proportion to the names."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ProxyError(422, f"topic_pattern {pattern[:80]!r} is no regular expression of RE2: {reason}") from error
