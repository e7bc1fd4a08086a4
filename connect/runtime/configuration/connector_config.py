"""Options that every connector has."""

import re
from collections.abc import Iterable

from typing_extensions import override

from connect.api.config import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    Check,
    Config,
    Importance,
    Kind,
    Problem,
    Width,
    at_least,
    not_empty,
    one_of,
    option,
    optional,
)

_HIGH, _LOW = Importance.HIGH, Importance.LOW
_SHORT, _MEDIUM, _LONG = Width.SHORT, Width.MEDIUM, Width.LONG
_COMMON, _TRANSFORMS, _PREDICATES, _ERRORS = "Common", "Transforms", "Predicates", "Error Handling"
_FACTOR = Check(accepts=lambda value: value == -1 or value >= 1, allowed="-1 (the cluster's default) or at least 1")
_WORD = Kind(name=STRING.name, wire=STRING.wire, read=str.lower, write=str, allowed="a word")
"""Kafka Connect ignores the case of these words."""
_UNIQUE = Check(accepts=lambda names: len(set(names)) == len(names), allowed="names that differ")


class ConnectorConfig(Config):
    """Options of sources and sinks."""

    name: str = option(
        STRING, check=not_empty(), importance=_HIGH, group=_COMMON, width=_MEDIUM, display_name="Connector name"
    )
    """Globally unique name to use for this connector."""
    connector_class: str = option(STRING, importance=_HIGH, group=_COMMON, width=_LONG, display_name="Connector class")
    """Name of the connector's class: the full name, its last part, or that part without Connector."""
    tasks_max: int = option(
        INT, default=1, check=at_least(1), importance=_HIGH, group=_COMMON, display_name="Tasks max", width=_SHORT
    )
    """The most tasks to use for this connector."""
    tasks_max_enforce: bool = option(
        BOOLEAN, default=True, importance=_LOW, group=_COMMON, display_name="Enforce tasks max", width=_SHORT
    )
    """Whether a connector that plans more tasks than that fails."""
    key_converter: str | None = option(
        optional(CLASS), default=None, importance=_LOW, group=_COMMON, display_name="Key converter class", width=_SHORT
    )
    """The converter for keys of records; not set: the worker's."""
    value_converter: str | None = option(
        optional(CLASS),
        default=None,
        importance=_LOW,
        group=_COMMON,
        display_name="Value converter class",
        width=_SHORT,
    )
    """The converter for values of records; not set: the worker's."""
    header_converter: str | None = option(
        optional(CLASS),
        default=None,
        importance=_LOW,
        group=_COMMON,
        display_name="Header converter class",
        width=_SHORT,
    )
    """The converter for headers of records; not set: the worker's."""
    transforms: tuple[str, ...] = option(
        LIST, default=(), check=_UNIQUE, importance=_LOW, group=_TRANSFORMS, width=_LONG, display_name="Transforms"
    )
    """Aliases of the transforms to apply to records, in this order."""
    predicates: tuple[str, ...] = option(
        LIST, default=(), check=_UNIQUE, importance=_LOW, group=_PREDICATES, width=_LONG, display_name="Predicates"
    )
    """Aliases of the predicates that transforms use."""
    config_action_reload: str = option(
        STRING,
        default="restart",
        check=one_of("none", "restart"),
        importance=_LOW,
        group=_COMMON,
        display_name="Reload Action",
        width=_MEDIUM,
    )
    """What to do when a value from a config provider has changed."""

    errors_retry_timeout: int = option(
        LONG, default=0, check=at_least(-1), group=_ERRORS, display_name="Retry Timeout for Errors", width=_MEDIUM
    )
    """How long (ms) to retry a failed conversion or transform if the error is retriable; -1 for ever, 0 not at all."""
    errors_retry_delay_max_ms: int = option(
        LONG,
        default=60_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Maximum Delay Between Retries for Errors",
        width=_MEDIUM,
    )
    """The longest delay between two attempts."""
    errors_tolerance: str = option(
        STRING, default="none", check=one_of("none", "all"), group=_ERRORS, display_name="Error Tolerance", width=_SHORT
    )
    """none: the first bad record stops the task. all: bad records are skipped."""
    errors_log_enable: bool = option(BOOLEAN, default=False, group=_ERRORS, display_name="Log Errors", width=_SHORT)
    """Whether to log each failure, tolerated ones included."""
    errors_log_include_messages: bool = option(
        BOOLEAN, default=False, group=_ERRORS, display_name="Log Error Details", width=_SHORT
    )
    """Whether the log says which record failed."""
    errors_deadletterqueue_topic_name: str = option(
        STRING, default="", group=_ERRORS, display_name="Dead Letter Queue Topic Name", width=_MEDIUM
    )
    """The topic for bad records, as they were read; not set: none."""
    errors_deadletterqueue_topic_replication_factor: int = option(
        SHORT,
        default=3,
        check=_FACTOR,
        group=_ERRORS,
        display_name="Dead Letter Queue Topic Replication Factor",
        width=_MEDIUM,
    )
    """Its replicas when the task creates it; fewer where the cluster has fewer brokers."""
    errors_deadletterqueue_topic_partitions: int = option(
        INT,
        default=1,
        check=at_least(1),
        group=_ERRORS,
        display_name="Dead Letter Queue Topic Partitions",
        width=_MEDIUM,
    )
    """The number of its partitions when the task creates it."""
    errors_deadletterqueue_context_headers_enable: bool = option(
        BOOLEAN, default=False, group=_ERRORS, display_name="Enable Error Context Headers", width=_MEDIUM
    )
    """Whether headers of dead letters (`__connect.errors.…`) say where the record comes from and why it failed."""
    errors_restart_max: int = option(
        INT, default=0, check=at_least(-1), group=_ERRORS, display_name="Restarts of Failed Tasks", width=_SHORT
    )
    """How often in a row a failed connector or task is restarted automatically; -1 without limit, 0 never."""
    errors_restart_delay_ms: int = option(
        LONG,
        default=1_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Delay Before the First Restart",
        width=_MEDIUM,
    )
    """The delay before the first restart; it doubles with each further one."""
    errors_restart_delay_max_ms: int = option(
        LONG,
        default=60_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Maximum Delay Between Restarts",
        width=_MEDIUM,
    )
    """The longest delay before a restart."""
    errors_restart_reset_ms: int = option(
        LONG,
        default=600_000,
        check=at_least(1),
        group=_ERRORS,
        display_name="Time Until Restarts Are Forgotten",
        width=_MEDIUM,
    )
    """After running this long without a failure, all restarts are available again."""


