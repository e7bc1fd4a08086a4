"""The broker's counters: plain integers, turned into Prometheus text when they are scraped."""

from collections.abc import Sequence

import msgspec


class TopicTraffic(msgspec.Struct, gc=False):
    """Records and bytes that went through one topic."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0
    failed_produce_requests: int = 0
    failed_fetch_requests: int = 0
    unregistered_records: int = 0
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0


class RequestStats(msgspec.Struct, gc=False):
    """How often one API was called, and how long the responses took."""

    count: int = 0
    errors: int = 0
    seconds: float = 0.0
    seconds_max: float = 0.0


class LoginStats(msgspec.Struct, gc=False):
    """How often clients of one listener logged in by one mechanism."""

    succeeded: int = 0
    failed: int = 0
    renewals_succeeded: int = 0
    renewals_failed: int = 0


class BrokerMetrics:
    """All counters of one broker."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self.requests: dict[str, RequestStats] = {}
        self.connections_open = 0
        self.connections_accepted = 0
        self.connections_refused = 0
        self.logins: dict[tuple[str, str], LoginStats] = {}
        self.frames_refused = 0
        self.registry_questions = 0
        self.registry_failures = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.isr_changes_failed = 0
        self.sessions_expired = 0

    def isr_changed(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Count a change of the in-sync replicas of a partition that this broker leads."""
        self.isr_shrinks += len(after) < len(before)
        self.isr_expands += len(after) > len(before)

    def topic(self, name: str) -> TopicTraffic:
        """The counters of one topic, made at first use."""
        traffic = self.topics.get(name)
        if traffic is None:
            traffic = self.topics[name] = TopicTraffic()
        return traffic

    def topic_failed_produce(self, name: str) -> None:
        """Count a rejected produce. Unknown names are not counted: clients could invent any number of them."""
        traffic = self.topics.get(name)
        if traffic is not None:
            traffic.failed_produce_requests += 1

    def topic_unregistered_records(self, name: str, count: int) -> None:
        """Count records without a registered schema, for known topics only."""
        traffic = self.topics.get(name)
        if traffic is not None:
            traffic.unregistered_records += count

    def topic_failed_fetch(self, name: str) -> None:
        """Count a rejected fetch, for known topics only."""
        traffic = self.topics.get(name)
        if traffic is not None:
            traffic.failed_fetch_requests += 1

    def forget_topic(self, name: str) -> None:
        """Drop the counters of a deleted topic."""
        self.topics.pop(name, None)

    def login(self, listener: str, mechanism: str) -> LoginStats:
        """The counters of a listener and one of its mechanisms (`TLS` for certificates), made at first use.

        Before a client has chosen an enabled mechanism, it is `unknown`: clients could invent any number of them.
        """
        key = listener, mechanism or "unknown"
        stats = self.logins.get(key)
        if stats is None:
            stats = self.logins[key] = LoginStats()
        return stats

    def request(self, name: str) -> RequestStats:
        """The counters of one API, made at first use."""
        stats = self.requests.get(name)
        if stats is None:
            stats = self.requests[name] = RequestStats()
        return stats
