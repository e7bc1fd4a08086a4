"""One consumer instance: what it reads, what it has fetched, and the positions of its client. Calls may block."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import re2

from core_broker.client.consumer import TopicPartition
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
"""Whether a response is known not to have arrived."""

PAGE_RECORDS_MAX = 10_000
"""Most records in one response."""
_QUIET_MS, _GATHER_SECONDS = 10, 0.05
"""Once there is a record, others that arrive within moments go into the same response."""
_REFRESH_SECONDS, _REFRESH_MISSING_SECONDS = 30.0, 1.0
_SETTLED_SECONDS, _SETTLED_BYTES = 1.0, 64 * 1024
"""A response this small, sent this long ago, has left the proxy's buffers."""
_LISTED_TOPICS_MAX = 10
_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class Instance:
    """A consumer instance; one thread at a time may call it."""

    def __init__(self, saved: SavedInstance, *, connect: Connect, files: InstanceFiles) -> None:
        self.key, self.config = saved.key, saved.config
        self.group, self.name = saved.group, saved.name
        self._files = files
        self._topics = list(saved.topics)
        self._pattern = saved.pattern
        self._chosen: list[TopicPartition] = list(saved.assigned)
        self._positions = Positions(saved.positions)
        self._fetched: deque[IncomingRecord] = deque()
        self._fetched_bytes = self._answer_bytes = 0
        self._handed_over: list[tuple[dict[TopicPartition, int], IsLost]] = []
        """Where the responses began that no later request has confirmed."""
        self._refreshed_at = float("-inf")
        self.purges = 0
        """How often fetched records were dropped because the client moved elsewhere or partitions were revoked."""
        self.is_suspended = False
        """Whether the consumer is closed: another one is needed, or the token of its owner has expired."""
        self._consumer = connect()
        self._connect = connect
        self._resume_reading()

    def _resume_reading(self) -> None:
        """Read what a saved or reopened instance was reading before."""
        if self._chosen:
            self._begin_chosen()
        elif self._topics:
            self._join()

    def reopen(self) -> None:
        """Replace a consumer that has failed."""
        self.suspend()
        self._consumer = self._connect()
        self.is_suspended = False
        self._resume_reading()

    def connect_by(self, connect: Connect) -> None:
        """Go on with a consumer that is made in another way: its owner has another password, or a newer token."""
        self._connect = connect
        self.reopen()

    def suspend(self) -> None:
        """Close the consumer, until it is reopened; does nothing if it is closed already."""
        if not self.is_suspended:
            self.is_suspended = True
            self._purge(self._consumer.assigned)
            self._consumer.close()

    # --- subscription ---

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics as a member of the group; an empty list ends the subscription."""
        if self._pattern is not None or self._chosen:
            raise errors.exclusive()
        if not topics:
            self.unsubscribe()
            return
        for topic in topics:
            # The client library would take `^` for the beginning of a pattern, and NUL for the end of the name.
            if topic.startswith("^") or "\0" in topic:
                raise errors.invalid_topic_name(topic)
        self._topics = list(dict.fromkeys(topics))
        self._join()
        self.save()

    def subscribe_to_pattern(self, pattern: str) -> None:
        """Read the topics whose whole names match the pattern, as a member of the group."""
        if (self._topics and self._pattern is None) or self._chosen:
            raise errors.exclusive()
        compile_pattern(pattern)
        self._pattern, self._topics, self._refreshed_at = pattern, [], float("-inf")
        self._refresh_topics()
        self.save()

    def unsubscribe(self) -> None:
        """End the subscription or the assignment."""
        self._auto_commit(is_waiting=True)
        self._topics, self._pattern, self._chosen = [], None, []
        self._consumer.unsubscribe()
        self._purge(None)
        self._positions.keep_only(())
        self.save()

    @property
    def topics(self) -> list[str]:
        """The subscribed topics."""
        return self._topics

    def _join(self) -> None:
        self._consumer.subscribe(self._topics, starts=self._start_offsets, revoked=self._on_revoked)

    def _refresh_topics(self) -> None:
        """If it is time, look for topics that match the pattern or were missing, and subscribe to them."""
        missing = self._consumer.unknown_topics
        pause = _REFRESH_SECONDS if self._topics and not missing else _REFRESH_MISSING_SECONDS
        if time.monotonic() - self._refreshed_at < pause or not (missing or self._pattern is not None):
            return
        self._refreshed_at = time.monotonic()
        found = self._consumer.topics()
        if self._pattern is None:
            if not missing.isdisjoint(found):
                self._join()
            return
        pattern = compile_pattern(self._pattern)
        matching = sorted(topic for topic in found if topic not in _INTERNAL_TOPICS and pattern.fullmatch(topic))
        if matching != self._topics:
            self._topics = matching
            if matching:
                self._join()
            else:
                self._consumer.unsubscribe()

    # --- partitions ---

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Read these partitions, independently of the group; an empty list ends the assignment."""
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
        starts.update(self._resolve_starts(fresh) if fresh else {})
        # Records that were fetched already are not fetched again.
        starts.update({(record.topic, record.partition): record.offset + 1 for record in self._fetched})
        self._consumer.assign(starts)

    @property
    def assigned(self) -> Sequence[TopicPartition]:
        """The partitions that are read."""
        return self._consumer.assigned

    @property
    def is_waiting_for_group(self) -> bool:
        """Whether the group has not assigned partitions yet."""
        return bool(self._topics) and not self._consumer.has_joined and not self._is_without_topics

    @property
    def _is_without_topics(self) -> bool:
        """Whether none of the topics exists: then the group has nothing to assign."""
        return bool(self._topics) and self._consumer.unknown_topics.issuperset(self._topics)

    def _start_offsets(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where newly assigned partitions begin; called by the consumer during a read."""
        try:
            return self._resolve_starts(places)
        except ClientError as error:
            log.warning(
                "start offsets unknown, the client library applies auto.offset.reset", extra={"reason": str(error)}
            )
            return {}

    def _resolve_starts(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where partitions begin. auto.offset.reset is resolved here and saved, so that a restart skips nothing."""
        committed = self._consumer.committed(places)
        starts: dict[TopicPartition, int] = {}
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

    def _on_revoked(self, places: Sequence[TopicPartition]) -> None:
        self._purge(places)
        self._positions.revoke(places)

    # --- records ---

    def fetch(self, *, arrived_at: float, wanted_bytes: int, timeout_ms: int) -> None:
        """The client polls: wait for records, at most this long."""
        self._confirm_delivery(arrived_at)
        self._auto_commit(is_waiting=False)
        self._refresh_topics()
        if not (self._topics or self._chosen or self._pattern is not None):
            raise errors.illegal_state("Consumer is not subscribed to any topics or assigned any partitions")
        self._consumer.resume()
        try:
            self._read_until_quiet(wanted_bytes, timeout_ms=timeout_ms)
        finally:
            self._save_changes()
        if self._is_without_topics and not self._fetched:
            raise topic_not_found(", ".join(self._topics[:_LISTED_TOPICS_MAX]))

    def _read_until_quiet(self, wanted_bytes: int, *, timeout_ms: int) -> None:
        gather_until = time.monotonic() + timeout_ms / 1000 + _GATHER_SECONDS
        while not self.has_fetched(wanted_bytes):
            records = self._consumer.read(PAGE_RECORDS_MAX - len(self._fetched), timeout_ms=timeout_ms)
            self._fetched.extend(records)
            self._fetched_bytes += sum(size(record) for record in records)
            if not records or time.monotonic() > gather_until:
                break
            timeout_ms = _QUIET_MS

    def has_fetched(self, enough_bytes: int) -> bool:
        """Whether there is enough for a response."""
        return self._fetched_bytes >= enough_bytes or len(self._fetched) >= PAGE_RECORDS_MAX

    def page(self, max_bytes: int) -> list[IncomingRecord]:
        """The next records, at least one if there are any; they stay until `answer` is called."""
        page: list[IncomingRecord] = []
        total = 0
        for record in self._fetched:
            total += size(record)
            if page and (total > max_bytes or len(page) >= PAGE_RECORDS_MAX):
                break
            page.append(record)
        return page

    def answer(self, count: int, is_lost: IsLost = lambda: False) -> None:
        """Send the next records to the client; `is_lost` says later whether they are known not to have arrived."""
        page = [self._fetched.popleft() for _ in range(count)]
        self._answer_bytes = sum(size(record) for record in page)
        self._fetched_bytes -= self._answer_bytes
        if page:
            self._positions.answer(page, now=time.monotonic())
            starts = {(record.topic, record.partition): record.offset for record in reversed(page)}
            self._handed_over.append((starts, is_lost))

    def _purge(self, places: Sequence[TopicPartition] | None) -> None:
        """Drop the fetched records of some partitions, or of all."""
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

    def seek(
        self, *, offsets: Mapping[TopicPartition, int], times: Mapping[TopicPartition, int], arrived_at: float
    ) -> None:
        """Move to other offsets, or to timestamps (in ms, or BEGINNING, or END)."""
        for place in (*offsets, *times):
            if place not in self._consumer.assigned:
                raise errors.not_assigned(place)
        self._confirm_delivery(arrived_at)
        found = {**offsets, **(self._consumer.offsets_at(times) if times else {})}
        self._consumer.seek(found)
        self._purge(list(found))
        self._positions.seek(found)
        self.save()

    def commit(self, *, commits: Mapping[TopicPartition, Commit] | None, arrived_at: float) -> None:
        """Commit these offsets, or all that the client has received."""
        self._confirm_delivery(arrived_at)
        if commits is None:
            commits = {place: Commit(offset) for place, offset in self._positions.uncommitted.items()}
        else:
            self._consumer.check(commits)
        if commits:
            self._consumer.commit(commits)
            self._positions.mark_committed({place: commit.offset for place, commit in commits.items()})
        self._save_changes()

    def committed(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, Commit]:
        """The group's commits."""
        if not places:
            return {}
        self._consumer.check(places)
        return self._consumer.committed(places)

    def _confirm_delivery(self, arrived_at: float) -> None:
        """The client sent a request: responses before it have arrived, unless they are known to be lost."""
        if arrived_at > self._positions.answered_at:
            self._rewind_lost_answers()
            self._handed_over.clear()
        self._positions.confirm_delivery(arrived_at)

    def _rewind_lost_answers(self) -> None:
        """Go back to the first response that was lost; what was sent after it is sent again, too, to keep the order."""
        starts: dict[TopicPartition, int] = {}
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

    def _auto_commit(self, *, is_waiting: bool) -> None:
        """With auto.commit.enable, commit what has certainly arrived; failures are retried later."""
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
            log.warning("offsets could not be committed", extra={"group": self.group, "reason": str(error)})
        else:
            self._positions.mark_committed(offsets)

    # --- lifetime ---

    def keep_alive(self, *, is_idle: bool) -> None:
        """Take part in rebalances between requests: a member that does not respond would block the whole group."""
        if is_idle and self._fetched:
            # The next poll can be answered at once: there is no need to fetch more until then.
            self._consumer.pause()
        if self._topics or (self._chosen and not self._fetched):
            records = self._consumer.read(1, timeout_ms=0)
            self._fetched.extend(records)
            self._fetched_bytes += sum(size(record) for record in records)
        since = time.monotonic() - self._positions.answered_at
        is_lost = any(is_lost() for _, is_lost in self._handed_over)
        is_small = self._answer_bytes <= _SETTLED_BYTES
        # The client is likely to have it by now: save the position, so that a restart does not repeat it.
        if self._handed_over and since > _SETTLED_SECONDS and is_small and not is_lost:
            self.save(with_answered=True)
            self._answer_bytes = _SETTLED_BYTES + 1  # Save it only once.
        self._save_changes()

    def close(self, *, arrived_at: float | None = None) -> None:
        """Leave the group. A client that asks for that, at `arrived_at`, has received all responses before it."""
        if self.is_suspended:
            return
        if arrived_at is not None:
            self._confirm_delivery(arrived_at)
            self._auto_commit(is_waiting=True)
        self._consumer.close()

    def save(self, *, with_answered: bool = False) -> None:
        """Save the instance to its file."""
        self._positions.is_changed = False
        self._files.save(
            SavedInstance(
                group=self.group,
                name=self.name,
                owner=self.key.owner,
                config=self.config,
                topics=self._topics,
                pattern=self._pattern,
                assigned=self._chosen,
                positions=self._positions.to_save(with_answered=with_answered),
            )
        )

    def _save_changes(self) -> None:
        if self._positions.is_changed:
            self.save()


def compile_pattern(pattern: str) -> "re2._Regexp[str]":
    """Compile a topic pattern with RE2, which matches in linear time; raises ProxyError if it is invalid."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ProxyError(422, f"topic_pattern {pattern[:80]!r} is not a valid RE2 expression: {reason}") from error