class SourceConnectorConfig(ConnectorConfig):
    """Options of every source."""

    topic_creation_groups: tuple[str, ...] = option(
        LIST,
        default=(),
        check=_UNIQUE,
        importance=_LOW,
        group="Topic Creation",
        display_name="Topic Creation Groups",
        width=_LONG,
    )
    """Names of groups of topics with their own settings; the group `default` always exists, and comes last."""
    exactly_once_support: str = option(
        _WORD,
        default="requested",
        check=one_of("requested", "required"),
        group="Exactly Once Support",
        display_name="Exactly once support",
        width=_SHORT,
    )
    """required: records and offsets are written in transactions, or the configuration is rejected."""
    transaction_boundary: str = option(
        _WORD,
        default="poll",
        check=one_of("poll", "interval", "connector"),
        group="Exactly Once Support",
        display_name="Transaction Boundary",
        width=_SHORT,
    )
    """The extent of a transaction: the records of one poll, those of an interval, or as the source defines it."""
    transaction_boundary_interval_ms: int | None = option(
        optional(LONG),
        default=None,
        check=at_least(1),
        importance=_LOW,
        group="Exactly Once Support",
        display_name="Transaction boundary interval",
        width=_SHORT,
    )
    """The interval; not set: the worker's offset.flush.interval.ms."""
    offsets_storage_topic: str | None = option(
        optional(STRING),
        default=None,
        check=not_empty(),
        importance=_LOW,
        group="offsets.topic",
        display_name="Offsets topic",
        width=_LONG,
    )
    """A separate topic for this connector's offsets; not set: the worker's."""

    @override
    def problems(self) -> Iterable[Problem]:
        """The group default is implicit."""
        yield from super().problems()
        if "default" in self.topic_creation_groups:
            yield Problem(
                "topic.creation.groups",
                "Invalid value default for configuration topic.creation.groups: "
                "the group default always exists and must not be listed",
            )


class SinkConnectorConfig(ConnectorConfig):
    """Options of every sink."""

    topics: tuple[str, ...] = option(
        LIST, default=(), importance=_HIGH, group=_COMMON, width=_LONG, display_name="Topics"
    )
    """The topics to consume, separated by commas."""
    topics_regex: str = option(
        STRING, default="", importance=_HIGH, group=_COMMON, width=_LONG, display_name="Topics regex"
    )
    """A regular expression for the whole names of the topics to consume."""
    errors_put_bisect_enable: bool = option(
        BOOLEAN, default=True, group=_ERRORS, display_name="Find Bad Records in Batches", width=_SHORT
    )
    """Whether a batch that the sink rejects is split until the bad records are found (errors.tolerance=all)."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Exactly one way to name topics, and the sink does not consume its own dead letters."""
        yield from super().problems()
        if not self.topics and not self.topics_regex:
            yield Problem("topics", "Must configure one of topics or topics.regex")
        elif self.topics and self.topics_regex:
            message = "topics and topics.regex are mutually exclusive options, but both are set."
            yield Problem("topics.regex", message)
        try:
            pattern = re.compile(self.topics_regex)
        except re.error as error:
            start = f"Invalid value {self.topics_regex} for configuration topics.regex"
            yield Problem("topics.regex", f"{start}: Invalid regex: {error}")
            return
        dead = self.errors_deadletterqueue_topic_name.strip()
        if dead and (dead in self.topics or (self.topics_regex and pattern.fullmatch(dead))):
            consumed = f"matched by the regex for the topics ('topics.regex={self.topics_regex}')"
            if self.topics:
                consumed = f"included in the list of topics ('topics=[{', '.join(self.topics)}]')"
            message = f"The DLQ topic '{dead}' may not be {consumed} consumed by the connector"
            yield Problem("errors.deadletterqueue.topic.name", message)
